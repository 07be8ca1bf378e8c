"""Are two data sets the same records: in the same order, or as sets; and where do they first differ?

Both are read side by side, whatever formats they are in. Records are compared by hashes. From the first difference on
the hashes go to tables in the scratch directory, so that memory does not grow with the data.
"""

import concurrent.futures
import contextlib
import dataclasses
import tempfile
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.data_set import DataSet
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.verification import scratch as tables
from maskmill.verification.compared_parts import Part, bare_name, find_parts, paired
from maskmill.verification.compared_records import (
    Batch,
    Difference,
    Shown,
    documents_of,
    row_difference,
    rows_of,
    text_difference,
)
from maskmill.verification.findings import Checked, Finding, Severity, joined, makes_check, told
from maskmill.verification.pieces import PieceResult
from maskmill.verification.verify_targets import Target, VerifyPlan

# same_order: the same records in the same order. other_order: the same as sets, each as often. different: neither.
# unreadable: one of them could not be read to its end.
Verdict = Literal["same_order", "other_order", "different", "unreadable"]

CHECK = "same_records"
# Columns that say again what others say; not every format has them.
_FOLLOWING_COLUMNS = ("input_mask", "special_tokens_mask", "continuation_mask")
_HELD_HASHES = 1 << 20  # of a side in memory, before they are written
_Item = TypeVar("_Item")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedPart:
    """What came of a part: text or examples, of one split.

    Attributes:
      name: "training examples".
      unit: what its records are called: "documents" or "examples".
      verdict: whether it is the same.
      here, there: how many records each side has, as far as they were read.
      only_here, only_there: how many records one side has more often than the other.
      other_masks: how many of `only_here` are there with other masks.
      first: the first difference in order; None: there is none.
      problem: of unreadable ones, why.
    """

    name: str
    unit: str
    verdict: Verdict
    here: int
    there: int
    only_here: int = 0
    only_there: int = 0
    other_masks: int = 0
    first: Difference | None = None
    problem: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison(Checked):
    """What came of comparing; parts: in the order text, examples, picked examples, training before eval."""

    parts: tuple[ComparedPart, ...] = ()


@makes_check("all")
def check_against(plan: VerifyPlan, _results: Sequence[PieceResult]) -> Checked:
    """Compares what was verified with the data set `options.against`; what is the same is told by a note.

    Of a target that is not whole only its files are compared.

    Raises:
      UnusableInputError: there is no such data set, or nothing in it that could be compared.
    """
    options = plan.options
    if options.against is None:
        return Checked()
    parts = []
    by_path: dict[str, list[Target]] = {}
    for target in plan.targets:
        by_path.setdefault(",".join(target.named) or target.path, []).append(target)
    for path, of_path in by_path.items():
        names = {bare_name(piece.path) for target in of_path for piece in target.pieces}
        parts.append(
            compare(
                path,
                options.against,
                scratch=plan.scratch if files.is_local(plan.scratch) else None,
                vocab_file=options.vocab_file,
                any_order=options.any_order,
                names=names if options.shards is not None else None,
            )
        )
    return joined(parts)


def check_comparable(against: str, vocab_file: str | None = None) -> None:
    """Raises UnusableInputError if there is no data set under a path; so that this is said before all the work."""
    with contextlib.closing(open_ranges(against, cache_bytes=0)) as ranges:
        find_parts(against, ranges, vocab_file)


