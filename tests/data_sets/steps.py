"""Steps on their own, on Beam's FnApiRunner and on LocalRunner."""

from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import test_pipeline  # pytest takes TestPipeline itself for a class of tests
from apache_beam.testing.util import assert_that, equal_to

from pipelines.running.local_runner import LocalRunner

__all__ = ["equal_to", "run_step"]

_STRICT = ["--runtime_type_check", "--type_check_strictness=ALL_REQUIRED"]


def run_step(
    elements: Sequence[Any], steps: beam.PTransform | Sequence[beam.PTransform], check: Callable[[list[Any]], None]
) -> None:
    """Run steps on each runner, with all of Beam's checks of types; `check` asserts what they give, in any order."""
    for runner in (FnApiRunner(), LocalRunner(0)):
        with test_pipeline.TestPipeline(runner=runner, argv=_STRICT) as pipeline:
            made = pipeline | "Elements" >> beam.Create(elements).with_output_types(Any)
            for step in [steps] if isinstance(steps, beam.PTransform) else steps:
                made |= step
            assert_that(made, check)
