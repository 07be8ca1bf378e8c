"""Runs builds: everything is checked first, and only then is Beam imported and the graph run."""

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import fingerprints
from maskmill.storage import files
from maskmill.storage.outcomes import Result
from pipelines.building import build_report, downloads, next_step, stage_states
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.building.events import Run
from pipelines.settings.stage_options import ExamplesOptions
from pipelines.stages import examples_stage, kernels
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.registry import STAGES
from pipelines.stages.stage import GraphStage, Stage
from pipelines.stages.train_stage import TrainStage
from pipelines.stages.vocabulary_stage import VocabularyStage
from pipelines.terminal import console, summary

DONE = 0

# A stage, and its options.
Chosen = tuple[type[Stage[Any]], Any]


def build(
    options: BuildOptions,
    choices: BuildChoices,
    beam_arguments: Sequence[str] = (),
    *,
    config: str = "",
    given: Sequence[str] = (),
    say: console.Say = console.say,
) -> tuple[int, Mapping[str, Result]]:
    """Build as `maskmill build` does, without a release.

    options: the build as its file gives it. config: the path of that file, for what is said. given: the flags of the
    command line that a command for later stages needs, too. say: takes the lines of what became of it.

    Returns:
      The exit code: 0, or 128 + the signal that ended a training; and what became of each stage that was run.

    Raises:
      UnusableInputError, RunFailedError: as the checks, the stages and the runner say.
    """
    names = stage_states.selected(options, choices.from_, choices.until)
    run = Run.of(options, config)
    with run.sending_failures(UnusableInputError, RunFailedError):
        options, dump = downloads.with_input(options, choices.dump)
    work = Work(options, run.doing(names, options, dump), beam_arguments, given, say)
    with work.run.sending_failures(BaseException):
        return work.do() or DONE, work.made


@dataclasses.dataclass(frozen=True)
class Work:
    """The stages that a run does, of a build in its directory; with flags for Beam. The rest is as `build` takes it."""

    options: BuildOptions
    run: Run
    beam_arguments: Sequence[str]
    given: Sequence[str]
    say: console.Say
    made: dict[str, Result] = dataclasses.field(default_factory=dict)

    def do(self, complete: Callable[[], None] = lambda: None) -> int | None:
        """Run the stages, make the report, train, and send events.

        complete: called after the build's last stage.

        Returns:
          An exit code; None if Beam's flags ask only for a description of the job.
        """
        self.run.send("started")
        of_graph = stage_states.graph_names(self.options)
        in_graph = [name for name in self.run.stages if name in of_graph]
        stage_states.check_finished(self.options, self.run.stages)
        if self.run.release:
            self.say(f"release: {self.run.directory}")
        if not in_graph:
            TrainStage.check(self.options[TrainStage], is_first=True)
        else:
            self.made.update(run(self.options, self.beam_arguments, self.run.stages))
            if not self.made:
                summary.report(self.options.output, None, self.say)
                return None
            for name, result in self.made.items():
                summary.report(stage_states.directory_of(self.options, name), result, self.say)
        if in_graph[-1:] == of_graph[-1:]:
            build_report.of_build(self.options.output, self.options.report, self.beam_arguments, self.say)
        made = {stage_states.directory_of(self.options, name): self.made[name].made for name in in_graph}
        if not self.run.reaches_end:
            after = self.options.names[self.options.names.index(self.run.stages[-1]) + 1]
            words = ["maskmill", "build", self.run.config, *self.given, "--from", after]
            next_step.report(list(made), shlex.join(words), self.say)
        elif made:
            next_step.report(list(made), next_step.of(self.options.stages, made), self.say)
        if TrainStage.name in self.run.stages and (code := self._train()):
            self.run.send("failed", error=RunFailedError(f"the training ended with exit code {code}"))
            return code
        if self.run.reaches_end:
            complete()
        self.run.send("finished")
        return DONE

    def _train(self) -> int:
        from training import command

        options = self.options[TrainStage]
        if self.run.release:
            digests = fingerprints.manifest_digests(self.run.directory)
            options = dataclasses.replace(
                options, release=self.run.directory, release_fingerprint=fingerprints.fingerprint_of(digests)
            )
        return command.run(options)


def run(
    options: BuildOptions, beam_arguments: Sequence[str] = (), names: Sequence[str] | None = None
) -> Mapping[str, Result]:
    """Run a build's stages, once its training is checked, too; the training itself is not run.

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
    if any(argument.partition("=")[0] == "--template_location" for argument in beam_arguments):
        raise UnusableInputError(
            "--template_location takes one graph, and a build with a section vocabulary runs two; make the vocabulary "
            "first, and name its file in the section examples."
        )
    for stage, own in second:  # what can be checked while the vocabulary is not there
        stage.check_ahead(own)
    results = run_chosen(first, beam_arguments, (*later, *examples_stage.KERNELS))
    if not results:
        return {}
    return {**results, **run_chosen(second, beam_arguments, makes_vocabulary=True, meanwhile=meanwhile)}


def expected_kernels(options: BuildOptions) -> list[str]:
    """Return the kernels that a build runs, as far as its options say; as to `kernels.prepare`."""
    of_stages = [kernel for stage, own in options.stages.items() for kernel in stage.expected_kernels(own)]
    return [*_kernels_of_report(options), *of_stages]


def _kernels_of_report(options: BuildOptions) -> Sequence[str]:
    """Return the kernels of the report at the end; they are compiled with the rest, so that the user waits once."""
    return () if options.report in ("off", "none") else kernels.OF_VERIFY


def run_chosen(
    chosen: Sequence[Chosen],
    beam_arguments: Sequence[str] = (),
    later_kernels: Sequence[str] = (),
    *,
    makes_vocabulary: bool = False,
    examples: ExamplesOptions | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Mapping[str, Result]:
    """Run stages, each on what the one before it gives.

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
    kernels.expect(lambda: [*later_kernels, *(name for stage, own in chosen for name in stage.expected_kernels(own))])
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
    """Run the stage that these options are of, and say its summary and what may follow; as `run_chosen`."""
    stage = next(stage for stage in STAGES if stage.options_class is type(options))
    results = run_chosen([(stage, options)], beam_arguments)
    summary.report(options.output, results.get(stage.name), say)
    if results:
        manifests = {options.output: results[stage.name].made}
        next_step.report([options.output], next_step.of({stage: options}, manifests), say)
    return results