def compare(
    path: str,
    against: str,
    *,
    scratch: str | None = None,
    vocab_file: str | None = None,
    any_order: bool = False,
    names: Collection[str] | None = None,
) -> Comparison:
    """Compares two data sets: builds, directories of stages, text shards or TFRecords without a manifest.

    Args:
      path, against: the two; of one that is a single file, the other's file of the same name or its split counts.
      scratch: a local directory for hashes; None: a temporary one. Up to 32 bytes a record and side.
      vocab_file: the vocabulary of examples that have no copy of it; without one, differences show ids.
      any_order: whether the same records in another order are as good: then they are a note.
      names: only files with these names, without their suffixes, are compared; None: all are.

    Raises:
      UnusableInputError: one of the two is not a data set, or they have nothing that could be compared.
    """
    with contextlib.ExitStack() as stack:
        ranges = [stack.enter_context(contextlib.closing(open_ranges(side, cache_bytes=0))) for side in (path, against)]
        theirs = [part.opened() for part in find_parts(against, ranges[1], vocab_file)]
        try:
            ours = [part.opened() for part in find_parts(path, ranges[0], vocab_file)]
        except UnusableInputError as error:
            return Comparison(findings=[told(CHECK, path, "a data set", "none that can be read", str(error))])
        pairs = list(paired(ours, theirs))
        if not any(None not in pair for pair in pairs):
            raise UnusableInputError(
                f"{path} ({_names(ours)}) has nothing that could be compared with {against} ({_names(theirs)}); "
                "name two data sets of one kind."
            )
        compared: list[ComparedPart] = []
        findings: list[Finding] = []
        left_out = []
        if len(ours) > 1 and len(theirs) > 1:  # one file or part is compared with the one that it belongs to
            of_pairs = {(part.name, part.path) for pair in pairs for part in pair if part is not None}
            left_out = [part.name for part in (*ours, *theirs) if (part.name, part.path) not in of_pairs]
        for here, there in pairs:
            if here is None or there is None:
                findings.append(_missing(here, there, path, against))
                continue
            if names is not None:
                here, there = here.named(names), there.named(names)
                if len(here.files) != len(there.files):
                    left_out.append(f"these shards of the {here.name}")
                    continue
            with tempfile.TemporaryDirectory(prefix=files.scratch_prefix(), dir=scratch) as directory:
                part = _Comparing(here, there, directory).run()
            compared.append(part)
            findings += _findings_of(part, here, there, any_order)
    why = f"only one of the two has {', '.join(dict.fromkeys(left_out))}"
    return Comparison(
        parts=tuple(compared),
        findings=findings,
        looked_at={CHECK: sum(part.here for part in compared)},
        skipped={CHECK: why} if left_out else {},
    )


def _names(parts: Sequence[Part]) -> str:
    return ", ".join(part.name for part in parts) or "nothing"


def _missing(here: Part | None, there: Part | None, path: str, against: str) -> Finding:
    """A split that only one of two data sets has."""
    part = here or there
    has, lacks = (path, against) if here else (against, path)
    name = "" if part is None else part.name
    expected, found = (name if side else f"no {name}" for side in (there, here))
    message = f"{lacks} has no {name}, but {has} has; compare with a data set that has the same splits."
    return told(CHECK, path, expected, found, message)


def _findings_of(part: ComparedPart, here: Part, there: Part, any_order: bool) -> list[Finding]:
    findings = _findings_of_columns(here, there)
    if part.verdict == "unreadable":
        before = "" if part.first is None else f"{_place(part.first, here, there)}; "
        message = f"{before}{here.path} cannot be compared with {there.path} to the end ({part.name}): {part.problem}"
        return [*findings, _finding(here, part.first, "readable", "not readable", message)]
    if part.verdict == "same_order":
        message = (
            f"{here.path} and {there.path} have the same {part.here:,} {part.unit} in the same order ({part.name})."
        )
        count = f"{part.here:,} {part.unit}"
        return [*findings, _finding(here, None, count, count, message, "note")]
    place = _place(part.first, here, there)
    if part.verdict == "other_order":
        message = f"{place}; both have the same {part.here:,} {part.unit}, in another order ({part.name})."
        severity: Severity = "note" if any_order else "warning"
        return [*findings, _finding(here, part.first, "the same order", "another order", message, severity)]
    masks = f"; {part.other_masks:,} have the same text and other masks" if part.other_masks else ""
    message = (
        f"{place}; {part.only_here:,} of {part.here:,} {part.unit} here, and {part.only_there:,} of {part.there:,} "
        f"there, are not in the other{masks} ({part.name})."
    )
    finding = _finding(
        here, part.first, f"{part.there:,} {part.unit}", f"{part.here:,}, {part.only_here:,} of them not there", message
    )
    return [*findings, dataclasses.replace(finding, count=max(part.only_here, part.only_there))]


