"""Articles of the eval text that stand in the training text all the same: in lower case, less a line, or in part.

The eval text is compared by grams, each 13 words in a row: an article leaks as far as its grams are in one training
document. Articles have near copies by nature, as pages of bots do. So articles of the training text are compared, too:
as many of these as have a near copy in another training document, as many eval articles have one by chance.
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
from maskmill.verification.grams import GramHasher, GramIndex
from maskmill.verification.pieces import Piece, PieceResult
from maskmill.verification.scratch import merge_tables, runs_of, write_table
from maskmill.verification.text_checks import read_articles

LEAST_SHARE = 0.25  # of an article's grams, in one document
TABLE = "near_copies"

_LEAST_GRAMS = 20  # a shorter article may well be written twice
_MOST_OWNERS = 8  # a gram of more articles is a phrase that the corpus repeats
_MOST_BYTES = 1 << 25  # of articles whose grams are kept; of more text only a part of the grams
_LEAST_BYTES = 1 << 22  # of training articles, where the eval text is smaller
_BLOCK_BYTES = 1 << 23
_MOST_FILES = 16  # that training articles are read of

Numbers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Articles:
    """Articles to look for: those of the eval text, then some of the training text.

    Attributes:
      index: of their grams. starts: int64[grams + 1]; owners: int64[…], the articles of gram k are
        owners[starts[k]:starts[k + 1]].
      paths: of the files. files, numbers: int64[articles], the file of each and its number there, from 1.
      sizes: int64[articles], grams. digests: of their text.
      held_out: how many of them are of the eval text.
    """

    index: GramIndex
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
        return self.sizes >= _LEAST_GRAMS


@dataclasses.dataclass(frozen=True)
class NearCopies:
    """The training documents that have most of each article: the place of the result, their number, and the share."""

    articles: Articles
    owners: Numbers
    numbers: Numbers
    shares: npt.NDArray[np.float64]


def write_near_copies(piece: Piece, ranges: ByteRanges) -> str | None:
    """Writes which articles stand in a training file, at least in part: a table (scratch.py) of uint64[articles, 3].

    Its columns are the article, the document that has most of it, and how many of its grams that document has.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read.
    """
    articles = load_articles(piece.eval_texts, piece.train_texts, piece.scratch)
    if articles is None:
        return None
    own = np.zeros(len(articles.sizes), np.int64)  # where training articles stand themselves
    is_here = np.array([path == piece.path for path in articles.paths])[articles.files]
    own[is_here] = articles.numbers[is_here]
    best = np.zeros((2, len(own)), np.int64)  # number of the document, and grams
    for first, texts, documents, hashes in _blocks(piece.path, ranges):
        _add_documents(best, articles, own, first, texts, documents, hashes)
    found = np.flatnonzero(best[1])
    return write_table(piece, TABLE, np.stack([found, *best[:, found]], axis=1).astype(np.uint64))


def _add_documents(
    best: Numbers,
    articles: Articles,
    own: Numbers,
    first: int,
    texts: Sequence[bytes],
    documents: Numbers,
    hashes: npt.NDArray[np.uint64],
) -> None:
    """Adds documents, of which the first has a number, to the best of each article."""
    found, grams = articles.index.find(hashes)
    # Pairs as one number each: numpy sorts rows of two ten times as slowly.
    grams_of_documents = np.unique(documents[found] * len(articles.starts) + grams)
    having, grams = np.divmod(grams_of_documents, len(articles.starts))
    counts = np.diff(articles.starts)[grams]
    places = np.repeat(articles.starts[grams] - np.cumsum(counts) + counts, counts)
    owners = articles.owners[places + np.arange(counts.sum())]
    pairs, hits = np.unique(np.repeat(having, counts) * len(articles.sizes) + owners, return_counts=True)
    having, owners = np.divmod(pairs, len(articles.sizes))
    is_much = (hits >= LEAST_SHARE * articles.sizes[owners]) & articles.are_long[owners]
    much = zip(having[is_much].tolist(), owners[is_much].tolist(), hits[is_much].tolist(), strict=True)
    for document, article, count in much:
        number = first + document
        if count <= best[1, article] or number == own[article]:
            continue
        if _digest(texts[document]) != articles.digests[article]:  # exact copies are found by their hashes
            best[:, article] = number, count


@functools.lru_cache(maxsize=1)
def load_articles(
    eval_texts: tuple[str, ...], train_texts: tuple[str, ...], verification: str | None
) -> Articles | None:
    """Reads the articles to look for, once for a scratch directory; None if they have no grams.

    Memory: some 30 bytes for each word of 32 MB of text; of more text, a part of the grams stands for all.

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
    grams = _unique_pairs(np.concatenate(found)) if found else np.zeros((0, 2), np.uint64)
    starts, counts = runs_of(grams[:, 0])
    grams = grams[np.repeat(counts <= _MOST_OWNERS, counts)]
    if not len(grams):
        return None
    starts, _ = runs_of(grams[:, 0])
    owners = grams[:, 1].astype(np.int64)
    return Articles(
        index=GramIndex(grams[starts, 0]),
        starts=np.append(starts, len(grams)),
        owners=owners,
        paths=paths,
        files=np.array(files),
        numbers=np.array(numbers),
        sizes=np.bincount(owners, minlength=len(files)),
        digests=digests,
        held_out=held_out,
    )


def _unique_pairs(pairs: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each of pairs[n, 2] once, ascending: np.unique over rows takes several times as long."""
    ordered = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[is_first]


def _blocks(
    path: str, ranges: ByteRanges, block_bytes: int = _BLOCK_BYTES
) -> Iterator[tuple[int, list[bytes], Numbers, npt.NDArray[np.uint64]]]:
    """Yields documents of a file: the number of the first, their texts, and of each gram its document and its hash."""
    hasher, first = GramHasher(), 1
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
    best = np.zeros((3, len(articles.sizes)), np.int64)  # the result, the number there, and grams
    for merged in merge_tables([path for _, path in tables]):
        order = np.argsort(merged.table[:, 2], kind="stable")  # so that the most of each article is written last
        places = np.array([place for place, _ in tables])[merged.owner[order]]
        article, number, grams = merged.table[order].T.astype(np.int64)
        best[:, article] = places, number, grams
    return NearCopies(articles, best[0], best[1], best[2] / np.maximum(1, articles.sizes))
