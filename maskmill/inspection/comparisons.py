"""What is different in two builds, data sets, vocabularies or checkpoints."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.inspection import kinds
from maskmill.inspection.manifest_summaries import TIMINGS, plain, stages_of
from maskmill.inspection.opened_examples import Split
from maskmill.inspection.summaries import Fact, Summary, Table, Unit, Value, listed
from maskmill.inspection.summarizing import explained, summarize
from maskmill.inspection.vocabularies import open_vocabulary
from maskmill.reading.made_examples import manifest_in
from maskmill.reading.remote import open_ranges
from maskmill.storage import files, manifest

# Where examples lie does not count as a difference.
_PLACES = ("input", "output")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A figure that two summaries have otherwise: its section, its name, and both values; None: it is not there."""

    section: str
    name: str
    before: Value
    after: Value
    unit: Unit = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two paths of a kind have otherwise.

    Attributes:
      kind: what both are.
      before, after: the paths.
      differences: figures.
      tables: what else differs: files, pieces.
      notes: sentences.
    """

    kind: str
    before: str
    after: str
    differences: Sequence[Difference]
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """The comparison as JSON has it."""
        return {
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
            "differences": [dataclasses.asdict(difference) for difference in self.differences],
            **{table.title: table.as_dicts() for table in self.tables},
            "notes": list(self.notes),
        }


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
    with explained(other):
        if _kind(before.kind) == "vocabulary":
            tables += _pieces(path, other)
        else:
            made, made_after = _manifests(kinds.plain(path)), _manifests(kinds.plain(other))
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


def _manifests(path: str) -> dict[str, dict[str, Any]]:
    """The manifests by the folders of a build, or one by its stage; none if there is none."""
    with contextlib.closing(open_ranges(path)) as ranges:
        if kinds.kind_of(path, ranges) == "build":
            return stages_of(path, ranges)
        directory = files.parent(path) if files.base_name(path) == manifest.MANIFEST else path
        made = manifest_in(directory, ranges)
        return {} if made is None else {made["stage"]: made}


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
    return [Table("files", columns, rows)] if rows else []


def _sha256(made: Mapping[str, Any]) -> dict[str, str]:
    return {
        file["name"]: str(file.get("sha256")) for shard in made["shards"] for file in manifest.files_of_shard(shard)
    }


def _pieces(path: str, other: str) -> list[Table]:
    """The pieces that only one of two vocabularies has, and those with another id."""
    before, after = ({piece: id for id, piece in open_vocabulary(one).pieces} for one in (path, other))
    moved: list[tuple[Value, ...]] = [
        (piece, id, after[piece])
        for piece, id in sorted(before.items(), key=lambda item: item[1])
        if after.get(piece, id) != id
    ]
    tables = [
        Table(
            "pieces of both",
            ("in both", "with another id", "only before", "only after"),
            [(len(before.keys() & after), len(moved), len(before.keys() - after), len(after.keys() - before))],
        ),
        listed("with another id", ("piece", "id before", "id after"), moved),
    ]
    for title, has, lacks in (("only before", before, after), ("only after", after, before)):
        rows = [(piece, id) for piece, id in sorted(has.items(), key=lambda item: item[1]) if piece not in lacks]
        tables.append(listed(title, ("piece", "id"), rows))
    return [table for table in tables if table.rows]


def differences(before: Summary, after: Summary) -> Iterator[Difference]:
    """The figures that differ, in the order in which the summaries have them."""
    old, new = _by_name(before), _by_name(after)
    for section, name in dict.fromkeys([*old, *new]):
        one, other = old.get((section, name)), new.get((section, name))
        values = (None if one is None else one.value, None if other is None else other.value)
        if values[0] != values[1]:
            known = one or other
            yield Difference(
                section=section,
                name=name,
                before=values[0],
                after=values[1],
                unit=known.unit if known is not None else "",
            )


def _by_name(summary: Summary) -> dict[tuple[str, str], Fact]:
    """The figures of a summary by section and name; those of tables by the first column of their row, too."""
    facts = {(section.title, fact.name): fact for section in summary.sections for fact in section.facts}
    for table in summary.tables:
        for number, row in enumerate(table.rows):
            for column, value in enumerate(row[1:], 1):
                name = f"{row[0]}, {table.columns[column]}"
                facts[table.title, name] = Fact(name, value, table.unit_of(number, column))
    return facts
