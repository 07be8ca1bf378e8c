"""lineage: from a checkpoint, a shard or a release back to the dump, and from these forward. Without Beam."""

import dataclasses
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.inspection.shown_text import as_json, shown
from maskmill.lineage import descendants
from maskmill.lineage.descendants import Descendants
from maskmill.lineage.origins import Lineage, SourceFile, StageFacts, TrainedOn, absolute, lineage_of
from maskmill.releases import fingerprints
from maskmill.releases.names import LATEST, find_release
from maskmill.storage import files
from pipelines.settings import options as option_tools
from pipelines.settings.command_options import LineageOptions
from pipelines.settings.flags import only_path
from pipelines.stages.registry import STAGES

FITS, DIFFERS = 0, 1
SCHEMA_VERSION = 1

_LABEL = 12  # width of what stands in front of a line
_MOST_NAMES = 3  # shards that are named in a line; --json has all
_MOST_LINES = 20  # files and checkpoints that are listed
# What has more to say than its parameters.
_TITLES = {"extract": "text", "examples": "examples", "eval": "eval", "vocabulary": "vocabulary"}


def run(names: Sequence[str], options: LineageOptions) -> int:
    """Prints the lineage of the path that a command line names.

    Returns:
      The exit code: 0 if all links fit, 1 if one does not.

    Raises:
      UnusableInputError: there is nothing under this path, and nothing was made of it.
    """
    path = _latest(only_path(names, "name one checkpoint, shard, release or build, or a file of a dump"))
    root = None if options.root is None else absolute(options.root)
    found = lineage_of(path, checksums=options.checksums)
    if found is None:
        return _show_source(names[0], root, options)
    made = _made_of(found, root)
    if options.json:
        print(as_json(_as_dict(found, made), indent=1))
    else:
        for line in _lines(found, made):
            print(line)
    return _told(found.problems)


def _latest(path: str) -> str:
    """The latest release if a path is the directory above all releases; else the path."""
    from maskmill.releases import pointer

    if not files.exists(files.join(path, LATEST)) or fingerprints.manifest_digests(path):
        return path
    latest = pointer.read_latest(path)
    return path if latest is None else files.join(files.join(path, "releases"), str(latest.name))


def _show_source(source: str, root: str | None, options: LineageOptions) -> int:
    """Prints what was made of a file that is not data of ours; raises UnusableInputError if nothing was."""
    if root is None:
        raise UnusableInputError(
            f"{source}: this is not a checkpoint, shard, release or build; to see what was made of a file of a dump, "
            "name the directory of the releases or builds with --root."
        )
    meant = absolute(source) if os.path.exists(os.path.expanduser(source)) else source
    made = descendants.made_of_source(root, meant)
    if not made:
        raise UnusableInputError(
            f"{source}: nothing below {root} was made of this file; check its name, or name another --root."
        )
    problems = _changed(meant, made, options) if files.exists(meant) else []
    if options.json:
        forward = [dataclasses.asdict(one) for one in made]
        print(
            as_json(
                {"schema_version": SCHEMA_VERSION, "path": source, "kind": "source", "made": forward}
                | {"problems": problems},
                indent=1,
            )
        )
    else:
        print(f"{source}:")
        for line in _forward_lines(made):
            print(line)
    return _told(problems)


def _told(problems: Sequence[str]) -> int:
    """Says on standard error what does not fit; returns the exit code."""
    for problem in problems:
        print(f"maskmill lineage: does not fit: {problem}", file=sys.stderr, flush=True)
    return DIFFERS if problems else FITS


def _changed(source: str, made: Sequence[Descendants], options: LineageOptions) -> list[str]:
    """Where a file is not the one that was read under its name; only with --checksums, for dumps are large."""
    if not options.checksums:
        return []
    sha256 = files.sha256_of(source)
    by_content = {one.build for root in {one.build for one in made} for one in descendants.made_of_source(root, sha256)}
    return [
        f"{one.build}: it was made of a file of this name, but its content was another one than {sha256}."
        for one in made
        if one.build not in by_content
    ]


def _made_of(found: Lineage, root: str | None) -> list[Descendants]:
    """What was made of what was asked for."""
    if found.kind == "checkpoint" or not found.stages:
        return []
    first = found.stages[0]
    build = files.parent(first.directory)
    place = find_release(build)
    below = root or (build if place is None else place[0])
    if found.kind in ("build", "release"):
        return [one for one in [descendants.trainings_on(below, build)] if one.checkpoints]
    names = None if found.kind == "stage" else [shard.name for shard in first.shards]
    made = descendants.made_of_shards(below, first.directory, names)
    return [made] if made.stages or made.checkpoints else []


def _as_dict(found: Lineage, made: Sequence[Descendants]) -> dict[str, Any]:
    """What --json prints: the fields of Lineage and Descendants by name (docs/lineage.md)."""
    return {
        "schema_version": SCHEMA_VERSION,
        **dataclasses.asdict(found),
        "made": [dataclasses.asdict(one) for one in made],
    }


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}} {shown(text)}"


