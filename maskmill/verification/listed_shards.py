"""Read the entries of a manifest. If one is invalid, the manifest is not used, and its files are checked without it."""

import collections
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.arguments import fits
from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.options import hints_of
from maskmill.records import shard_formats
from maskmill.records.options import FormatOptions

_NUMBER = re.compile(r"-(\d{1,9})-of-\d+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHOWN = 60
_NO_COUNTS = ("random_seed", "width", "bin", "index_bytes")
# The types of the values of a manifest's entries; other values are not read.
_TEXT, _NUMBER_IF_ANY = str | None, int | None
_OF_OPTIONS: Mapping[str, Any] = {
    **dict.fromkeys(("vocab_file", "tokenizer_file", "vocab_file_sha256", "tokenizer_file_sha256"), _TEXT),
    "compat": str,
    "num_examples_to_pick": int,
    "one_seed": bool,
    "packed": bool,
    "input": list | str,
    "sources": dict | None,
    "duplicate_pieces": str,
    "random_seed": int,
}
_OF_COUNTS: Mapping[str, tuple[str, ...]] = {
    "train": ("documents",),
    "eval": ("documents", "available", "picked", "bytes"),
    "extract": ("documents", "over_max_documents"),
    "paragraphs": ("emptied_documents",),
}
_OF_EXAMPLES = {"vocabulary_size": int, "special_ids": dict, "format": str, "schema": list}
_OF_SHARD = {"name": str, "random_seed": _NUMBER_IF_ANY, "inputs": dict | None, "files": list | None}
_OF_FILE: Mapping[str, Any] = {
    "name": str,
    "bytes": int,
    "sha256": str,
    "index": _TEXT,
    "index_sha256": _TEXT,
    "examples": _NUMBER_IF_ANY,
    "width": _NUMBER_IF_ANY,
}
_DIGEST = "a sha256 in hexadecimal"
_LARGEST = 2**31 - 1  # of sizes of vocabularies, and of widths


@dataclasses.dataclass(frozen=True, kw_only=True)
class ListedFile:
    """A file of a shard, as the manifest lists it.

    Attributes:
      name: below the directory.
      size, sha256: of its content; None: not listed.
      index, index_sha256: of its index of records; None: it has none.
      examples: the number of its examples; None: not listed.
      width: of its bin; None without bins.
      counts: of the shard, if this is its only file.
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
      number: the one in its name, else its place among those of its kind; from 0.
      has_number: whether its name has a number.
      files: one or more.
      counts: by name.
      seed: its own; None: not listed.
      inputs: the sha256 of each of its inputs, by path.
    """

    name: str
    kind: str
    number: int
    has_number: bool
    files: tuple[ListedFile, ...]
    counts: Mapping[str, int]
    seed: int | None
    inputs: Mapping[str, str]


def options_of(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of examples in a manifest, completed by its "decided"."""
    return dict(made.get("examples", made["parameters"])) | dict(made.get("decided", {}))


def read_listed(made: Mapping[str, Any]) -> tuple[ListedShard, ...]:
    """Return the shards that a manifest lists, after checking all its entries; its outline was checked before.

    Raises:
      UnusableInputError: an entry is invalid; the message is a clause.
    """
    stage = made["stage"]
    hints = dict(_OF_OPTIONS) | hints_of(MaskingOptions) | hints_of(ObjectiveOptions) | hints_of(FormatOptions)
    for name in ("parameters", "decided", "examples"):
        part = made.get(name, {})
        if stage == "vocabulary" and name == "parameters":
            continue  # options that were left open are None; `decided` has them
        _check(part, {key: hint for key, hint in hints.items() if isinstance(part, dict) and key in part}, name)
    for step, names in _OF_COUNTS.items():
        _check(made["counts"].get(step, {}), dict.fromkeys(names, _NUMBER_IF_ANY), f"counts of {step}")
    for source in (made.get("decided", {}).get("sources") or {}).values():
        _check(source, {"used": _NUMBER_IF_ANY, "held_out": _NUMBER_IF_ANY, "epochs": int | float | None}, "a source")
    for entry in made["inputs"]:
        _check(entry, {"path": str, "sha256": str}, "an input")
        _need(
            is_digest(entry["sha256"]),
            f"sha256 of the input {entry['path']}",
            "a sha256 in hexadecimal",
            entry["sha256"],
        )
    if stage == "eval":
        _check(made, {name: hint for name, hint in _OF_EXAMPLES.items() if name in made}, "")
    if stage == "examples":
        _check(made, _OF_EXAMPLES, "")
        _need(made["format"] in shard_formats.NAMES, "format", "one of maskmill's", made["format"])
        _need(0 <= made["vocabulary_size"] <= _LARGEST, "vocabulary_size", "a whole number", made["vocabulary_size"])
        ids = list(made["special_ids"].values())
        _need(fits(ids, Sequence[int | None]), "special_ids", "whole numbers", ids)
    if made.get("vocabulary") is not None:
        _read_file(made["vocabulary"])
    numbers: collections.Counter[str] = collections.Counter()
    seen: collections.Counter[str] = collections.Counter()
    shards = []
    for entry in made["shards"]:
        shard = _read_shard(entry, numbers, stage)
        seen.update(file.name for file in shard.files)
        _need(all(seen[file.name] == 1 for file in shard.files), f"a file of {shard.name}", "listed once", "twice")
        numbers[shard.kind] += 1
        shards.append(shard)
    return tuple(shards)


def _need(is_right: bool, place: str, expected: str, found: Any) -> None:
    if not is_right:
        shown = found if isinstance(found, str) else repr(found)
        raise UnusableInputError(f"{place} must be {expected}, not {shown[:_SHOWN]}")


def _check(entry: Any, hints: Mapping[str, Any], where: str) -> None:
    """Raise UnusableInputError if a value of an entry has another type."""
    _need(isinstance(entry, dict), where, "a mapping", entry)
    for key, hint in hints.items():
        _need(fits(entry.get(key), hint), f"{key} of {where}" if where else key, "another value", entry.get(key))


def is_below(name: Any) -> bool:
    """Return whether a value is the name of a file below a directory, without `..` and the like."""
    if not isinstance(name, str) or "://" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return False
    return name.isprintable()


def is_digest(value: Any) -> bool:
    """Return whether a value is a sha256 in hexadecimal."""
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _read_shard(entry: Any, numbers: Mapping[str, int], stage: str) -> ListedShard:
    _check(entry, _OF_SHARD, "a shard")
    name, kind, inputs = entry["name"], entry.get("kind") if stage != "vocabulary" else "", entry.get("inputs") or {}
    _need(kind in ("train", "eval", "") and (kind != "") == (stage != "vocabulary"), name, "of train or eval", kind)
    _need(stage != "examples" or entry.get("random_seed") is not None, f"random_seed of {name}", "a number", None)
    _need(all(map(is_digest, inputs.values())), f"inputs of {name}", "digests by path", inputs)
    files = [_read_file(file) for file in entry.get("files") or [entry]]
    counts = {key: count for key, count in entry.items() if fits(count, int) and key not in _NO_COUNTS}
    if len(files) == 1:
        files = [dataclasses.replace(files[0], counts=counts)]
    in_name = _NUMBER.search(name)
    return ListedShard(
        name=name,
        kind=kind,
        number=numbers[kind] if in_name is None else int(in_name[1]),
        has_number=in_name is not None,
        files=tuple(files),
        counts=counts,
        seed=entry.get("random_seed"),
        inputs=inputs,
    )


def _read_file(entry: Any) -> ListedFile:
    _check(entry, _OF_FILE, "a file")
    values = {name: entry.get(name) for name in _OF_FILE}
    for below in (values["name"], values["index"] or values["name"]):
        _need(is_below(below), "a name", "that of a file below the directory", below)
    _need(is_digest(values["sha256"]), f"sha256 of {values['name']}", _DIGEST, values["sha256"])
    _need(0 < (values["width"] or 1) <= _LARGEST, f"width of {values['name']}", "a width", values["width"])
    return ListedFile(size=values.pop("bytes"), **values)
