"""Are two data sets the same records: in the same order, or as sets; and where do they first differ?

Whatever formats both are in, records are compared by hashes, of which all are in memory: 16 bytes a record and side.
"""

import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection.decoding import RowDecoder
from maskmill.inspection.shown_text import shown
from maskmill.reading.data_set import ReadColumn
from maskmill.reading.kernels.row_hashes import add_column
from maskmill.reading.remote import open_ranges
from maskmill.records.features import OF_MASKS
from maskmill.records.shard_formats import suffixes
from maskmill.storage import files
from maskmill.verification.findings import Checked, Finding, Severity, makes_check, told
from maskmill.verification.pieces import Piece, PieceResult
from maskmill.verification.row_reading import Faults, RowReading
from maskmill.verification.text_checks import read_articles
from maskmill.verification.verify_targets import Target, VerifyPlan
from maskmill.verification.vocabulary_checks import load_named

_CHECK = "same_records"
# Columns that say again what others say; not every format has them.
_FOLLOWING_COLUMNS = ("input_mask", "special_tokens_mask", "continuation_mask")
_OF_TEXT = ("input_ids", "segment_ids", "next_sentence_labels")
_MOST_CHARACTERS = 120
_BESIDE = 6  # pieces on each side of a difference that are shown
_SPLITS = {"train": "training", "eval": "eval"}

Hashes = npt.NDArray[np.uint64]


@dataclasses.dataclass(frozen=True)
class _Part:
    """Files that are compared as one: a split of text, of examples or of picked ones."""

    name: str
    target: Target
    pieces: tuple[Piece, ...]

    @property
    def is_text(self) -> bool:
        return self.pieces[0].kind == "text"

    @property
    def path(self) -> str:
        """What messages call it."""
        return self.pieces[0].path if len(self.pieces) == 1 else self.target.path

    @property
    def columns(self) -> Mapping[str, ReadColumn]:
        rules = self.pieces[0].rules
        return {} if rules is None else {column.feature: column for column in rules.data_set.columns}


@makes_check("all")
def check_against(plan: VerifyPlan, _results: Sequence[PieceResult]) -> Checked:
    """Compares what was verified with the data set `options.against`; what is the same is told by a note.

    Raises:
      UnusableInputError: nothing in it could be compared.
    """
    if plan.options.against is None:
        return Checked()
    ours, theirs = _parts_of(plan.targets), _parts_of(plan.against)
    pairs = _paired(ours, theirs, is_part=plan.options.shards is not None)
    if not pairs:
        names = [", ".join(parts) or "nothing" for parts in (ours, theirs)]
        raise UnusableInputError(
            f"{plan.targets[0].path} ({names[0]}) has nothing that could be compared with {plan.options.against} "
            f"({names[1]}); name two data sets of one kind."
        )
    findings: list[Finding] = []
    count = 0
    for here, there in pairs:
        findings += _compare_columns(here, there)
        found, records = _compare(here, there, any_order=plan.options.any_order)
        findings.append(found)
        count += records
    lacking = (set(ours) ^ set(theirs)) - {part.name for pair in pairs for part in pair}
    why = {_CHECK: f"only one of the two has {', '.join(sorted(lacking))}"} if lacking and len(theirs) > 1 else {}
    return Checked(findings=findings, looked_at={_CHECK: count}, skipped=why)


def _parts_of(targets: Sequence[Target]) -> dict[str, _Part]:
    """The parts of data sets by their names, as "training examples"."""
    parts: dict[str, _Part] = {}
    for target in targets:
        for split, title in _SPLITS.items():
            pieces = [piece for piece in target.pieces if piece.split == split and piece.kind in ("text", "examples")]
            pieces.sort(key=lambda piece: (piece.shard, piece.path))
            if pieces:
                name = "picked eval examples" if target.kind == "eval" else f"{title} {target.kind}"
                parts.setdefault(name, _Part(name, target, tuple(pieces)))
    return parts


def _paired(ours: Mapping[str, _Part], theirs: Mapping[str, _Part], *, is_part: bool) -> list[tuple[_Part, _Part]]:
    """What is compared: one file with the file of its name, parts of one name, or what is alone with what is alone."""
    for sides in ((ours, theirs), (theirs, ours)):
        one, others = (list(side.values()) for side in sides)
        if len(one) == 1 and len(one[0].pieces) == 1:
            name = _bare_name(one[0].pieces[0].path)
            for other in others:
                of_name = tuple(piece for piece in other.pieces if _bare_name(piece.path) == name)
                if of_name and other.is_text == one[0].is_text:
                    pair = one[0], dataclasses.replace(other, pieces=of_name)
                    return [pair if sides[0] is ours else pair[::-1]]
    pairs = [(here, theirs[name]) for name, here in ours.items() if name in theirs]
    if not pairs and len(ours) == len(theirs) == 1:
        pairs = [(here, there) for here in ours.values() for there in theirs.values() if here.is_text == there.is_text]
    if not is_part:
        return pairs
    return [(here, dataclasses.replace(there, pieces=_same_names(here, there))) for here, there in pairs]


