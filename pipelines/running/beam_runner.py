"""Runs a pipeline on Beam's own runners."""

import contextlib
import dataclasses
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from maskmill.errors import RunFailedError
from pipelines.running import built_pipeline, environments, interruption
from pipelines.settings import beam_flags
from pipelines.terminal import console

# Seconds for which Beam's DirectRunner may try to start Prism before another runner is recommended.
_PRISM_SECONDS = 20.0

_JOB_GOES_ON = "the job goes on where it was submitted; stop it there, or wait for its end before you run it again."


def pipeline_options(beam_arguments: Sequence[str], paths: Sequence[str] = ()) -> PipelineOptions:
    """Return Beam's options from its flags, with our defaults for each runner; change nothing elsewhere.

    Args:
      beam_arguments: flags of Beam, as returned by `flags.parse`, which has had Beam read them all.
      paths: every input and output; the workers of some runners do not see this machine's files.

    Raises:
      UnusableInputError: the runner does not support these flags or paths.
    """
    with beam_flags.one_sentence():
        options = built_pipeline.OptionsWithViews(list(beam_arguments))
        environments.complete(options, {a.partition("=")[0] for a in beam_arguments}, paths)
    return options


@dataclasses.dataclass(frozen=True)
class BeamRun:
    """A run on one of Beam's runners, with its options."""

    options: PipelineOptions
    is_local = False

    @property
    def is_dry_run(self) -> bool:
        """True if nothing should be run or changed."""
        return environments.is_dry_run(self.options)

    def run(self, build: Callable[[beam.Pipeline], None], scratch: str) -> bool:
        """Build the pipeline and run it to its end; return and raise as `runner.run`."""
        # Beam logs every attempt at a step that fails; the user gets one sentence instead.
        if logging.getLogger("apache_beam").level == logging.NOTSET:
            logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
        with built_pipeline.errors_of_steps(), _naming_fn_api_runner(self.options):
            result = built_pipeline.built(build, None, self.options, scratch).run()
            only_describes = environments.only_describes(self.options)
            if environments.is_dataflow(self.options) and not only_describes:
                # Airflow's operators for Beam recognize a job only by this line; Beam itself merely logs it.
                console.tell(f"Created job with id: [{result.job_id()}]")
            goes_on_alone = environments.goes_on_alone(self.options)
            with interruption.going_on(_JOB_GOES_ON) if goes_on_alone else contextlib.nullcontext():
                state = result.wait_until_finish()
        if state not in (None, "DONE"):
            raise RunFailedError(f"The pipeline ended in state {state}; see the runner's log.")
        return not only_describes


@contextlib.contextmanager
def _naming_fn_api_runner(options: PipelineOptions) -> Iterator[None]:
    """Recommend another runner if Beam's DirectRunner is still trying to download and start Prism after a while."""
    caller = threading.get_ident()

    def look() -> None:
        frame = sys._current_frames().get(caller)
        while frame is not None and not frame.f_code.co_filename.endswith("prism_runner.py"):
            frame = frame.f_back
        if frame is not None:
            console.tell(
                "Beam's DirectRunner still tries to get and start Prism; --runner=FnApiRunner does without it."
            )

    timer = threading.Timer(_PRISM_SECONDS, look)
    timer.daemon = True
    if options.view_as(StandardOptions).runner == "DirectRunner":
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
