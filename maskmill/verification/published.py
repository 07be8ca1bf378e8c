"""Holds data sets against sizes and counts that were published (data/published.toml, each with its source)."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import MissingFileError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.verification.compared_parts import bare_name
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import PieceResult
from maskmill.verification.targets import Target

CHECK = "published"
_READ_BYTES = 8 << 20


@functools.cache
def published(name: str) -> Mapping[str, Any]:
    """What is published of a data set."""
    content = importlib.resources.files("maskmill.verification").joinpath("data/published.toml").read_text()
    data_set: Mapping[str, Any] = tomllib.loads(content)[name]
    return data_set


def check_published(targets: Sequence[Target], results: Sequence[PieceResult], options: VerifyOptions) -> Checked:
    """Holds what was verified against the published data set that `options.published` names.

    Only what is there is compared: text, TFRecords, picked examples, the vocabulary, and options in a manifest.
    """
    if options.published is None:
        return Checked()
    comparing = _Comparing(published(options.published))
    for target in targets:
        of_target = [result for result in results if any(result.piece is piece for piece in target.pieces)]
        of_files = [result for result in of_target if result.piece.kind in ("text", "examples")]
        with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
            comparing.compare_target(target, of_files, ranges)
    if not comparing.looked_at and not comparing.skipped:
        comparing.skipped.append("there is no file of which anything is published")
    return Checked(
        findings=tuple(comparing.findings),
        looked_at={CHECK: comparing.looked_at},
        skipped={CHECK: "; ".join(dict.fromkeys(comparing.skipped))} if comparing.skipped else {},
    )


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
                if entry["where"] == kind and _is_meant(entry, result):
                    self._compare_file(entry, result, ranges)
        if where == "text":
            self._compare_md5_list(target, ranges)
        self._compare_groups(where, target, results)

    def _compare_file(self, entry: Mapping[str, Any], result: PieceResult, ranges: ByteRanges) -> None:
        path, name = result.piece.path, entry["name"]
        self._compare(path, "bytes", entry["bytes"], result.size, name)
        if "samples" in entry:
            self._compare(path, "examples", entry["samples"], result.counts.get("examples"), name)
        if "md5" in entry and result.size == entry["bytes"]:
            self._compare_md5(path, entry["md5"], ranges, name)

    def _compare_md5_list(self, target: Target, ranges: ByteRanges) -> None:
        """Compares eval.md5, which is no text shard."""
        (entry,) = (entry for entry in self.published["files"] if "lines" in entry)
        path = files.join(target.directory, entry["name"])
        try:
            content = ranges.read_all(path)
        except MissingFileError:
            return
        self._compare(path, "lines", entry["lines"], content.count(b"\n"), entry["name"])
        if len(content) == entry["bytes"]:
            self._compare_md5(path, entry["md5"], ranges, entry["name"])

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
        if target.vocabulary is not None:
            with contextlib.closing(open_ranges(target.vocabulary, cache_bytes=0)) as ranges:
                self._compare_vocabulary(target.vocabulary, ranges)

    def _compare_vocabulary(self, path: str, ranges: ByteRanges) -> None:
        wanted = self.published["vocabulary"]
        try:
            size = ranges.size(path)
        except MissingFileError:
            return
        self._compare(path, "bytes", wanted["bytes"], size, "the vocab.txt")
        if size == wanted["bytes"]:
            self._compare_md5(path, wanted["md5"], ranges, "the vocab.txt")

    def _compare(self, path: str, unit: str, wanted: int, found: int | None, name: str) -> None:
        """Compares a number. unit: of what; name: what it is published of."""
        if found is None:
            return
        self.looked_at += 1
        if found != wanted:
            share = f"{abs(found - wanted) / wanted:.2%}"
            more = f"{abs(found - wanted):,} ({share}) {'more' if found > wanted else 'fewer'}"
            self._add(
                path,
                f"{wanted:,} {unit}",
                f"{found:,} {unit}",
                f"has {found:,} {unit}, {more} than the {wanted:,} published of {name}",
            )

    def _compare_md5(self, path: str, wanted: str, ranges: ByteRanges, name: str) -> None:
        self.looked_at += 1
        found = _md5_of(path, ranges)
        if found != wanted:
            self._add(path, wanted, found, f"has the md5 {found}, but {wanted} is published of {name}")

    def _add(self, path: str, wanted: str, found: str, what: str) -> None:
        title = self.published["title"].split(":")[0]
        self.findings.append(
            Finding(
                check=CHECK,
                severity="warning",
                file=path,
                expected=wanted,
                found=found,
                message=f"{path} {what} of {title}.",
            )
        )


def _is_meant(entry: Mapping[str, Any], result: PieceResult) -> bool:
    return bare_name(result.piece.path) in (entry["name"], entry.get("ours", entry["name"]))


def _md5_of(path: str, ranges: ByteRanges) -> str:
    digest, size = hashlib.md5(), ranges.size(path)
    for start in range(0, size, _READ_BYTES):
        digest.update(ranges.read(path, start, min(size, start + _READ_BYTES)).data)
    return digest.hexdigest()
