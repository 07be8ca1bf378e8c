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
_OF_EXAMPLES = ("examples", "eval")
_MOST = 2**64 - 1
_SHOWN = 60
_DO = "make the directory again, or put back the manifest that was written with it"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file of a shard, as the manifest lists it.

    Attributes:
      name: below the directory.
      size, sha256: of its content; None: not said, or not as it can be.
      index, index_sha256: its DALI index; None: it has none.
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


class _Entries:
    """Reads values out of a manifest, and notes those that cannot be."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.findings: list[Finding] = []

    def note(self, place: str, expected: str, found: Any) -> None:
        shown = found if isinstance(found, str) else repr(found)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        self.findings.append(_other("manifest", self._path, place, expected, shown))

    def mapping(self, value: Any, place: str) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self.note(place, "a mapping", value)
        return {}

    def number(self, entry: Mapping[str, Any], key: str, place: str, *, needed: bool = True) -> int | None:
        value = entry.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
            return value
        if needed or key in entry:
            self.note(f"{key} of {place}", "a whole number", value)
        return None

    def digest(self, entry: Mapping[str, Any], key: str, place: str) -> str | None:
        value = entry.get(key)
        if isinstance(value, str) and _SHA256.fullmatch(value):
            return value
        self.note(f"{key} of {place}", "a sha256 in 64 hexadecimal digits", value)
        return None

    def name(self, entry: Mapping[str, Any], key: str, place: str) -> str | None:
        value = entry.get(key)
        if isinstance(value, str) and is_below(value):
            return value
        self.note(f"{key} of {place}", "the name of a file below the directory", value)
        return None


def is_below(name: str) -> bool:
    """Whether a name is one of a file below a directory, and leads nowhere else."""
    parts = name.split("/")
    if "://" in name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_listed(made: Mapping[str, Any], path: str) -> tuple[tuple[ListedShard, ...], Checked]:
    """The shards that a manifest lists, and what is wrong with its entries and its sums.

    Args:
      made: the manifest; its outline is right (`manifest.parse_manifest`).
      path: of its file, for messages.

    Returns:
      The shards whose entries can be used, in order; and the findings of "manifest" and "counts".
    """
    entries = _Entries(path)
    is_split = made["stage"] != "vocabulary"
    numbers: collections.Counter[str] = collections.Counter()
    shards: list[ListedShard] = []
    for place, entry in enumerate(made["shards"]):
        shard = _read_shard(entry, f"shard {place + 1:,}", entries, numbers, made["stage"])
        if shard is not None:
            shards.append(shard)
            numbers[shard.kind] += 1
    for shard in shards:
        for file in shard.files:
            if file.examples == 0 and len(shard.files) > 1:
                entries.note(f"examples of {file.name}", "1 or more (maskmill writes no file without examples)", "0")
    for name, count in collections.Counter(file.name for shard in shards for file in shard.files).items():
        if count > 1:
            entries.note(name, "listed once", f"listed {count} times")
    _read_inputs(made, shards, entries)
    sums = list(_compare_sums(made, shards, path)) if is_split else []
    looked_at = {"manifest": 1} | ({"counts": 1} if is_split else {})
    return tuple(shards), Checked(findings=(*entries.findings, *sums), looked_at=looked_at)


def _read_inputs(made: Mapping[str, Any], shards: Sequence[ListedShard], entries: _Entries) -> None:
    """Compares the inputs of a stage with those of its shards."""
    said: dict[str, str | None] = {}
    for place, entry in enumerate(made["inputs"]):
        path = entry.get("path")
        if not isinstance(path, str):
            entries.note(f"path of input {place + 1:,}", "the path of a file", path)
            continue
        said[path] = entries.digest(entry, "sha256", f"input {place + 1:,}")
        if made["stage"] != "eval":
            entries.number(entry, "bytes", f"input {place + 1:,}")
    used = dict.fromkeys((path, digest) for shard in shards for path, digest in shard.inputs.items())
    for path, digest in used:
        if said.get(path, "") not in (digest, None):
            found = said.get(path, "nothing")
            entries.note(f"the sha256 of {path} among the inputs", f"that of the shards made of it ({digest})", found)


def _read_shard(
    entry: Mapping[str, Any], where: str, entries: _Entries, numbers: Mapping[str, int], stage: str
) -> ListedShard | None:
    name = entries.name(entry, "name", where)
    if name is None:
        return None
    kind = ""
    if stage != "vocabulary":
        kind = entry.get("kind", "")
        if kind not in _KINDS:
            entries.note(f"kind of {name}", "train or eval", kind)
            return None
    listed = entry.get("files", [entry])
    if not isinstance(listed, list):
        entries.note(f"files of {name}", "a list", listed)
        return None
    described = [
        _read_file(
            entries.mapping(file, f"an entry of files of {name}"), name, entries, needs_examples=stage in _OF_EXAMPLES
        )
        for file in listed
    ]
    in_name, counts = _NUMBER.search(name), _counts(entry)
    if len(listed) == 1:
        described = [file and dataclasses.replace(file, counts=counts) for file in described]
    return ListedShard(
        name=name,
        kind=kind,
        number=numbers[kind] if in_name is None else int(in_name[1]),
        has_number=in_name is not None,
        files=tuple(file for file in described if file is not None),
        counts=counts,
        seed=entries.number(entry, "random_seed", name, needed=stage == "examples"),
        inputs=_inputs(entry, name, entries),
    )


def _read_file(entry: Mapping[str, Any], shard: str, entries: _Entries, *, needs_examples: bool) -> ListedFile | None:
    name = entries.name(entry, "name", f"a file of {shard}") if entry else None
    if name is None:
        return None
    index = entries.name(entry, "index", name) if "index" in entry else None
    return ListedFile(
        name=name,
        size=entries.number(entry, "bytes", name),
        sha256=entries.digest(entry, "sha256", name),
        index=index,
        index_sha256=None if index is None else entries.digest(entry, "index_sha256", name),
        examples=entries.number(entry, "examples", name, needed=needs_examples),
        width=entries.number(entry, "width", name, needed=False),
    )


def _inputs(entry: Mapping[str, Any], name: str, entries: _Entries) -> Mapping[str, str]:
    inputs = entries.mapping(entry.get("inputs", {}), f"inputs of {name}")
    return {
        path: digest for path in inputs if (digest := entries.digest(inputs, path, f"inputs of {name}")) is not None
    }


def _counts(entry: Mapping[str, Any]) -> dict[str, int]:
    left_out = ("random_seed", "width", "bin")
    return {
        name: value
        for name, value in entry.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in left_out
    }


def _compare_sums(made: Mapping[str, Any], shards: Sequence[ListedShard], path: str) -> Iterator[Finding]:
    """Compares the counts of each split with the sums over its shards."""
    if made["stage"] == "eval":
        yield from _compare_picked(made, shards, path)
        return
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
    wanted, available = made["parameters"].get("num_examples_to_pick"), said.get("available")
    if isinstance(wanted, int) and isinstance(available, int):
        least = min(wanted, available)
        if said.get("picked") != least:
            expected = f"{least:,} (of {available:,}, {wanted:,} wanted)"
            yield _other("counts", path, "picked of eval", expected, repr(said.get("picked")))
    listed = [file for shard in shards for file in shard.files]
    sums = {"picked": sum(file.examples or 0 for file in listed), "bytes": sum(file.size or 0 for file in listed)}
    for name, count in sums.items():
        if said.get(name) != count:
            expected, found = f"{count:,}, the sum over the files", repr(said.get(name))[:_SHOWN]
            yield _other("counts", path, f"{name} of eval", expected, found)


def _other(check: str, path: str, place: str, expected: str, found: str) -> Finding:
    return finding(check, path, expected, found, f"{place} must be {expected}, not {found}; {_DO}")
