"""Passages of text, each 13 words in a row, by which an article is found again: in lower case, less a line, or in part.

The eval text is looked for in the training text: an article leaks as far as its passages are in one training document.
Articles have near copies by nature, as pages of bots do. So articles of the training text are looked for, too: as many
of these as have a near copy in another training document, as many eval articles have one by chance.
"""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.tokenization.text_blocks import PaddedText
from maskmill.verification.kernels import word_grams as kernels
from maskmill.verification.pieces import Piece, PieceResult
from maskmill.verification.scratch import merge_tables, runs_of, write_table
from maskmill.verification.text_checks import read_articles

LEAST_SHARE = 0.25  # of an article's passages, in one document
TABLE = "passages"

_BLOOM_BITS = 24
_BLOOM_SHIFT = np.uint64(64 - _BLOOM_BITS)
_LEAST_PASSAGES = 20  # a shorter article may well be written twice
_MOST_OWNERS = 8  # a passage of more articles is a phrase that the corpus repeats
_MOST_BYTES = 1 << 25  # of articles whose passages are kept; of more text only a part of the passages
_LEAST_BYTES = 1 << 22  # of training articles, where the eval text is smaller
_BLOCK_BYTES = 1 << 23
_MOST_FILES = 16  # that training articles are read of

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


class PassageIndex:
    """Finds the hashes of passages; hashes: ascending, each once, at least one."""

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes
        self._bloom = np.zeros(1 << _BLOOM_BITS, np.bool_)  # whether any passage has these highest bits
        self._bloom[hashes >> _BLOOM_SHIFT] = True

    def find(self, hashes: Hashes) -> tuple[Numbers, Numbers]:
        """Which of some hashes are of passages, ascending, and of which."""
        candidates = np.flatnonzero(self._bloom[hashes >> _BLOOM_SHIFT])
        places = np.minimum(np.searchsorted(self._hashes, hashes[candidates]), len(self._hashes) - 1)
        is_found = self._hashes[places] == hashes[candidates]
        return candidates[is_found], places[is_found]


class PassageHasher:
    """Hashes the passages of text, block by block. Memory: some 20 bytes for each byte of the largest block."""

    def __init__(self) -> None:
        self._arrays = kernels.lower_case_arrays()
        self._padded = PaddedText()
        self._hashes, self._places = np.zeros(0, np.uint64), np.zeros(0, np.int64)

    def hash_text(self, text: bytes) -> tuple[Hashes, Numbers]:
        """The hashes of the passages of a text, in order, and where each starts; valid until the next call."""
        if not text:
            return self._hashes[:0], self._places[:0]
        self._padded.load(text)
        if len(text) > len(self._hashes):
            self._hashes, self._places = np.empty(len(text), np.uint64), np.empty(len(text), np.int64)
        count = kernels.hash_grams(self._padded.text, len(text), self._arrays, self._hashes, self._places)
        return self._hashes[:count], self._places[:count]


@dataclasses.dataclass(frozen=True, eq=False)
class Articles:
    """Articles to look for: those of the eval text, then some of the training text.

    Attributes:
      index: of their passages. starts: int64[passages + 1]; owners: int64[…], the articles of passage k are
        owners[starts[k]:starts[k + 1]].
      paths: of the files. files, numbers: int64[articles], the file of each and its number there, from 1.
      sizes: int64[articles], passages. digests: of their text.
      held_out: how many of them are of the eval text.
    """

    index: PassageIndex
    starts: Numbers
    owners: Numbers
    paths: Sequence[str]
    files: Numbers
    numbers: Numbers
    sizes: Numbers
    digests: Sequence[bytes]
    held_out: int

    @property
    def are_long(self) -> npt.NDArray[np.bool_]:
        """Which of the articles are long enough to be compared."""
        return self.sizes >= _LEAST_PASSAGES


@dataclasses.dataclass(frozen=True)
class NearCopies:
    """The training documents that have most of each article: the place of the result, their number, and the share."""

    articles: Articles
    owners: Numbers
    numbers: Numbers
    shares: npt.NDArray[np.float64]


def write_near_copies(piece: Piece, ranges: ByteRanges) -> dict[str, str]:
    """Writes which articles stand in a training file, at least in part: a table (scratch.py) of uint64[articles, 3].

    Its columns are the article, the document that has most of it, and how many of its passages that document has.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read.
    """
    articles = load_articles(piece.eval_texts, piece.train_texts, piece.scratch)
    if articles is None:
        return {}
    own = np.zeros(len(articles.sizes), np.int64)  # where training articles stand themselves
    is_here = np.array([path == piece.path for path in articles.paths])[articles.files]
    own[is_here] = articles.numbers[is_here]
    best = np.zeros((2, len(own)), np.int64)  # number of the document, and passages
    for first, texts, documents, hashes in _blocks(piece.path, ranges):
        found, passages = articles.index.find(hashes)
        for document, article, count in _common(articles, documents[found], passages):
            number = first + document
            if count <= best[1, article] or number == own[article]:
                continue
            if _digest(texts[document]) != articles.digests[article]:  # exact copies are found by their hashes
                best[:, article] = number, count
    found = np.flatnonzero(best[1])
    return write_table(piece, TABLE, [found, *best[:, found]])


