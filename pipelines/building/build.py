"""Runs stages: everything is checked first, and only then is Beam imported and the graph run."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from pipelines.building.build_options import BuildOptions
from pipelines.building.report import REPORT
from pipelines.running.startup import import_beam_for_local_runner
from pipelines.settings.stage_options import ExamplesOptions
from pipelines.stages import checks, kernels
from pipelines.stages.registry import MIX, STAGES, StageEntry
from training.options import TrainOptions


def run(
    options: BuildOptions, beam_arguments: Sequence[str] = (), names: Sequence[str] | None = None
) -> Mapping[str, Any]:
    """Runs a build's stages, once its training is checked, too; the training itself is not run.

    The stages are one graph. A vocabulary cuts it in two: examples read it before they begin.

    Args:
      options: the build.
      beam_arguments: flags for Beam.
      names: of the stages to run, a part of the build's in order; the stages before them are finished. None: all.

    Returns, and raises, as `run_entries`.
    """
    if options.texts is not None:
        checks.check_given_texts(options.texts, options.compat)
    wanted = options.stages if names is None else names
    named = [(entry, options.stages[entry.name]) for entry in STAGES if entry.name in options.stages]
    chosen = [(MIX if isinstance(own, MIX.options) else entry, own) for entry, own in named if entry.name in wanted]
    cut = next((place for place, (entry, _) in enumerate(chosen, 1) if entry.ends_graph), len(chosen))
    first, second = chosen[:cut], chosen[cut:]
    before = options.stages.get("examples") if first[0][0].name == "eval" else None
    if options.report not in ("off", "none") and files.is_local(options.output):
        files.check_replaceable(files.join(options.output, REPORT), files.join(options.output, REPORT))
    # The report at the end: what it runs is compiled with the rest, so that the user waits once.
    later = () if options.report in ("off", "none") else kernels.OF_VERIFY
    if not second:
        # Another vocabulary than in the run before is no reason to refuse its examples, if the build has made it.
        is_made = "vocabulary" in options.stages and first[0][0].name == "examples"
        return run_entries(first, beam_arguments, later, makes_vocabulary=is_made, examples=before)
    _check_two_graphs(second, beam_arguments)
    manifests = run_entries(first, beam_arguments, (*later, *kernels.OF_EXAMPLES))
    if not manifests:
        return {}
    return {**manifests, **run_entries(second, beam_arguments, makes_vocabulary=True)}


def _check_two_graphs(second: Sequence[tuple[StageEntry, Any]], beam_arguments: Sequence[str]) -> None:
    """Checks what of the second graph's stages can be checked while the first has not made the vocabulary.

    Raises:
      UnusableInputError: a stage cannot run, or Beam's flags ask for one graph's description.
    """
    if any(argument.partition("=")[0] == "--template_location" for argument in beam_arguments):
        raise UnusableInputError(
            "--template_location takes one graph, and a build with a section vocabulary runs two; make the vocabulary "
            "first, and name its file in the section examples."
        )
    for entry, options in second:
        if isinstance(options, ExamplesOptions):
            checks.examples_to_come(options)
        elif isinstance(options, TrainOptions):
            # The model's vocabulary size comes from the file.
            entry.check(dataclasses.replace(options, vocab_file=None, tokenizer_file=None), is_first=False)
        else:
            entry.check(options, is_first=False)


def run_entries(
    chosen: Sequence[tuple[StageEntry, Any]],
    beam_arguments: Sequence[str] = (),
    later_kernels: Sequence[str] = (),
    *,
    makes_vocabulary: bool = False,
    examples: ExamplesOptions | None = None,
) -> Mapping[str, Any]:
    """Runs stages, each on what the one before it gives.

    Args:
      chosen: the stages with their options, in order. Those that are not of the graph are only checked.
      beam_arguments: flags for Beam.
      later_kernels: what else the command will run, see kernels.prepare.
      makes_vocabulary: whether the build itself has made the vocabulary of the examples. Then another one is no reason
        to refuse their directory: as with other text, they are made again.
      examples: of the finished examples that the stage eval reads where it is the first.

    Returns:
      The manifest of each stage by its name; empty where Beam's flags ask only for a description of the job.

    Raises:
      UnusableInputError, RunFailedError: as the checks, the stages and the runner say.
    """
    kernels.expect([options for _, options in chosen], later_kernels)
    checked = [(entry, entry.check(options, is_first=place == 0)) for place, (entry, options) in enumerate(chosen)]
    if makes_vocabulary:
        checked = [(entry, dataclasses.replace(found, unclaimed=tuple(found.contents))) for entry, found in checked]
    made = None if examples is None else checks.made_examples(examples)
    # Beam takes a second or two to import; this line shows at once that the command was understood.
    if checked[0][1].announcement:
        print(checked[0][1].announcement, file=sys.stderr, flush=True)
    # Other runners than the local one stage files themselves, perhaps to gs://.
    if all(argument.startswith("--direct_") for argument in beam_arguments):
        import_beam_for_local_runner()
    from pipelines.stages.stage import run_stages

    stages = [entry.load().of(found) for entry, found in checked if entry.implementation is not None]
    if made is not None:
        from pipelines.stages.eval_set import reading
        from pipelines.stages.examples import ExamplesStage

        stages[0] = reading(stages[0], ExamplesStage.of(made))
    return run_stages(stages, beam_arguments, later_kernels)
