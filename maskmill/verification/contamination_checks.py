"""Text of other test sets in the data: whether 13 words in a row of a test set are in it.

This is how Brown et al. 2020 (GPT-3, appendix C) look for test sets in training data.
"""

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection.decoding import Words
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.storage import files
from maskmill.tokenization.text_blocks import BLOCK_BYTES
from maskmill.tokenization.vocabulary import DuplicatePieces, Vocabulary, load_vocabulary
from maskmill.verification.findings import Checked, Finding, finding, looked, makes_check, skipped
from maskmill.verification.grams import GramHasher, GramIndex
from maskmill.verification.kernels import word_grams as kernels
from maskmill.verification.pieces import Piece
from maskmill.verification.row_reading import piece_blocks
from maskmill.verification.row_rules import RowRules

_CHECK = "contamination"
_SHOWN = 100  # characters of the text that is shown
_ROOM = 1 << 20  # bytes of text of rows at a time


@dataclasses.dataclass(frozen=True, eq=False)
class TestGrams:
    """The grams of test sets: each 13 words in a row.

    Attributes:
      index: of the grams.
      files: int64[grams], which file each is in, the first that has it. lines: int64[grams], where, from 1.
      paths: of the files.
    """

    index: GramIndex
    files: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    paths: tuple[str, ...]


