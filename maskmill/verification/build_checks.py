"""Whether the parts of a build were made of each other, as far as their manifests tell."""

import collections
from collections.abc import Iterator, Mapping, Sequence

from maskmill.errors import UnusableInputError
from maskmill.releases import fingerprints, records
from maskmill.releases.names import RECORD
from maskmill.storage import files, manifest
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.known_rules import parameters_of
from maskmill.verification.targets import Target

_CHECK = "shard_inputs"
_AGAIN = "run the build again"


def check_builds(targets: Sequence[Target]) -> Checked:
    """Holds the inputs that a stage's manifest names against what the stages before it have made."""
    builds: dict[str, dict[str, Target]] = collections.defaultdict(dict)
    for target in targets:
        if target.build is not None and target.made is not None:
            builds[target.build][target.kind] = target
    findings: list[Finding] = []
    looked_at = 0
    for build, parts in builds.items():
        findings += _compare_record(build)
        text, vocabulary, examples, picked = (parts.get(k) for k in ("text", "vocabulary", "examples", "eval"))
        pairs = [(text, vocabulary), (text, examples), (examples, picked)]
        for made_of, maker in pairs:
            if made_of is not None and maker is not None:
                looked_at += 1
                findings += _compare_inputs(maker, made_of)
        if examples is not None and picked is not None:
            findings += [*_compare_options(picked, examples), *_compare_available(picked, examples)]
        if text is not None and examples is not None:
            findings += _unused(text, examples)
        if vocabulary is not None and examples is not None:
            findings += _compare_vocabulary(vocabulary, examples)
    return Checked(findings=tuple(findings), looked_at={_CHECK: looked_at} if looked_at else {})


def _compare_record(build: str) -> Iterator[Finding]:
    """The inputs that the record of a release names, against those that its text was made of."""
    path = files.join(build, RECORD)
    if "://" in build and not build.startswith("gs://"):  # web servers have no releases
        return
    try:
        record = records.read_record(build)
        problems = (
            list(records.check_inputs(build, record.inputs, fingerprints.manifest_digests(build))) if record else []
        )
    except UnusableInputError as error:
        yield Finding(check="manifest", file=path, expected="a record", found="damaged", message=str(error))
        return
    for problem in problems:
        message = f"{path}: {problem}; {_AGAIN}."
        yield Finding(check=_CHECK, file=path, expected="the inputs of the manifest", found="others", message=message)


def _digests(target: Target) -> dict[str, str | None]:
    """The sha256 of a target's files by their names, without folders."""
    return {files.base_name(file.name): file.sha256 for shard in target.shards for file in shard.files}


def _inputs(target: Target) -> Mapping[str, str]:
    """What a target was made of, by path, but for its vocabulary."""
    made = target.made or {}
    if target.kind == "examples":
        return {path: digest for shard in target.shards for path, digest in shard.inputs.items()}
    entries = [entry for entry in made["inputs"] if isinstance(entry.get("path"), str)]
    return {entry["path"]: entry["sha256"] for entry in entries if isinstance(entry.get("sha256"), str)}


def _compare_inputs(target: Target, made_of: Target) -> Iterator[Finding]:
    """What a target says that it was made of, against the files that are there."""
    known = _digests(made_of)
    path = files.join(target.directory, manifest.MANIFEST)
    for used, digest in _inputs(target).items():
        name = files.base_name(used)
        there = files.join(made_of.directory, name)
        if name not in known:
            if target.kind != "vocabulary":
                message = f"{path}: this was made of {used}, but {made_of.directory} has no {name}; {_AGAIN}."
                yield Finding(check=_CHECK, file=path, expected=there, found="no such file", message=message)
        elif known[name] != digest:
            message = (
                f"{path}: this was made of another {name} than the one in {made_of.directory} (another sha256); "
                f"{_AGAIN}, or put the one back that was used."
            )
            yield Finding(check=_CHECK, file=path, expected=digest, found=str(known[name]), message=message)


def _compare_options(picked: Target, examples: Target) -> Iterator[Finding]:
    """What picked examples say of the options that they were made with, against the examples' own."""
    said, is_so = (picked.made or {}).get("examples"), (examples.made or {}).get("parameters")
    if not isinstance(said, dict) or not isinstance(is_so, dict):
        return
    path = files.join(picked.directory, manifest.MANIFEST)
    for name, value in said.items():
        if name in is_so and is_so[name] != value:
            message = f"{path}: {name} of the examples is {is_so[name]!r}, but {str(value)[:60]!r} here; {_AGAIN}."
            yield Finding(check=_CHECK, file=path, expected=repr(is_so[name]), found=repr(value)[:60], message=message)


def _compare_available(picked: Target, examples: Target) -> Iterator[Finding]:
    """How many examples there were to pick from, against how many there are."""
    said = (picked.made or {})["counts"].get("eval")
    there = sum(shard.counts.get("examples", 0) for shard in examples.shards if shard.kind == "eval")
    found = said.get("available") if isinstance(said, dict) else None
    if found != there:
        path = files.join(picked.directory, manifest.MANIFEST)
        message = f"{path}: the eval shards have {there:,} examples to pick from, but {found!r} is said here; {_AGAIN}."
        yield Finding(check=_CHECK, file=path, expected=f"{there:,}", found=repr(found)[:60], message=message)


def _unused(text: Target, examples: Target) -> Iterator[Finding]:
    """Text shards that no examples were made of, and those that two shards of examples were made of."""
    uses = collections.Counter(files.base_name(path) for shard in examples.shards for path in shard.inputs)
    path = files.join(examples.directory, manifest.MANIFEST)
    given = parameters_of(examples.made or {}).get("input")
    of_directory = isinstance(given, list) and [files.base_name(str(place)) for place in given] == ["text"]
    for shard in text.shards:
        count = uses[shard.name]
        if not count and of_directory and shard.files and shard.files[0].size:
            message = f"{path}: no examples were made of {files.join(text.directory, shard.name)}; {_AGAIN}."
            yield Finding(check=_CHECK, file=path, expected=shard.name, found="no examples of it", message=message)
        if count > 1:
            message = f"{path}: {count} shards of examples were made of {shard.name}; {_AGAIN}."
            yield Finding(check=_CHECK, file=path, expected="1 shard", found=f"{count} shards", message=message)


def _compare_vocabulary(vocabulary: Target, examples: Target) -> Iterator[Finding]:
    """The vocabulary of the examples, against the one of the build, where they were made with that."""
    options = parameters_of(examples.made or {})
    option = "tokenizer_file" if options.get("tokenizer_file") is not None else "vocab_file"
    used, digest = options.get(option), options.get(f"{option}_sha256")
    if not isinstance(used, str) or files.base_name(files.parent(used)) != "vocabulary":
        return
    name = files.base_name(used)
    known = _digests(vocabulary)
    if name in known and known[name] != digest:
        path = files.join(examples.directory, manifest.MANIFEST)
        message = (
            f"{path}: the examples were made with another {name} than the one in {vocabulary.directory} (another "
            f"sha256); {_AGAIN}."
        )
        yield Finding(check=_CHECK, file=path, expected=str(known[name]), found=str(digest), message=message)
