"""`maskmill build`: a plain build, or with --release a directory that never changes once it is complete.

A release goes through plan, lock, stages, report, training, record, switch, clean-up, in this order. Each step can be
repeated: after a kill, the same command continues where the run stopped.
"""

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import fingerprints, locks, pointer, records, removing
from maskmill.releases.records import ReleaseRecord
from maskmill.storage import files, manifest
from maskmill.storage.outcomes import Result
from pipelines.building import build_options, build_report, next_step, stage_states
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.releasing import dry_run, release_inputs
from pipelines.releasing.events import Run
from pipelines.releasing.release_plan import ReleasePlan, make_plan
from pipelines.settings import beam_flags
from pipelines.stages.train_stage import TrainStage
from pipelines.terminal import console, summary

DONE = 0
_SECONDS_A_MINUTE = 60


def run(
    options: BuildOptions,
    choices: BuildChoices,
    beam_arguments: Sequence[str] = (),
    *,
    config: str = "",
    given: Sequence[str] = (),
    say: console.Say = console.say,
) -> tuple[int, Mapping[str, Result]]:
    """Run `maskmill build`, with or without a release, or print what it would do.

    options: the build's, from its file. config: the path of that file, for messages. given: the flags of the command
    line that a command for later stages needs, too. say: takes the lines of the summary.

    Returns:
      The exit code: 0, or 128 + the signal that ended a training; and the results of the stages that ran, by name.

    Raises:
      UnusableInputError, RunFailedError: from the checks, the stages and the runner; LockedError among them.
    """
    if choices.dry_run and not choices.release and beam_flags.runner_of(beam_arguments) == beam_flags.DATAFLOW:
        beam_arguments = [*beam_arguments, "--dry_run=True"]  # Beam's own flag: it describes the job
        choices = dataclasses.replace(choices, dry_run=False, json=False)
    if choices.release and any(argument.startswith("--template_location") for argument in beam_arguments):
        raise UnusableInputError(
            "--template_location only describes a job, and --release builds one; leave one of them out."
        )
    stage_states.selected(options, choices.from_, choices.until)
    if choices.dry_run:
        dry_run.report(options, choices)
        return DONE, {}
    run = unplanned(options, config)
    with run.sending_failures(UnusableInputError, RunFailedError):
        plan = make_plan(options, choices.dump) if choices.release else None
        build, dump = (plan.options, plan.dump) if plan else release_inputs.with_input(options, choices.dump)
    names = stage_states.selected(build, choices.from_, choices.until)
    run = dataclasses.replace(
        run,
        directory=build.output,
        release=str(plan.name) if plan else "",
        stages=tuple(names),
        reaches_end=names[-1] == build.names[-1],
        dump=release_inputs.described(dump),
    )
    work = _Work(build, run, beam_arguments, given, say)
    with run.sending_failures(BaseException):
        code = work.do(lambda: None) if plan is None else _release(plan, work, choices)
    return code or DONE, work.made


def unplanned(options: BuildOptions, config: str) -> Run:
    """Return the run of a build whose release is not known yet; config: the path of its file."""
    return Run(command=options.on_event, output=options.output, directory=options.output, config=config)


def _release(plan: ReleasePlan, work: "_Work", choices: BuildChoices) -> int | None:
    settings = plan.options.release
    wait = settings.wait * _SECONDS_A_MINUTE
    with locks.hold(plan.root, plan.name, owner=choices.owner or "", wait=wait, say=console.tell) as lock:
        if records.read_record(plan.directory) is None:  # the previous holder of the lock may have completed it
            code = work.do(lambda: _complete(plan, lock, work.say))
            is_complete = code == DONE and work.run.reaches_end
        else:
            code, is_complete = DONE, True
            work.say(f"release: {plan.directory} is complete; nothing to do")
            files.delete_abandoned(plan.directory)  # the temporary file of a writer of the record that was killed
            _switch(plan, work.say)
            work.run.send("finished", is_new=False)
    # Only after the release of its own lock: a removal takes other locks, and their holders may wait for this one.
    keep = choices.keep or settings.keep
    if is_complete and keep is not None:
        removing.remove_old(plan.root, keep, settings.keep_days, say=lambda line: work.say(f"clean-up: {line}"))
    return code


def _complete(plan: ReleasePlan, lock: locks.Lock, say: console.Say) -> None:
    """Write the record of a release whose stages are all finished, and switch latest to it."""
    _check_unchanged(plan)
    lock.check()
    records.write_record(plan.root, _record_of(plan))
    files.delete_abandoned(plan.directory)  # left by a run that was killed while it wrote the record
    _switch(plan, say)