@functools.lru_cache(maxsize=1)
def load_grams(paths: tuple[str, ...]) -> TestGrams:
    """Reads test sets: text files, as UTF-8. Memory: some 30 bytes for each of their words.

    Raises:
      UnusableInputError: a file is missing, or none has 13 words in a row.
    """
    hasher, found = GramHasher(), []
    for number, path in enumerate(paths):
        for text, lines_before in _text_blocks(path):
            hashes, places = hasher.hash_text(text)
            lines = np.searchsorted(np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")), places) + lines_before
            found.append((hashes.copy(), np.full(len(hashes), number), lines + 1))
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    if not joined or not len(joined[0]):
        raise UnusableInputError(
            f"{', '.join(paths)}: there are no {kernels.WORDS} words in a row in these files, so nothing can be "
            "compared with them; name text files with --contamination."
        )
    hashes, first = np.unique(joined[0], return_index=True)
    return TestGrams(GramIndex(hashes), joined[1][first], joined[2][first], paths)


def _text_blocks(path: str) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole documents of a text file, and the lines before each; what is not UTF-8 is replaced."""
    pending, lines = b"", 0
    with files.open_input(path) as file:
        while content := file.read(BLOCK_BYTES):
            pending += content
            end = pending.rfind(b"\n\n") + 2
            if end > 1:
                yield pending[:end].decode("utf-8", "replace").encode(), lines
                lines += pending.count(b"\n", 0, end)
                pending = pending[end:]
    if pending:
        yield pending.decode("utf-8", "replace").encode(), lines


@dataclasses.dataclass
class _Hits:
    """What was found in a file: the first place with its words, and by file of the test set its grams.

    first: line or record, from 1, which gram of the test set, and the words.
    """

    first: tuple[int, int, str] | None = None
    grams: dict[int, set[int]] = dataclasses.field(default_factory=dict)
    looked_at: int = 0

    def add(self, grams: TestGrams, places: npt.NDArray[np.int64], first: tuple[int, str]) -> None:
        """Adds grams, of which the first stands at a line or record."""
        if self.first is None:
            self.first = (first[0], int(places[0]), first[1])
        for file in np.unique(grams.files[places]).tolist():
            self.grams.setdefault(file, set()).update(places[grams.files[places] == file].tolist())


@makes_check("file", "text", "examples")
def check_contamination(piece: Piece, ranges: ByteRanges) -> Checked:
    """Looks for the test sets of a piece in its text, or in the text of its rows, where these are of the training data.

    Raises:
      UnusableInputError: a test set cannot be used.
    """
    if not piece.contamination or piece.split == "eval":
        return Checked()  # nobody trains on eval data, and it may be the test set itself
    grams = load_grams(piece.contamination)
    hits = _Hits()
    try:
        if piece.kind == "text":
            _look_at_text(piece.path, grams, hits)
        elif piece.rules is None or piece.rules.vocabulary_file is None:
            return skipped(f"the vocabulary of {piece.path} is not there", _CHECK)
        else:
            _look_at_rows(piece, ranges, grams, hits)
    except (UnusableInputError, RunFailedError) as error:
        return dataclasses.replace(skipped(error, _CHECK), looked_at={_CHECK: hits.looked_at})
    return looked(_CHECK, *_findings(piece, grams, hits), count=hits.looked_at)


def _look_at_text(path: str, grams: TestGrams, hits: _Hits) -> None:
    hasher = GramHasher()
    for text, lines_before in _text_blocks(path):
        hashes, places = hasher.hash_text(text)
        found, of_test = grams.index.find(hashes)
        hits.looked_at += text.count(b"\n")
        if len(found):
            start = int(places[found[0]])
            hits.add(grams, of_test, (lines_before + text.count(b"\n", 0, start) + 1, _shown(text[start:])))


def _look_at_rows(piece: Piece, ranges: ByteRanges, grams: TestGrams, hits: _Hits) -> None:
    hasher, writer = GramHasher(), _PieceWriter(piece.rules)
    for block in piece_blocks(piece, ranges):
        hits.looked_at += block.count
        for first, text, ends in writer.texts(block.rows.original_pieces(slice(block.count)), block.lengths):
            hashes, places = hasher.hash_padded(text, int(ends[-1]))
            found, of_test = grams.index.find(hashes)
            if len(found):
                start = int(places[found[0]])
                row = first + int(np.searchsorted(ends, start, side="right"))
                shown = _shown(text[start : start + 4 * _SHOWN].tobytes())
                hits.add(grams, of_test, (int(block.numbers[row]), shown))


class _PieceWriter:
    """Writes the text of rows."""

    def __init__(self, rules: RowRules) -> None:
        texts = _texts_of(_load(str(rules.vocabulary_file), rules.is_tokenizer, rules.duplicates))
        self._pieces = np.frombuffer(b"".join(texts) + b"\n", np.uint8).copy()
        self._starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        self._text = np.empty(_ROOM, np.uint8)

    def texts(
        self, ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64]
    ) -> Iterator[tuple[int, npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
        """Yields the text of some rows after the other: the first of them, the text, and where each row's ends."""
        ids = np.minimum(np.maximum(ids, 0), len(self._starts) - 2)  # ids that are none are named by another check
        first = 0
        while first < len(ids):
            ends = np.zeros(len(ids) - first, np.int64)
            rest, rest_lengths = ids[first:].copy(), lengths[first:].copy()
            count = kernels.write_pieces(rest, rest_lengths, len(rest), self._starts, self._pieces, self._text, ends)
            if count:
                yield first, self._text, ends[:count]
                first += count
            else:  # a row of very long pieces
                self._text = np.empty(2 * len(self._text), np.uint8)


@functools.lru_cache(maxsize=1)
def _load(path: str, is_tokenizer: bool, duplicates: DuplicatePieces) -> Vocabulary:
    if not is_tokenizer:
        return load_vocabulary(path, duplicates)
    # The library is imported only where it is needed: it takes a moment.
    from maskmill.tokenization.tokenizers import load_tokenizer

    return load_tokenizer(path, files.read_bytes(path)).vocabulary


def _texts_of(vocabulary: Vocabulary) -> list[bytes]:
    """What each id adds to a text, with the blank before it."""
    texts, words = [b" "] * vocabulary.size, Words(vocabulary)
    for id in vocabulary.ids.tolist():
        texts[id] = words.joint(id)
    for id in (vocabulary.cls_id, vocabulary.sep_id):
        texts[id] = b"\n"
    return texts


def _shown(text: bytes) -> str:
    """The beginning of a text, on one line."""
    words = text[: 4 * _SHOWN].decode("utf-8", "ignore").split()
    shown = " ".join(words[: kernels.WORDS])
    return shown[:_SHOWN] + ("…" if len(shown) > _SHOWN else "")


def _findings(piece: Piece, grams: TestGrams, hits: _Hits) -> Iterator[Finding]:
    """One finding, for all that a file has of the test sets."""
    if hits.first is None:
        return
    number, gram, shown = hits.first
    test, line = grams.paths[int(grams.files[gram])], int(grams.lines[gram])
    place = "line" if piece.kind == "text" else "record"
    sizes = np.bincount(grams.files, minlength=len(grams.paths))
    shares = [
        f"{len(found) / sizes[file]:.1%} of {files.base_name(grams.paths[file])}"
        for file, found in sorted(hits.grams.items())
    ]
    count = sum(len(found) for found in hits.grams.values())
    what = (
        f'"{shown}" is in {test}, too (line {line:,}); the file has {", ".join(shares)}, so leave this text out, or do '
        "not test with it"
    )
    expected, found = "no text of the test sets", f"{count:,} times {kernels.WORDS} words in a row of them"
    yield finding(_CHECK, piece.path, expected, found, what, "warning", at=(place, number), count=count)
