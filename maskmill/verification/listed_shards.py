"""What a manifest lists, whatever somebody has done to it: entries that cannot be are findings, not exceptions."""

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.verification.findings import Checked, Finding, finding

_NUMBER = re.compile(r"-(\d{1,9})-of-\d+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KINDS = ("train", "eval")
_MOST = 2**64 - 1
_SHOWN = 60
_NO_COUNTS = ("random_seed", "width", "bin")
_DO = "make the directory again, or put back the manifest that was written with it"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file of a shard, as the manifest lists it.

    Attributes:
      name: below the directory.
      size, sha256: of its content; None: not said.
      index, index_sha256: its index of records; None: it has none.
      examples: how many it has; None: not said.
      width: of its bin; None: it is in none.
      counts: of the shard, if it has this one file.
    """

    name: str = ""
    size: int | None = None
    sha256: str | None = None
    index: str | None = None
    index_sha256: str | None = None
    examples: int | None = None
    width: int | None = None
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedShard:
    """A shard, as the manifest lists it.

    Attributes:
      name: of its entry.
      kind: "train" or "eval"; of a vocabulary's files "".
      number: as its name says, else its place among those of its kind; from 0.
      has_number: whether its name says it.
      files: one or more.
      counts: by name.
      seed: its own; None: not said.
      inputs: paths of what it was made from, with the sha256 of each.
    """

    name: str
    kind: str
    number: int
    has_number: bool
    files: tuple[ListedFile, ...]
    counts: Mapping[str, int]
    seed: int | None
    inputs: Mapping[str, str]


class _OtherEntryError(ValueError):
    """An entry of a manifest is not as maskmill writes it: the place, what belongs there, what is there."""

    def __init__(self, place: str, expected: str, found: Any) -> None:
        shown = found if isinstance(found, str) else repr(found)
        self.place, self.expected = place, expected
        self.found = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def is_below(name: Any) -> bool:
    """Whether something is the name of a file below a directory, and leads nowhere else."""
    if not isinstance(name, str) or "://" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return False
    return name.isprintable()


def read_listed(made: Mapping[str, Any], path: str) -> tuple[tuple[ListedShard, ...], Checked]:
    """The shards that a manifest lists, and what is wrong with its entries and its sums.

    Args:
      made: the manifest; its outline is right (`manifest.parse_manifest`).
      path: of its file, for messages.

    Returns:
      The shards whose entries can be used, in order; and the findings of "manifest" and "counts".
    """
    numbers: collections.Counter[str] = collections.Counter()
    shards: list[ListedShard] = []
    findings: list[Finding] = []
    names: collections.Counter[str] = collections.Counter()
    for place, entry in enumerate(made["shards"]):
        try:
            shard = _read_shard(entry, f"shard {place + 1:,}", numbers, made["stage"])
            names.update(file.name for file in shard.files)
            twice = next((file.name for file in shard.files if names[file.name] > 1), None)
            if twice is not None:
                raise _OtherEntryError(twice, "listed once", f"listed {names[twice]} times")
        except _OtherEntryError as error:
            findings.append(_other("manifest", path, error.place, error.expected, error.found))
            continue
        shards.append(shard)
        numbers[shard.kind] += 1
    findings += _compare_inputs(made, shards, path)
    is_split = made["stage"] != "vocabulary"
    if is_split:
        findings += (
            _compare_picked(made, shards, path) if made["stage"] == "eval" else _compare_sums(made, shards, path)
        )
    return tuple(shards), Checked(findings=findings, looked_at={"manifest": 1} | ({"counts": 1} if is_split else {}))


def _get(entry: Mapping[str, Any], key: str, expected: str, is_right: Any, place: str, *, needed: bool = True) -> Any:
    """A value of an entry; None if it is not there and need not be."""
    if key not in entry and not needed:
        return None
    value = entry.get(key)
    if not is_right(value):
        raise _OtherEntryError(f"{key} of {place}", expected, value)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


_WHOLE, _DIGEST, _NAME = "a whole number", "a sha256 in 64 hexadecimal digits", "the name of a file below the directory"


def _read_shard(entry: Mapping[str, Any], where: str, numbers: Mapping[str, int], stage: str) -> ListedShard:
    name = _get(entry, "name", _NAME, is_below, where)
    kind = ""
    if stage != "vocabulary":
        kind = _get(entry, "kind", "train or eval", lambda value: value in _KINDS, name)
    files = [entry]
    if "files" in entry:
        files = _get(
            entry, "files", "a list", lambda value: isinstance(value, list) and all(map(_is_mapping, value)), name
        )
    listed = [_read_file(file, name, needs_examples=stage in ("examples", "eval")) for file in files]
    if len(listed) > 1 and any(file.examples == 0 for file in listed):
        raise _OtherEntryError(f"examples of a file of {name}", "1 or more (no file without examples is written)", "0")
    counts = {key: value for key, value in entry.items() if _is_number(value) and key not in _NO_COUNTS}
    if len(listed) == 1:
        listed = [dataclasses.replace(listed[0], counts=counts)]
    inputs = _get(entry, "inputs", "a mapping", _is_mapping, name, needed=False) or {}
    in_name = _NUMBER.search(name)
    return ListedShard(
        name=name,
        kind=kind,
        number=numbers[kind] if in_name is None else int(in_name[1]),
        has_number=in_name is not None,
        files=tuple(listed),
        counts=counts,
        seed=_get(entry, "random_seed", _WHOLE, _is_number, name, needed=stage == "examples"),
        inputs={path: _get(inputs, path, _DIGEST, _is_digest, f"inputs of {name}") for path in inputs},
    )


def _read_file(entry: Mapping[str, Any], shard: str, *, needs_examples: bool) -> ListedFile:
    name = _get(entry, "name", _NAME, is_below, f"a file of {shard}")
    index = _get(entry, "index", _NAME, is_below, name, needed=False)
    return ListedFile(
        name=name,
        size=_get(entry, "bytes", _WHOLE, _is_number, name),
        sha256=_get(entry, "sha256", _DIGEST, _is_digest, name),
        index=index,
        index_sha256=_get(entry, "index_sha256", _DIGEST, _is_digest, name, needed=index is not None),
        examples=_get(entry, "examples", _WHOLE, _is_number, name, needed=needs_examples),
        width=_get(entry, "width", _WHOLE, _is_number, name, needed=False),
    )


def _compare_inputs(made: Mapping[str, Any], shards: Sequence[ListedShard], path: str) -> Iterator[Finding]:
    """Compares the inputs of a stage with those of its shards: each is one of them, and each text was used."""
    said = {str(entry.get("path")): entry.get("sha256") for entry in made["inputs"]}
    for used, digest in dict.fromkeys((used, digest) for shard in shards for used, digest in shard.inputs.items()):
        if said.get(used) != digest:
            place, expected = f"the sha256 of {used} among the inputs", f"that of the shards made of it ({digest})"
            yield _other("manifest", path, place, expected, str(said.get(used, "nothing"))[:_SHOWN])
    options = made["parameters"]
    used_paths = {path for shard in shards for path in shard.inputs} | {
        str(options.get(name)) for name in ("vocab_file", "tokenizer_file")
    }
    for used, digest in said.items():
        if made["stage"] == "examples" and used not in used_paths:
            yield _other("manifest", path, f"the input {used}", "one that a shard was made of", "one of no shard")
        if not _is_digest(digest):
            yield _other("manifest", path, f"sha256 of the input {used}", _DIGEST, repr(digest)[:_SHOWN])


def _compare_sums(made: Mapping[str, Any], shards: Sequence[ListedShard], path: str) -> Iterator[Finding]:
    """Compares the counts of each split with the sums over its shards."""
    for kind in _KINDS:
        said = made["counts"].get(kind)
        of_kind = [shard for shard in shards if shard.kind == kind]
        if not isinstance(said, dict):
            if of_kind or said is not None:
                yield _other("counts", path, f"counts of {kind}", "a mapping", repr(said)[:_SHOWN])
            continue
        sums: collections.Counter[str] = collections.Counter({"shards": len(of_kind)})
        for shard in of_kind:
            sums.update(shard.counts)
        for name in sorted(set(said) | set(sums)):
            if said.get(name, 0) != sums.get(name, 0):
                shown = f"{said[name]:,}" if isinstance(said.get(name), int) else repr(said.get(name))[:_SHOWN]
                yield _other("counts", path, f"{name} of {kind}", f"{sums[name]:,}, the sum over the shards", shown)


def _compare_picked(made: Mapping[str, Any], shards: Sequence[ListedShard], path: str) -> Iterator[Finding]:
    counts = made["counts"].get("eval")
    said = counts if isinstance(counts, dict) else {}
    listed = [file for shard in shards for file in shard.files]
    sums = {"picked": sum(file.examples or 0 for file in listed), "bytes": sum(file.size or 0 for file in listed)}
    wanted, available = made["parameters"].get("num_examples_to_pick"), said.get("available")
    if isinstance(wanted, int) and isinstance(available, int) and min(wanted, available) != sums["picked"]:
        expected = f"{min(wanted, available):,} (of {available:,}, {wanted:,} wanted)"
        yield _other("counts", path, "the examples that were picked", expected, f"{sums['picked']:,}")
    for name, count in sums.items():
        if said.get(name) != count:
            expected = f"{count:,}, the sum over the files"
            yield _other("counts", path, f"{name} of eval", expected, repr(said.get(name))[:_SHOWN])


def _other(check: str, path: str, place: str, expected: str, found: str) -> Finding:
    return finding(check, path, expected, found, f"{place} must be {expected}, not {found}; {_DO}")
