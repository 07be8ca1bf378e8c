"""Steps on their own, on both kinds of runner."""

from collections.abc import Callable, Sequence
from typing import Any

from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import test_pipeline  # pytest takes TestPipeline itself for a class of tests
from apache_beam.testing.util import assert_that, equal_to

from pipelines.running.beam_graph import BeamGraph
from pipelines.running.local_runner import LocalGraph, one_by_one
from transforms.collection import Collection

__all__ = ["equal_to", "run_step"]


def run_step(
    descriptions: Sequence[Any], step: Callable[[Collection], Any], check: Callable[[list[Any]], None]
) -> None:
    """Runs a step on a runner of Beam's, then on the local runner; `check` asserts what it gives, in any order."""
    with test_pipeline.TestPipeline(runner=FnApiRunner()) as pipeline:
        assert_that(step(BeamGraph(pipeline).create("Descriptions", descriptions)).descriptions, check)
    graph = LocalGraph()
    made = step(graph.create("Descriptions", descriptions))
    graph.run(one_by_one)
    check(made.descriptions)