def _check_unchanged(plan: ReleasePlan) -> None:
    """Check that a release was made from the inputs that its name is derived from.

    Raises:
      RunFailedError: an input was replaced, left out or added meanwhile.
    """
    again = f"while {plan.name} was built; run the same command again, which builds a release of the present inputs."
    for file in plan.inputs:
        if file.algorithm == release_inputs.CRC32C and files.stored_checksum(file.path) != file.checksum:
            raise RunFailedError(f"{file.path}: this input was replaced or removed {again}")
    digests = fingerprints.manifest_digests(plan.directory)
    for problem in records.check_inputs(plan.directory, [file.entry for file in plan.inputs], digests):
        raise RunFailedError(f"{problem}: the inputs changed {again}")


def _switch(plan: ReleasePlan, say: console.Say) -> None:
    if pointer.switch_latest(plan.root, plan.name):
        say(f"latest:  {files.join(plan.root, 'latest.json')} names {plan.name}")
        return
    latest = pointer.read_latest(plan.root)
    name = "another release" if latest is None else str(latest.name)
    say(f"latest:  {name} stays the latest, because it is newer than {plan.name}")


def _record_of(plan: ReleasePlan) -> ReleaseRecord:
    digests = fingerprints.manifest_digests(plan.directory)
    in_graph = stage_states.graph_names(plan.options)
    stages: dict[str, dict[str, Any]] = {}
    for name in plan.options.names:
        directory = stage_states.directory_of(plan.options, name)
        stages[name] = {"directory": files.base_name(directory)}
        if name in digests:
            stages[name]["manifest_sha256"] = digests[name]
        elif name in in_graph:
            raise RunFailedError(f"{directory}: the manifest of the stage {name} is gone; run the same command again.")
    return ReleaseRecord(
        name=plan.name,
        config=build_options.as_plain(plan.options),
        inputs=[file.entry for file in plan.inputs],
        dump=release_inputs.described(plan.dump),
        stages=stages,
        versions=manifest.versions(),
        options_sha256=plan.options_sha256,
    )


@dataclasses.dataclass(frozen=True)
class _Work:
    """The stages to run for a build in its directory, with flags for Beam."""

    options: BuildOptions
    run: Run
    beam_arguments: Sequence[str]
    given: Sequence[str]
    say: console.Say
    made: dict[str, Result] = dataclasses.field(default_factory=dict)

    def do(self, complete: Callable[[], None]) -> int | None:
        """Run the stages, and send events; call `complete` after the build's last stage. Return as `_stages`."""
        self.run.send("started")
        code = self._stages()
        if code == DONE:
            if self.run.reaches_end:
                complete()
            self.run.send("finished")
        elif code is not None:
            self.run.send("failed", error=RunFailedError(f"the training ended with exit code {code}"))
        return code

    def _stages(self) -> int | None:
        """Run the stages, make the report, train.

        Returns:
          An exit code; None if Beam's flags ask only for a description of the job.
        """
        of_graph = stage_states.graph_names(self.options)
        in_graph = [name for name in self.run.stages if name in of_graph]
        stage_states.check_finished(self.options, self.run.stages)
        if self.run.release:
            self.say(f"release: {self.run.directory}")
        if not in_graph:
            TrainStage.check(self.options[TrainStage], is_first=True)
        else:
            from pipelines.building import build

            results = build.run(self.options, self.beam_arguments, self.run.stages)
            if not results:
                summary.report(self.options.output, None, self.say)
                return None
            self.made.update(results)
            for name, result in results.items():
                summary.report(stage_states.directory_of(self.options, name), result, self.say)
        if in_graph[-1:] == of_graph[-1:]:
            build_report.of_build(self.options.output, self.options.report, self.beam_arguments, self.say)
        self._say_next({stage_states.directory_of(self.options, name): self.made[name].made for name in in_graph})
        return self._train() if "train" in self.run.stages else DONE

    def _say_next(self, made: Mapping[str, Mapping[str, Any]]) -> None:
        """Say what to do next with the stages that ran. made: their manifests by directory."""
        if not self.run.reaches_end:
            after = self.options.names[self.options.names.index(self.run.stages[-1]) + 1]
            words = ["maskmill", "build", self.run.config, *self.given, "--from", after]
            next_step.report(list(made), shlex.join(words), self.say)
        elif made:
            next_step.report(list(made), next_step.of(self.options.stages, made), self.say)

    def _train(self) -> int:
        from training import command

        options = self.options[TrainStage]
        if self.run.release:
            digests = fingerprints.manifest_digests(self.run.directory)
            options = dataclasses.replace(
                options, release=self.run.directory, release_fingerprint=fingerprints.fingerprint_of(digests)
            )
        return command.run(options)