def _finding(
    here: Part, first: Difference | None, expected: str, found: str, message: str, severity: Severity = "error"
) -> Finding:
    shown = None if first is None else first.here
    path, record = (here.path, None) if shown is None else (shown.file, shown.record)
    return told(CHECK, path, expected, found, message, severity, record=record)


def _findings_of_columns(here: Part, there: Part) -> list[Finding]:
    """What two data sets differ in as a whole: columns, the lengths of rows, the vocabulary."""
    if here.data_set is None or there.data_set is None:
        return []
    findings = []
    ours, theirs = (
        {column.feature: column for column in part.data_set.columns} for part in (here, there) if part.data_set
    )
    for part, columns, others in ((here, ours, theirs), (there, theirs, ours)):
        lacking = [feature for feature in others if feature not in columns and feature not in _FOLLOWING_COLUMNS]
        if lacking:
            names = ", ".join(lacking)
            message = (
                f"{part.path} has no {names} ({part.name}), but the other data set has; only the rest is compared."
            )
            findings.append(_finding(here, None, names, "missing", message))
    width, other = ours["input_ids"], theirs["input_ids"]
    if width.width != other.width and not width.varies and not other.varies:
        message = (
            f"{here.path} has rows of {width.width:,} pieces, but {there.path} of {other.width:,} ({here.name}); they "
            "are compared without the padding at their ends."
        )
        findings.append(_finding(here, None, f"{other.width:,}", f"{width.width:,}", message, "warning"))
    if here.known.sha256 and there.known.sha256 and here.known.sha256 != there.known.sha256:
        message = f"{here.path} and {there.path} were made with different vocabularies ({here.name})."
        findings.append(_finding(here, None, there.known.sha256, here.known.sha256, message))
    return findings


def _place(first: Difference | None, here: Part, there: Part) -> str:
    """Where two parts first differ, as the beginning of a sentence."""
    if first is None:
        return f"{here.path} and {there.path} differ"
    columns = f" ({', '.join(first.columns)})" if first.columns else ""
    if first.here is not None and first.there is not None:
        return f"{_where(first.here)} has {first.here.words}, but {_where(first.there)} {first.there.words}{columns}"
    shorter, longer = (here, first.there) if first.here is None else (there, first.here)
    if longer is None:
        return f"{here.path} and {there.path} differ"
    return f"{shorter.path} ends after {first.number - 1:,} records, where {_where(longer)} has {longer.words}"


def _where(record: Shown) -> str:
    return f"{record.file}, {record.what} {record.record:,}"


class _Comparing:
    """Compares two parts; see `run`."""

    def __init__(self, here: Part, there: Part, scratch: str) -> None:
        self._parts = (here, there)
        self._spills = [_Spill(files.join(scratch, side)) for side in ("here", "there")]
        self._text_spills = [_Spill(files.join(scratch, f"{side}-text")) for side in ("here", "there")]
        self._counts = [0, 0]
        self._first: Difference | None = None

    def run(self) -> ComparedPart:
        """Reads both to their ends, and compares what is left from the first difference on as sets."""
        here, there = self._parts
        problem = here.problem or there.problem
        if problem is None:
            try:
                self._read()
            except (UnusableInputError, RunFailedError) as error:
                problem = str(error)
        only_here = only_there = other_masks = 0
        if problem is None and self._first is not None:
            only_here, only_there = _differences_of_sets(*self._spills)
            if here.kind == "examples":
                other_masks = only_here - _differences_of_sets(*self._text_spills)[0]
        verdict: Verdict = "unreadable"
        if problem is None:
            same_sets: Verdict = "same_order" if self._first is None else "other_order"
            verdict = "different" if only_here or only_there else same_sets
        return ComparedPart(
            name=here.name,
            unit="examples" if here.kind == "examples" else "documents",
            verdict=verdict,
            here=self._counts[0],
            there=self._counts[1],
            only_here=only_here,
            only_there=only_there,
            other_masks=other_masks,
            first=self._first,
            problem=problem,
        )

    def _read(self) -> None:
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(_ahead(stream)) for stream in _streams(*self._parts)]
            for sides in _side_by_side(streams):
                self._first = self._first or self._difference(*sides)
                for side, batch in enumerate(sides):
                    if batch is not None:
                        self._counts[side] += len(batch)
                        if self._first is not None:
                            self._spill(side, batch)

    def _spill(self, side: int, batch: Batch) -> None:
        self._spills[side].add(batch.hashes)
        if self._parts[0].kind == "examples":
            self._text_spills[side].add(batch.text_hashes())

    def _difference(self, here: Batch | None, there: Batch | None) -> Difference | None:
        """Where as many records of each side first differ, if they do; one is None once it has ended."""
        record = 0
        if here is not None and there is not None:
            differs = here.hashes != there.hashes
            if not differs.any():
                return None
            record = int(differs.argmax())
        number = self._counts[0 if here is not None else 1] + record + 1
        ours, theirs = (None if batch is None else (batch, record) for batch in (here, there))
        if self._parts[0].kind == "text":
            return text_difference(number, ours, theirs)
        return row_difference(number, ours, theirs, self._parts)


