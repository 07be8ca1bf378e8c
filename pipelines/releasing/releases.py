"""`maskmill build --release`: a build into a directory of its own that never changes once it is complete.

A release goes through plan, lock, stages, report, training, record, switch, clean-up, in this order. Each step can be
repeated: after a kill, the same command continues where the run stopped.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import fingerprints, locks, pointer, records, removing
from maskmill.releases.records import ReleaseRecord
from maskmill.storage import files, manifest
from maskmill.storage.outcomes import Result
from pipelines.building import build_options, downloads, stage_states
from pipelines.building.build import DONE, Work
from pipelines.building.build_options import BuildChoices, BuildOptions
from pipelines.building.events import Run
from pipelines.releasing import release_inputs
from pipelines.releasing.release_plan import ReleasePlan, make_plan
from pipelines.terminal import console

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
    """Build a release, as `maskmill build --release` does; arguments, result and errors are those of `build.build`.

    Raises:
      LockedError: another run builds this release.
    """
    if any(argument.startswith("--template_location") for argument in beam_arguments):
        raise UnusableInputError(
            "--template_location only describes a job, and --release builds one; leave one of them out."
        )
    names = stage_states.selected(options, choices.from_, choices.until)
    run = Run.of(options, config)
    with run.sending_failures(UnusableInputError, RunFailedError):
        plan = make_plan(options, choices.dump)
    run = dataclasses.replace(run.doing(names, plan.options, plan.dump), release=str(plan.name))
    work = Work(plan.options, run, beam_arguments, given, say)
    with run.sending_failures(BaseException):
        return _release(plan, work, choices) or DONE, work.made


def _release(plan: ReleasePlan, work: Work, choices: BuildChoices) -> int | None:
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
        dump=downloads.described(plan.dump),
        stages=stages,
        versions=manifest.versions(),
        options_sha256=plan.options_sha256,
    )
