"""What is different in two builds, data sets, vocabularies or checkpoints."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import MissingFileError, UnusableInputError
from maskmill.inspection import kinds
from maskmill.inspection.examples import Split
from maskmill.inspection.summaries import Comparison, Difference, Table, Value, differences, listed
from maskmill.inspection.summarizing import MOST_ROWS, TIMINGS, explained, plain, stages_of, summarize
from maskmill.inspection.vocabularies import open_vocabulary
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest

# Where examples lie is no difference between them.
_PLACES = ("input", "output")


@checked
def compare(
    path: str | os.PathLike[str],
    other: str | os.PathLike[str],
    *,
    split: Split | None = None,
    vocab_file: str | None = None,
) -> Comparison:
    """What is different in two paths of a kind: figures, options, files and pieces.

    Args:
      path, other: as `summarize` takes them: before and after.
      split, vocab_file: of examples, as for `summarize`.

    Raises:
      UnusableInputError: they are not of a kind, or nothing is known of one.
      RunFailedError: one cannot be read.
    """
    path, other = os.fspath(path), os.fspath(other)
    before, after = (summarize(named, split=split, vocab_file=vocab_file) for named in (path, other))
    if _kind(before.kind) != _kind(after.kind):
        raise UnusableInputError(
            f"{other}: this is not of the kind of {path} ({after.kind}, not {before.kind}); compare two of a kind."
        )
    found = [difference for difference in differences(before, after) if difference.section != TIMINGS]
    tables, notes = list[Table](), list[str]()
    with contextlib.ExitStack() as stack:
        stack.enter_context(explained(other))
        one, two = (_Opened(named, stack) for named in (path, other))
        if _kind(before.kind) == "vocabulary":
            tables += _pieces(one, two)
        else:
            made, made_after = one.manifests(), two.manifests()
            found += _options(made, made_after)
            tables += _files(made, made_after)
            if {"examples", "eval"} & {each["stage"] for each in made.values()}:
                notes.append(f"Whether the records are the same: maskmill verify {path} --against {other}")
    return Comparison(
        kind=before.kind, before=before.path, after=after.path, differences=found, tables=tables, notes=notes
    )


def _kind(kind: str) -> str:
    """What must be the same: "text shard" and "text shards" are, and picked examples may be compared with all."""
    return kind.removesuffix("s").removesuffix(" without a manifest").removeprefix("picked eval ").removesuffix("s")


class _Opened:
    """A path and what reads it."""

    def __init__(self, path: str, stack: contextlib.ExitStack) -> None:
        self.path = kinds.plain(path)
        self.ranges: ByteRanges = open_ranges(self.path)
        stack.callback(self.ranges.close)

    def manifests(self) -> dict[str, dict[str, Any]]:
        """The manifests by the folders of a build, or one by its stage; none where there is none."""
        if kinds.kind_of(self.path, self.ranges) == "build":
            return stages_of(self.path, self.ranges)
        for file in (self.path, files.join(self.path, manifest.MANIFEST)):
            if files.base_name(file) == manifest.MANIFEST:
                with contextlib.suppress(MissingFileError):
                    made = manifest.parse_manifest(file, self.ranges.read_all(file))
                    return {made["stage"]: made}
        return {}


def _options(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[Difference]:
    """The options that differ, stage by stage."""
    found = []
    for stage in before:
        if stage not in after:
            continue
        old, new = before[stage]["parameters"], after[stage]["parameters"]
        for name in dict.fromkeys([*old, *new]):
            values = plain(old.get(name)), plain(new.get(name))
            if values[0] != values[1] and name not in _PLACES:
                found.append(Difference(section=f"options of {stage}", name=name, before=values[0], after=values[1]))
    return found


def _files(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """How many files of each stage are the same, byte for byte."""
    rows = []
    for stage in dict.fromkeys([*before, *after]):
        old, new = (_sha256(made[stage]) if stage in made else {} for made in (before, after))
        same = sum(new.get(name) == sha256 for name, sha256 in old.items())
        both = len(old.keys() & new.keys())
        rows.append((stage, same, both - same, len(old) - both, len(new) - both))
    columns = ("stage", "the same", "other content", "only before", "only after")
    return [Table(title="files", columns=columns, rows=rows)] if rows else []


def _sha256(made: Mapping[str, Any]) -> dict[str, str]:
    return {
        file["name"]: str(file.get("sha256")) for shard in made["shards"] for file in manifest.files_of_shard(shard)
    }


def _pieces(one: _Opened, two: _Opened) -> list[Table]:
    """The pieces that only one of two vocabularies has, and those with another id."""
    before, after = ({piece: id for id, piece in reversed(open_vocabulary(each.path).pieces)} for each in (one, two))
    moved: list[tuple[Value, ...]] = [
        (piece, id, after[piece])
        for piece, id in sorted(before.items(), key=lambda item: item[1])
        if after.get(piece, id) != id
    ]
    tables = [
        Table(
            title="pieces of both",
            columns=("in both", "with another id", "only before", "only after"),
            rows=[(len(before.keys() & after), len(moved), len(before.keys() - after), len(after.keys() - before))],
        ),
        listed("with another id", ("piece", "id before", "id after"), moved, (), MOST_ROWS),
    ]
    for title, has, lacks in (("only before", before, after), ("only after", after, before)):
        rows = [(piece, id) for piece, id in sorted(has.items(), key=lambda item: item[1]) if piece not in lacks]
        tables.append(listed(title, ("piece", "id"), rows, (), MOST_ROWS))
    return [table for table in tables if table.rows]