def _side_by_side(streams: Sequence[Iterator[Batch]]) -> Iterator[list[Batch | None]]:
    """As many records of each stream at a time; once one has ended, the other's alone."""
    batches = [next(stream, None) for stream in streams]
    while present := [len(batch) for batch in batches if batch is not None]:
        count = min(present)
        yield [None if batch is None else batch[:count] for batch in batches]
        for side, batch in enumerate(batches):
            if batch is not None:
                batches[side] = batch[count:] if len(batch) > count else next(streams[side], None)


def _streams(here: Part, there: Part) -> list[Iterator[Batch]]:
    if here.data_set is None or there.data_set is None:
        return [documents_of(part.files, part.ranges) for part in (here, there)]
    shared = shared_columns(here.data_set, there.data_set)
    return [rows_of(part.data_set, part.ranges, shared) for part in (here, there) if part.data_set is not None]


def shared_columns(here: DataSet, there: DataSet) -> dict[str, int]:
    """The columns that both data sets have, by feature, and how wide each is in the wider one."""
    widths = {column.feature: column.width for column in there.columns}
    return {
        column.feature: max(column.width, widths[column.feature]) for column in here.columns if column.feature in widths
    }


@contextlib.contextmanager
def _ahead(items: Iterator[_Item]) -> Iterator[Iterator[_Item]]:
    """Iterates in a thread that is one item ahead, so that two streams are read at the same time."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:

        def ahead() -> Iterator[_Item]:
            waiting = thread.submit(next, items, None)
            while (item := waiting.result()) is not None:
                waiting = thread.submit(next, items, None)
                yield item

        yield ahead()


class _Spill:
    """Hashes of a side in tables (scratch.py), whose paths have a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._held: list[npt.NDArray[np.uint64]] = []
        self._paths: list[str] = []

    def add(self, hashes: npt.NDArray[np.uint64]) -> None:
        """Takes hashes."""
        self._held.append(hashes)
        if sum(map(len, self._held)) >= _HELD_HASHES:
            self.tables()

    def tables(self) -> list[str]:
        """The tables of all hashes, once those are written that are held."""
        if self._held:
            self._paths.append(f"{self._prefix}-{len(self._paths)}")
            tables.write_rows(self._paths[-1], np.concatenate(self._held)[:, None])
            self._held = []
        return self._paths


def _differences_of_sets(here: _Spill, there: _Spill) -> tuple[int, int]:
    """How many hashes each side has more often than the other."""
    ours, only_here, only_there = here.tables(), 0, 0
    for merged in tables.merge_tables([*ours, *there.tables()]):
        starts, _ = tables.runs_of(merged.table[:, 0])
        more = np.add.reduceat(np.where(merged.owner < len(ours), 1, -1), starts)
        only_here += int(more[more > 0].sum())
        only_there -= int(more[more < 0].sum())
    return only_here, only_there
