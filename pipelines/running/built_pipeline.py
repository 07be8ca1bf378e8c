"""Builds pipelines, and recovers a step's error from the error that a runner raises."""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineRunner

from maskmill.errors import RunFailedError, UnusableInputError

# A step's error in the text of a runner's error.
_STEP_ERROR = re.compile(r"(UnusableInputError|RunFailedError): ([^\n]*)")
_WHILE_RUNNING = re.compile(r" \[while running '[^']*'\]")


class OptionsWithViews(PipelineOptions):
    """Beam's options with cached views: a pipeline requests hundreds, and Beam would make a parser for each."""

    def view_as(self, cls: type[Any]) -> Any:
        # Beam's options accept only attributes that are options.
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def built(
    build: Callable[[beam.Pipeline], None], runner: PipelineRunner | None, options: PipelineOptions, scratch: str
) -> beam.Pipeline:
    """Return a pipeline with the steps that `build` adds. runner: None for the one in the options.

    Raises:
      UnusableInputError: there is no such runner, or it does not support these options.
    """
    try:
        pipeline = beam.Pipeline(runner=runner, options=options)
    except (ValueError, ImportError, AttributeError) as error:
        name = options.view_as(StandardOptions).runner
        raise UnusableInputError(f"--runner={name} refuses these flags: {' '.join(str(error).split())}.") from error
    # Beam's own directory would stay if the command is interrupted.
    shutil.rmtree(pipeline.local_tempdir)
    pipeline.local_tempdir = tempfile.mkdtemp(dir=scratch)
    with _plain_labels():
        build(pipeline)
    return pipeline


@contextlib.contextmanager
def _plain_labels() -> Iterator[None]:
    """Keep Beam from labelling steps by a notebook's cells: it imports its interactive runner, which needs pandas 2."""
    before = beam.pipeline.alter_label_if_ipython
    beam.pipeline.alter_label_if_ipython = lambda *_: None
    try:
        yield
    finally:
        beam.pipeline.alter_label_if_ipython = before


@contextlib.contextmanager
def errors_of_steps() -> Iterator[None]:
    """Raise a step's own error in place of the runner's, which is an exception, or a text with a traceback."""
    try:
        yield
    except (UnusableInputError, RunFailedError) as error:
        raise type(error)(_WHILE_RUNNING.sub("", str(error))) from error
    except Exception as error:
        if not (found := _STEP_ERROR.findall(str(error))):
            raise
        name, message = found[-1]
        kind = UnusableInputError if name == "UnusableInputError" else RunFailedError
        raise kind(_WHILE_RUNNING.sub("", message).replace("\\n", "")) from error
