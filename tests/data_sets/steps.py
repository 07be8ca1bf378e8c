"""Steps on their own, on Beam's FnApiRunner and on LocalRunner."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import AsList
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import equal_to

from pipelines.running.local_runner import LocalRunner

__all__ = ["STRICT", "check_elements", "counters", "equal_to", "run_step"]

STRICT = ("--runtime_type_check", "--type_check_strictness=ALL_REQUIRED")


def check_elements(made: beam.PCollection, check: Callable[[list[Any]], None], label: str = "Check") -> None:
    """Add a step to a pipeline that calls `check` with all elements; Beam's assert_that has steps without types."""
    once = made.pipeline | f"{label}Once" >> beam.Create([None]).with_output_types(None)
    once | label >> beam.Map(lambda _, found: check(found), AsList(made)).with_output_types(None)


def counters(pipeline: beam.Pipeline) -> dict[str, int]:
    """Return what the steps of a pipeline that has run counted."""
    found = pipeline.result.metrics().query()["counters"]
    return {one.key.metric.name: one.committed for one in found if one.key.metric.namespace == "maskmill"}


def run_step(
    elements: Sequence[Any],
    steps: beam.PTransform | Sequence[beam.PTransform],
    check: Callable[[list[Any]], None],
    counts: Mapping[str, int] | None = None,
) -> None:
    """Run steps on each runner, with all of Beam's checks of types; `check` asserts what they give, in any order.

    counts: what they count, if that is asked for.
    """
    for runner in (FnApiRunner(), LocalRunner(0)):
        with beam.Pipeline(runner=runner, options=PipelineOptions(list(STRICT))) as pipeline:
            made = pipeline | "Elements" >> beam.Create(elements).with_output_types(Any)
            for step in [steps] if isinstance(steps, beam.PTransform) else steps:
                made |= step
            check_elements(made, check)
        assert counts is None or counters(pipeline) == counts
