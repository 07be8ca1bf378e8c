"""build: all stages as one Beam graph, from one YAML file."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.build_options import BuildOptions
from pipelines.stage import run_stages
from pipelines.stages import GRAPH_STAGES


def run(options: BuildOptions, beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs all stages as one graph, and returns the manifest of each by its name (none where nothing was run)."""
    stages = [
        entry.load().check(options.stages[entry.name], is_first=place == 0) for place, entry in enumerate(GRAPH_STAGES)
    ]
    return run_stages(stages, beam_arguments)
