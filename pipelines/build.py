"""Runs stages: everything is checked first, and only then is Beam imported and the graph run."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines import checks
from pipelines.build_options import BuildOptions
from pipelines.stages import MIX, STAGES, StageEntry


def run(options: BuildOptions, beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs a build's stages as one graph, once its training is checked, too; the training itself is not run.

    Returns, and raises, as `run_entries`.
    """
    if options.texts is not None:
        checks.check_compat_of_texts(options.texts, options.compat)
    chosen = [(entry, options.stages[entry.name]) for entry in STAGES if entry.name in options.stages]
    return run_entries([(MIX if isinstance(own, MIX.options) else entry, own) for entry, own in chosen], beam_arguments)


def run_entries(chosen: Sequence[tuple[StageEntry, Any]], beam_arguments: Sequence[str] = ()) -> Mapping[str, Any]:
    """Runs stages, each on what the one before it gives.

    Args:
      chosen: the stages with their options, in order. Those that are not of the graph are only checked.
      beam_arguments: flags for Beam.

    Returns:
      The manifest of each stage by its name; empty where Beam's flags ask only for a description of the job.

    Raises:
      UnusableInputError, RunFailedError: as the checks, the stages and the runner say.
    """
    checked = [(entry, entry.check(options, is_first=place == 0)) for place, (entry, options) in enumerate(chosen)]
    # Beam takes a second or two to import; this line shows at once that the command was understood.
    print(checked[0][1].announcement, file=sys.stderr, flush=True)
    from pipelines.stage import run_stages

    stages = [entry.load().of(found) for entry, found in checked if entry.implementation is not None]
    return run_stages(stages, beam_arguments)