def _lines(found: Lineage, made: Sequence[Descendants]) -> Iterator[str]:
    """The lineage as lines, from what was asked for back to its sources."""
    if found.checkpoint is not None:
        yield from _checkpoint_lines(found.checkpoint)
    if found.release is not None:
        release = found.release
        state = "" if found.release.record is not None else ", not complete"
        yield _line("release", f"{release.path}{state}")
        if release.fingerprint:
            yield _line("", f"fingerprint {release.fingerprint}")
    for stage in found.stages:
        yield from _stage_lines(stage)
    yield from _some([line for source in found.sources for line in _source_lines(source)], _MOST_LINES)
    yield from _version_lines(found)
    yield from _forward_lines(made)
    for gap in found.gaps:
        yield _line("unknown", gap)
    number = len(found.problems)
    fits = "all that is there fits" if not number else "1 does not fit" if number == 1 else f"{number} do not fit"
    yield _line("links", fits)


def _checkpoint_lines(checkpoint: TrainedOn) -> Iterator[str]:
    step = "" if checkpoint.step is None else f", step {checkpoint.step:,}"
    yield _line("checkpoint", f"{checkpoint.path}{step}")
    if checkpoint.init_checkpoint:
        yield _line("", f"began with the weights of {checkpoint.init_checkpoint}")
    for made in checkpoint.manifests:
        yield _line("", f"trained on {made.get('directory')}, manifest sha256 {made.get('sha256')}")
    if checkpoint.release_fingerprint:
        yield _line("", f"of the release with the fingerprint {checkpoint.release_fingerprint}")


def _stage_lines(stage: StageFacts) -> Iterator[str]:
    label = _TITLES.get(stage.stage, stage.stage)
    every = len(stage.shards) == stage.all_shards
    count = f"{len(stage.shards):,} of {stage.all_shards:,} shards" if not every else f"all {stage.all_shards:,} shards"
    yield _line(label, f"{stage.directory}: {count}")
    yield _line("", f"manifest sha256 {stage.manifest_sha256}")
    if not every:
        for shard in stage.shards[:_MOST_NAMES]:
            yield _line("", f"{shard.name}, {shard.bytes:,} bytes, sha256 {shard.sha256}")
        if len(stage.shards) > _MOST_NAMES:
            yield _line("", f"and {len(stage.shards) - _MOST_NAMES:,} more")
    given = ", ".join(f"{name} {_value(value)}" for name, value in sorted(_given(stage).items()))
    yield _line("", given or "all parameters at their defaults")


def _given(stage: StageFacts) -> dict[str, Any]:
    """The parameters of a stage that are not at their defaults."""
    classes = [known.options_class for known in STAGES if known.name == stage.stage]
    known = option_tools.options_of(classes[0]) if classes else {}
    defaults: Mapping[str, Any] = option_tools.option_defaults(classes[0]) if classes else {}
    return {
        name: value
        for name, value in stage.parameters.items()
        # A manifest has checksums of what options name, too. A mix has options for each of its sources.
        if (name in known or "." in name) and name != "input" and _plain(defaults.get(name)) != value
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _value(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)


def _gone(path: str) -> str:
    if not files.is_local(path) or os.path.isabs(path):
        return ", not there any more"
    return ", not found: this path is relative to the directory in which the build ran"


def _source_lines(source: SourceFile) -> Iterator[str]:
    label = "dump" if source.stage == "extract" else "source"
    size = "" if source.bytes is None else f", {source.bytes:,} bytes"
    state = {"there": "", "gone": _gone(source.path), "changed": ", CHANGED"}[source.state]
    yield _line(label, f"{source.path}{size}{state}")
    yield _line("", f"sha256 {source.sha256}")
    facts = [f"of {source.date}"] if source.date else []
    facts += [f"pages {source.pages[0]} to {source.pages[1]}"] if source.pages else []
    facts += [f"from {source.url}"] if source.url else []
    if facts:
        yield _line("", ", ".join(facts))


def _version_lines(found: Lineage) -> Iterator[str]:
    """The versions of the software that made the stages; if they differ, each once."""
    record = found.release.record if found.release is not None else None
    made_by = dict((record or {}).get("made_by") or {})
    if made_by:
        yield _line("made by", ", ".join(f"{name} {value}" for name, value in sorted(made_by.items())))
    versions = {as_json(dict(stage.versions)): stage for stage in found.stages}
    for stage in versions.values():
        packages = [f"{name} {value}" for name, value in stage.versions.items() if isinstance(value, str)]
        formats = stage.versions.get("formats")
        listed = formats.items() if isinstance(formats, Mapping) else ()
        yield _line("versions", ", ".join(packages))
        yield _line("", f"formats: {', '.join(f'{name} {number}' for name, number in listed)}")


def _forward_lines(made: Iterable[Descendants]) -> Iterator[str]:
    for one in made:
        yield _line("made of it", f"{one.build}, fingerprint {one.fingerprint}")
        for stage in one.stages:
            named = ", ".join(stage.names[:_MOST_NAMES]) + ("" if len(stage.names) <= _MOST_NAMES else ", …")
            label = _TITLES.get(stage.stage, stage.stage)
            yield _line("", f"{label}: {len(stage.names):,} of {stage.all_shards:,} shards ({named})")
        yield from _some([_line("", f"checkpoint {checkpoint.path}") for checkpoint in one.checkpoints], _MOST_LINES)


def _some(lines: Sequence[str], most: int) -> Iterator[str]:
    """The first lines of many, and how many there are more."""
    yield from lines[:most]
    if len(lines) > most:
        yield _line("", f"and {len(lines) - most:,} lines more, which --json has")
