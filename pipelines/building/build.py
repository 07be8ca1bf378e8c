"""Runs stages: everything is checked first, and only then is Beam imported and the graph run."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.storage.outcomes import Result
from pipelines.building import build_report
from pipelines.building.build_options import BuildOptions
from pipelines.settings.stage_options import ExamplesOptions
from pipelines.stages import examples_stage, kernels
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.registry import STAGES
from pipelines.stages.stage import GraphStage, Stage
from pipelines.stages.vocabulary_stage import VocabularyStage
from pipelines.terminal import console

# A stage, and its options.
Chosen = tuple[type[Stage[Any]], Any]


def run(
    options: BuildOptions, beam_arguments: Sequence[str] = (), names: Sequence[str] | None = None
) -> Mapping[str, Result]:
    """Runs a build's stages, once its training is checked, too; the training itself is not run.

    The stages are one graph. A vocabulary cuts it in two: examples read it before they begin.

    names: of the stages to run, a part of the build's in order; the stages before them are finished. None: all.

    Returns, and raises, as `run_chosen`.
    """
    if options.texts is not None:
        examples_stage.check_given_texts(options.texts, options.compat)
    chosen = [(stage, own) for stage, own in options.stages.items() if names is None or stage.name in names]
    cut = next((place for place, (stage, _) in enumerate(chosen, 1) if stage.ends_graph), len(chosen))
    first, second = chosen[:cut], chosen[cut:]
    before = options.get(ExamplesStage) if first[0][0] is EvalStage else None
    report = files.join(options.output, build_report.REPORT)
    if options.report not in ("off", "none") and files.is_local(options.output):
        files.check_replaceable(report, report)
    later = _kernels_of_report(options)
    meanwhile = None if options.report == "off" else build_report.page_module
    if not second:
        # Another vocabulary than in the run before is no reason to refuse its examples, if the build has made it.
        is_made = VocabularyStage in options and first[0][0] is ExamplesStage
        return run_chosen(first, beam_arguments, later, makes_vocabulary=is_made, examples=before, meanwhile=meanwhile)
    _check_two_graphs(second, beam_arguments)
    results = run_chosen(first, beam_arguments, (*later, *examples_stage.KERNELS))
    if not results:
        return {}
    return {**results, **run_chosen(second, beam_arguments, makes_vocabulary=True, meanwhile=meanwhile)}


def expected_kernels(options: BuildOptions) -> list[str]:
    """The kernels that a build runs, as far as its options say; as to `kernels.prepare`."""
    return [*_kernels_of_report(options), *_expected(list(options.stages.items()))]


def _kernels_of_report(options: BuildOptions) -> Sequence[str]:
    """What the report at the end runs is compiled with the rest, so that the user waits once."""
    return () if options.report in ("off", "none") else kernels.OF_VERIFY


def _expected(chosen: Sequence[Chosen]) -> Iterator[str]:
    for stage, options in chosen:
        yield from stage.expected_kernels(options)


def _check_two_graphs(second: Sequence[Chosen], beam_arguments: Sequence[str]) -> None:
    """Checks what of the second graph's stages can be checked while the first has not made the vocabulary.

    Raises:
      UnusableInputError: a stage cannot run, or Beam's flags ask for one graph's description.
    """
    if any(argument.partition("=")[0] == "--template_location" for argument in beam_arguments):
        raise UnusableInputError(
            "--template_location takes one graph, and a build with a section vocabulary runs two; make the vocabulary "
            "first, and name its file in the section examples."
        )
    for stage, options in second:
        stage.check_ahead(options)


def run_chosen(
    chosen: Sequence[Chosen],
    beam_arguments: Sequence[str] = (),
    later_kernels: Sequence[str] = (),
    *,
    makes_vocabulary: bool = False,
    examples: ExamplesOptions | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Mapping[str, Result]:
    """Runs stages, each on what the one before it gives.

    Args:
      chosen: the stages with their options, in order. Those that are not of the graph are only checked.
      later_kernels: what else the command will run, see kernels.prepare.
      makes_vocabulary: whether the build itself has made the vocabulary of the examples. Then another one is no reason
        to refuse their directory: as with other text, they are made again.
      examples: of the finished examples that the stage eval reads if it is the first.
      meanwhile: as runner.run takes it.

    Returns:
      What became of each stage, by its name; empty if Beam's flags ask only for a description of the job.

    Raises:
      UnusableInputError, RunFailedError: as the checks, the stages and the runner say.
    """
    kernels.expect(lambda: [*later_kernels, *_expected(chosen)])
    place = chosen[0][0].output_of(chosen[0][1])
    # Each waits for a store.
    checked = files.each(
        place, lambda number, one: one[0].check(one[1], is_first=not number), *zip(*enumerate(chosen), strict=True)
    )
    if makes_vocabulary:
        checked = [dataclasses.replace(stage, unclaimed=tuple(stage.contents)) for stage in checked]
    if examples is not None and isinstance(checked[0], EvalStage):
        checked[0] = dataclasses.replace(checked[0], examples=ExamplesStage.made(examples))
    # This line shows at once that the command was understood.
    if checked[0].announcement:
        console.tell(checked[0].announcement)
    from pipelines.stages import graph

    stages = [stage for stage in checked if isinstance(stage, GraphStage)]
    return graph.run_stages(stages, beam_arguments, later_kernels, meanwhile)


def run_alone(options: Any, beam_arguments: Sequence[str] = (), say: console.Say = console.say) -> Mapping[str, Result]:
    """Runs the stage that these options are of, and says its summary and what may follow; as `run_chosen`."""
    from pipelines.building import next_step
    from pipelines.terminal import summary

    stage = next(stage for stage in STAGES if stage.options_class is type(options))
    results = run_chosen([(stage, options)], beam_arguments)
    summary.report(options.output, results.get(stage.name), say)
    if results:
        manifests = {options.output: results[stage.name].made}
        next_step.report([options.output], next_step.of({stage: options}, manifests), say)
    return results
