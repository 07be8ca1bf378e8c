"""Compares data sets with sizes and counts that were published (data/published.toml, each with its source)."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import MissingFileError
from maskmill.reading.byte_ranges import ByteRanges, forward
from maskmill.reading.remote import open_ranges
from maskmill.verification.compared_parts import bare_name
from maskmill.verification.findings import Checked, Finding, makes_check, told
from maskmill.verification.pieces import PieceResult
from maskmill.verification.verify_targets import Target, VerifyPlan

CHECK = "published"
_READ_BYTES = 8 << 20


@functools.cache
def published(name: str) -> Mapping[str, Any]:
    """What is published of a data set."""
    content = importlib.resources.files("maskmill.verification").joinpath("data/published.toml").read_text()
    data_set: Mapping[str, Any] = tomllib.loads(content)[name]
    return data_set


@makes_check("all")
def check_published(plan: VerifyPlan, results: Sequence[PieceResult]) -> Checked:
    """Compares what was verified with the published data set that `options.published` names.

    Only what is there is compared: text, TFRecords, picked examples, the vocabulary, and options in a manifest.
    """
    if plan.options.published is None:
        return Checked()
    comparing = _Comparing(published(plan.options.published))
    for target in plan.targets:
        places = {piece.path for piece in target.pieces}
        of_files = [r for r in results if r.piece.kind in ("text", "examples") and r.piece.path in places]
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            comparing.compare_target(target, of_files, ranges)
    if not comparing.looked_at and not comparing.skipped:
        comparing.skipped.append("there is no file of which anything is published")
    why = {CHECK: "; ".join(dict.fromkeys(comparing.skipped))} if comparing.skipped else {}
    return Checked(findings=comparing.findings, looked_at={CHECK: comparing.looked_at}, skipped=why)


@dataclasses.dataclass
class _Comparing:
    """What came of comparing. published: the entry of the data set."""

    published: Mapping[str, Any]
    findings: list[Finding] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)
    looked_at: int = 0

    def compare_target(self, target: Target, results: Sequence[PieceResult], ranges: ByteRanges) -> None:
        """Compares what is published of data like this target."""
        where = {"text": "text", "examples": "examples", "eval": "picked"}.get(target.kind)
        if where is None:
            return
        if where != "text":
            self._compare_options(target, results)
        is_comparable = all(result.piece.format in (None, "tfrecord") for result in results)
        if not is_comparable:
            self.skipped.append("sizes of examples are published of TFRecords")
            return
        for entry in self.published["files"]:
            for result in results:
                kind = "picked" if bare_name(result.piece.path) == "eval_10k" else where
                names = entry["name"], entry.get("ours", entry["name"])
                if entry["where"] == kind and bare_name(result.piece.path) in names:
                    self._compare_file(entry, result.piece.path, result.size, ranges)
                    if "samples" in entry:
                        samples = result.counts.get("examples")
                        self._compare(result.piece.path, "examples", entry["samples"], samples, entry["name"])
        if where == "text":
            (listed,) = (entry for entry in self.published["files"] if "lines" in entry)
            path = target.file(listed["name"])
            with contextlib.suppress(MissingFileError):
                self._compare_file(listed, path, ranges.size(path), ranges)
        self._compare_groups(where, target, results)

    def _compare_file(self, entry: Mapping[str, Any], path: str, size: int | None, ranges: ByteRanges) -> None:
        """Compares the content of a file that is published, if it has its size."""
        if "lines" in entry:
            content = ranges.read_all(path)
            self._compare(path, "lines", entry["lines"], content.count(b"\n"), entry["name"])
        else:
            self._compare(path, "bytes", entry["bytes"], size, entry["name"])
        if "md5" in entry and size == entry["bytes"]:
            self.looked_at += 1
            found = _md5_of(path, ranges)
            if found != entry["md5"]:
                what = f"has the md5 {found}, but {entry['md5']} is published of {entry['name']}"
                self._add(path, entry["md5"], found, what)

    def _compare_groups(self, where: str, target: Target, results: Sequence[PieceResult]) -> None:
        train = [result for result in results if result.piece.split == "train"]
        for group in self.published["groups"]:
            if group["where"] != where or not train:
                continue
            if not target.is_whole:
                self.skipped.append("what is published of all shards together needs all of them")
                continue
            self._compare(target.directory, "training shards", group["files"], len(train), "those")
            if "bytes" in group:
                sizes = [result.size for result in train if result.size is not None]
                self._compare(target.directory, "bytes of training shards", group["bytes"], sum(sizes), "those")

    def _compare_options(self, target: Target, results: Sequence[PieceResult]) -> None:
        """Compares the options of a manifest, or else what files tell, and the vocabulary."""
        wanted: Mapping[str, Any] = self.published["options"]
        found = {} if target.made is None else dict(target.made["parameters"]) | dict(target.made.get("decided", {}))
        if target.made is None and results and results[0].piece.rules is not None:
            data_set = results[0].piece.rules.data_set
            found = {"max_seq_length": data_set.width, "max_predictions_per_seq": data_set.predictions}
        for name in wanted.keys() & found.keys():
            self.looked_at += 1
            if found[name] != wanted[name]:
                values = f"{wanted[name]}", f"{found[name]}"
                self._add(target.directory, *values, f"has {name} {found[name]}, but {wanted[name]} is published")
        if target.known.path is not None:
            path, of_vocabulary = target.known.path, self.published["vocabulary"] | {"name": "the vocab.txt"}
            with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges, contextlib.suppress(MissingFileError):
                self._compare_file(of_vocabulary, path, ranges.size(path), ranges)

    def _compare(self, path: str, unit: str, wanted: int, found: int | None, name: str) -> None:
        """Compares a number. unit: of what; name: what it is published of."""
        if found is None:
            return
        self.looked_at += 1
        if found != wanted:
            share = f"{abs(found - wanted) / wanted:.2%}"
            more = f"{abs(found - wanted):,} ({share}) {'more' if found > wanted else 'fewer'}"
            what = f"has {found:,} {unit}, {more} than the {wanted:,} published of {name}"
            self._add(path, f"{wanted:,} {unit}", f"{found:,} {unit}", what)

    def _add(self, path: str, wanted: str, found: str, what: str) -> None:
        title = self.published["title"].split(":")[0]
        self.findings.append(told(CHECK, path, wanted, found, f"{path} {what} of {title}.", "warning"))


def _md5_of(path: str, ranges: ByteRanges) -> str:
    digest, size, ranges = hashlib.md5(), ranges.size(path), forward(ranges)
    for start in range(0, size, _READ_BYTES):
        digest.update(ranges.read(path, start, min(size, start + _READ_BYTES)).data)
    return digest.hexdigest()