def _same_names(here: _Part, there: _Part) -> tuple[Piece, ...]:
    names = {_bare_name(piece.path) for piece in here.pieces}
    return tuple(piece for piece in there.pieces if _bare_name(piece.path) in names) or there.pieces


def _bare_name(path: str) -> str:
    """The name of a file without the suffixes of formats."""
    name = files.base_name(path)
    for suffix in (".gz", *suffixes()):
        name = name.removesuffix(suffix)
    return name


def _compare_columns(here: _Part, there: _Part) -> Iterator[Finding]:
    """What two data sets differ in as a whole: columns, the lengths of rows, the vocabulary."""
    if here.is_text:
        return
    for part, other in ((here, there), (there, here)):
        lacking = [name for name in other.columns if name not in part.columns and name not in _FOLLOWING_COLUMNS]
        if lacking:
            names = ", ".join(lacking)
            message = (
                f"{part.path} has no {names} ({part.name}), but the other data set has; only the rest is compared."
            )
            yield told(_CHECK, here.path, names, "missing", message)
    one, other_one = here.target.known.sha256, there.target.known.sha256
    if one and other_one and one != other_one:
        message = f"{here.path} and {there.path} were made with different vocabularies ({here.name})."
        yield told(_CHECK, here.path, other_one, one, message)


def _compare(here: _Part, there: _Part, *, any_order: bool) -> tuple[Finding, int]:
    """What came of comparing two parts, and how many records of the first were looked at."""
    shared = {
        name: max(c.width, there.columns[name].width) for name, c in here.columns.items() if name in there.columns
    }
    try:
        (ours, our_texts), (theirs, their_texts) = (_hashes(part, shared) for part in (here, there))
    except (UnusableInputError, RunFailedError) as error:
        message = f"{here.path} cannot be compared with {there.path} to the end ({here.name}): {error}"
        return told(_CHECK, here.path, "readable", "not readable", message), 0
    unit, count = "documents" if here.is_text else "examples", len(ours)
    if np.array_equal(ours, theirs):
        message = f"{here.path} and {there.path} have the same {count:,} {unit} in the same order ({here.name})."
        return told(_CHECK, here.path, f"{count:,} {unit}", f"{count:,} {unit}", message, "note"), count
    least = min(len(ours), len(theirs))
    differs = np.flatnonzero(ours[:least] != theirs[:least])
    first = int(differs[0]) if len(differs) else least
    path, record, place = _first_difference(here, there, first, shared)
    only_here, only_there = _difference_of_sets(ours, theirs)
    if not only_here and not only_there:
        severity: Severity = "note" if any_order else "warning"
        message = f"{place}; both have the same {count:,} {unit}, in another order ({here.name})."
        return told(_CHECK, path, "the same order", "another order", message, severity, record=record), count
    masks = only_here - _difference_of_sets(our_texts, their_texts)[0]
    more = f"; {masks:,} have the same text and other masks" if masks and not here.is_text else ""
    message = (
        f"{place}; {only_here:,} of {count:,} {unit} here, and {only_there:,} of {len(theirs):,} there, are not in the "
        f"other{more} ({here.name})."
    )
    expected, found = f"{len(theirs):,} {unit}", f"{count:,}, {only_here:,} of them not there"
    how_often = max(only_here, only_there)
    return told(_CHECK, path, expected, found, message, record=record, count=how_often), count


def _difference_of_sets(ours: Hashes, theirs: Hashes) -> tuple[int, int]:
    """How many hashes each side has more often than the other."""
    hashes, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    more = np.bincount(places[: len(ours)], minlength=len(hashes)) - np.bincount(
        places[len(ours) :], minlength=len(hashes)
    )
    return int(more[more > 0].sum()), int(-more[more < 0].sum())


def _hashes(part: _Part, shared: Mapping[str, int]) -> tuple[Hashes, Hashes]:
    """The hashes of all records, and those of their text alone, masks undone. shared: the columns, and their widths."""
    found: list[tuple[Hashes, Hashes]] = [(np.zeros(0, np.uint64), np.zeros(0, np.uint64))]
    for piece in part.pieces:
        if part.is_text:
            digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in _documents(piece))
            found.append((np.frombuffer(digests, np.uint64),) * 2)
            continue
        for _, reading, count in _blocks(piece):
            every, texts = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
            for name, width in shared.items():
                values = reading.rows.arrays[name][:count]
                _add(every, values, part.columns[name], width)
                if name in _OF_TEXT:
                    text = reading.rows.original_pieces(slice(count)) if name == "input_ids" else values
                    _add(texts, text, part.columns[name], width)
            found.append((every, texts))
    every, texts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return every, texts


