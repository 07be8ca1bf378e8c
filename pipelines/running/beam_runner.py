"""Runs a graph on the runners of Beam's that work elsewhere."""

import contextlib
import dataclasses
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from maskmill.errors import RunFailedError, UnusableInputError
from pipelines.running import environments, interruption
from pipelines.running.beam_graph import BeamGraph
from pipelines.settings import beam_flags
from pipelines.terminal import console
from transforms.collection import Graph

_JOB_GOES_ON = "the job goes on where it was submitted; stop it there, or wait for its end before you run it again."

# How a runner tells what a step raised.
_STEP_ERROR = re.compile(r"(UnusableInputError|RunFailedError): ([^\n]*)")
_WHILE_RUNNING = re.compile(r" \[while running '[^']*'\]")


class _OptionsWithViews(PipelineOptions):
    """Beam's options that keep their views: a graph asks for hundreds, and Beam makes a parser of flags for each."""

    def view_as(self, cls: type[Any]) -> Any:
        # Beam's options refuse attributes that are not options.
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def pipeline_options(beam_arguments: Sequence[str], paths: Sequence[str] = ()) -> PipelineOptions:
    """Beam's options from the flags that are Beam's, with our defaults for each runner. Changes nothing elsewhere.

    Args:
      beam_arguments: flags of Beam, as `flags.parse` gives them.
      paths: every input and output: not every runner's workers see this machine's files.

    Raises:
      UnusableInputError: the runner cannot work with these flags or paths.
    """
    with beam_flags.one_sentence():
        options = _OptionsWithViews(list(beam_arguments))
        environments.complete(options, {a.partition("=")[0] for a in beam_arguments}, paths)
        options.get_all_options()  # Beam reads most flags only when they are asked for
    return options


@dataclasses.dataclass(frozen=True)
class BeamRunner:
    """A runner of Beam's with its options."""

    options: PipelineOptions
    is_local = False

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be run or changed."""
        return environments.is_dry_run(self.options)

    def run(self, build_graph: Callable[[Graph], None], scratch: str) -> bool:
        """Builds the graph and runs it to its end; returns and raises as `runner.run`."""
        # Beam logs every attempt at a step that fails; the user gets one sentence instead.
        if logging.getLogger("apache_beam").level == logging.NOTSET:
            logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
        with _errors_of_steps():
            pipeline = beam.Pipeline(options=self.options)
            # Beam's own directory would stay behind when the command is interrupted.
            shutil.rmtree(pipeline.local_tempdir)
            pipeline.local_tempdir = tempfile.mkdtemp(dir=scratch)
            build_graph(BeamGraph(pipeline))
            result = pipeline.run()
            if environments.is_dataflow(self.options) and not environments.only_describes(self.options):
                # Airflow's operators for Beam know a job only by this line, which Beam itself does no more than log.
                console.tell(f"Created job with id: [{result.job_id()}]")
            goes_on_alone = environments.goes_on_alone(self.options)
            with interruption.going_on(_JOB_GOES_ON) if goes_on_alone else contextlib.nullcontext():
                state = result.wait_until_finish()
        if state not in (None, "DONE"):
            raise RunFailedError(f"The pipeline ended in state {state}; see the runner's log.")
        return not environments.only_describes(self.options)


@contextlib.contextmanager
def _errors_of_steps() -> Iterator[None]:
    """Finds the error that a step raised in what the runner made of it: an exception, or a text with a traceback."""
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