def _common(articles: Articles, documents: Numbers, passages: Numbers) -> Iterator[tuple[int, int, int]]:
    """Documents that have enough of an article's passages: the document, the article, and how many."""
    # Pairs as one number each: numpy sorts rows of two ten times as slowly.
    having, passages = np.divmod(np.unique(documents * len(articles.starts) + passages), len(articles.starts))
    counts = np.diff(articles.starts)[passages]
    places = np.repeat(articles.starts[passages] - np.cumsum(counts) + counts, counts)
    owners = articles.owners[places + np.arange(counts.sum())]
    pairs, hits = np.unique(np.repeat(having, counts) * len(articles.sizes) + owners, return_counts=True)
    having, owners = np.divmod(pairs, len(articles.sizes))
    is_much = (hits >= LEAST_SHARE * articles.sizes[owners]) & articles.are_long[owners]
    return zip(having[is_much].tolist(), owners[is_much].tolist(), hits[is_much].tolist(), strict=True)


@functools.lru_cache(maxsize=1)
def load_articles(
    eval_texts: tuple[str, ...], train_texts: tuple[str, ...], verification: str | None
) -> Articles | None:
    """Reads the articles to look for, once for a scratch directory; None if they have no passages.

    Memory: some 30 bytes for each word of 32 MB of text; of more text, a part of the passages stands for all.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read.
    """
    chosen = train_texts[:: max(1, -(-len(train_texts) // _MOST_FILES))]
    paths = (*eval_texts, *chosen)
    files: list[int] = []
    numbers: list[int] = []
    digests: list[bytes] = []
    found, held_out = [], 0
    with contextlib.ExitStack() as opened:
        stores = [opened.enter_context(contextlib.closing(open_ranges(path, cache_bytes=0))) for path in paths]
        size = sum(ranges.size(path) for path, ranges in zip(eval_texts, stores, strict=False))
        part = max(size, _LEAST_BYTES) // max(1, len(chosen))
        step = np.uint64(1 + (size + part * len(chosen)) // _MOST_BYTES)
        for place, (path, ranges) in enumerate(zip(paths, stores, strict=True)):
            is_eval = place < len(eval_texts)
            blocks = _blocks(path, ranges) if is_eval else itertools.islice(_blocks(path, ranges, part), 1)
            for first, texts, documents, hashes in blocks:
                is_kept = hashes % step == 0
                found.append(np.stack([hashes[is_kept], (documents[is_kept] + len(files)).astype(np.uint64)], axis=1))
                files += [place] * len(texts)
                numbers += range(first, first + len(texts))
                digests += map(_digest, texts)
                held_out += len(texts) * is_eval
    pairs = np.concatenate([np.zeros((0, 2), np.uint64), *found])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    pairs = pairs[np.concatenate([[True], (pairs[1:] != pairs[:-1]).any(axis=1)])[: len(pairs)]]
    starts, counts = runs_of(pairs[:, 0])
    pairs = pairs[np.repeat(counts <= _MOST_OWNERS, counts)]
    if not len(pairs):
        return None
    starts, _ = runs_of(pairs[:, 0])
    owners = pairs[:, 1].astype(np.int64)
    return Articles(
        index=PassageIndex(pairs[starts, 0]),
        starts=np.append(starts, len(pairs)),
        owners=owners,
        paths=paths,
        files=np.array(files),
        numbers=np.array(numbers),
        sizes=np.bincount(owners, minlength=len(files)),
        digests=digests,
        held_out=held_out,
    )


def _blocks(
    path: str, ranges: ByteRanges, block_bytes: int = _BLOCK_BYTES
) -> Iterator[tuple[int, list[bytes], Numbers, Hashes]]:
    """Yields documents of a file: the number of the first, their texts, and of each passage its document and hash."""
    hasher, first = PassageHasher(), 1
    for texts in read_articles(path, ranges, block_bytes):
        texts = [text.decode("utf-8", "replace").encode() for text in texts]
        hashes, places = hasher.hash_text(b"".join(text + b"\n\n" for text in texts))
        ends = np.cumsum([len(text) + 2 for text in texts])
        yield first, texts, np.searchsorted(ends, places, side="right"), hashes
        first += len(texts)


def _digest(text: bytes) -> bytes:
    return hashlib.md5(text.strip()).digest()


def find_near_copies(results: Sequence[PieceResult]) -> NearCopies | None:
    """The documents of training files that have most of each article; None if there is nothing to compare."""
    tables = [(place, result.hashes[TABLE]) for place, result in enumerate(results) if TABLE in result.hashes]
    if not tables:
        return None
    piece = results[tables[0][0]].piece
    articles = load_articles(piece.eval_texts, piece.train_texts, piece.scratch)
    if articles is None:
        return None
    best = np.zeros((3, len(articles.sizes)), np.int64)  # the result, the number there, and passages
    for merged in merge_tables([path for _, path in tables]):
        order = np.argsort(merged.table[:, 2], kind="stable")  # so that the most of each article is written last
        places = np.array([place for place, _ in tables])[merged.owner[order]]
        article, number, passages = merged.table[order].T.astype(np.int64)
        best[:, article] = places, number, passages
    return NearCopies(articles, best[0], best[1], best[2] / np.maximum(1, articles.sizes))