def _add(hashes: Hashes, values: npt.NDArray[Any], column: ReadColumn, width: int) -> None:
    if values.dtype == np.float32:
        values = (values + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    add_column(hashes, np.ascontiguousarray(values, np.int32), width, column.fill or 0, column.fill is None)


def _documents(piece: Piece) -> Iterator[bytes]:
    with contextlib.closing(open_ranges(piece.path, cache_bytes=0)) as ranges:
        for articles in read_articles(piece.path, ranges):
            yield from (article.removesuffix(b"\n") for article in articles)


def _blocks(piece: Piece) -> Iterator[tuple[int, RowReading, int]]:
    """Reads rows block by block: the number of records before it, what has its rows, and how many they are.

    Raises:
      UnusableInputError: a record cannot be read.
    """
    if piece.rules is None:
        raise UnusableInputError(f"{piece.path}: it is not known what the rows look like.")
    with contextlib.closing(open_ranges(piece.path, cache_bytes=0)) as ranges:
        faults = Faults(piece.path)
        reading, before = RowReading(piece.rules.data_set, ranges, faults), 0
        for numbers in reading.blocks():
            if problems := faults.findings():
                raise UnusableInputError(problems[0].message)
            yield before, reading, len(numbers)
            before += len(numbers)


# ---- the first difference


def _first_difference(here: _Part, there: _Part, number: int, shared: Mapping[str, int]) -> tuple[str, int | None, str]:
    """The file and record in which two parts first differ, and both records as the beginning of a sentence."""
    find = _document_at if here.is_text else _row_at
    ours, theirs = (find(part, number) for part in (here, there))
    if ours is None or theirs is None:
        shorter, longer = (here, there) if ours is None else (there, here)
        return here.path, None, f"{shorter.path} ends after {number:,} records, where {longer.path} goes on"
    (path, record, words, rows), (other_path, other_record, other_words, other_rows) = ours, theirs
    columns = ""
    if rows is not None and other_rows is not None:
        differ = [name for name in shared if not _are_equal(rows[name], other_rows[name])]
        columns = f" ({', '.join(differ)})"
        at = [place for name in differ for place in _places(name, rows[name], other_rows[name], rows)]
        words, other_words = (_near(text, min(at, default=0)) for text in (words, other_words))
    said, other_said = ("“" + shown(" ".join(text))[:_MOST_CHARACTERS] + "”" for text in (words, other_words))
    noun = "document" if here.is_text else "record"
    return (
        path,
        record,
        (f"{path}, {noun} {record:,} has {said}, but {other_path}, {noun} {other_record:,} {other_said}{columns}"),
    )


_Rows = Mapping[str, npt.NDArray[np.generic]]
_Found = tuple[str, int, list[str], _Rows | None]


def _are_equal(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> bool:
    least = min(len(one), len(other))
    return np.array_equal(one[:least], other[:least])


def _places(name: str, one: npt.NDArray[np.generic], other: npt.NDArray[np.generic], rows: _Rows) -> Iterator[int]:
    """The piece of a row at which a column first differs."""
    least = min(len(one), len(other))
    first = int(np.flatnonzero(one[:least] != other[:least])[0])
    yield int(rows[OF_MASKS[0]][first]) if name in OF_MASKS else first


def _near(words: list[str], at: int) -> list[str]:
    return words[max(0, at - _BESIDE) : at + _BESIDE + 1] or ["padding"]


def _document_at(part: _Part, number: int) -> _Found | None:
    """A document of a part by its number, from 0."""
    for piece in part.pieces:
        for place, text in enumerate(_documents(piece), 1):
            if not number:
                return piece.path, place, text.decode("utf-8", "replace").split(), None
            number -= 1
    return None


def _row_at(part: _Part, number: int) -> _Found | None:
    """A row of a part by its number, from 0: its words, a piece each, and its values."""
    path = part.target.known.path
    vocabulary = None if path is None else load_named(path)[0].vocabulary
    for piece in part.pieces:
        last = 0
        for before, reading, count in _blocks(piece):
            row = number - before
            if row < count:
                data_set = piece.rules.data_set
                listed = (dataclasses.replace(data_set.files[0], samples=number + 1),)
                decoder = RowDecoder(
                    data_set=dataclasses.replace(data_set, files=listed),
                    vocabulary=vocabulary,
                    objective=piece.rules.objective,
                )
                pieces = decoder.decode(reading.rows, row, number).pieces
                words = [f"[{p.text}={p.label}]" if p.label is not None else p.text for p in pieces]
                return piece.path, number + 1, words, {n: a[row].copy() for n, a in reading.rows.arrays.items()}
            last = before + count
        number -= last
    return None
