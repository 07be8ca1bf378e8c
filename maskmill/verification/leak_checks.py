"""Find articles of the eval text in the training text.

Articles are searched by their shingles (13 words in a row), so they are found in lower case, without a line, or by
half. Some articles have near copies by nature, such as pages of bots. So some training articles are searched in other
training documents, too: their share with a near copy is the one that eval articles have by chance.
"""

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.verification.bounds import is_too_many, upper_tail
from maskmill.verification.findings import (
    SEVERITIES,
    Checked,
    Finding,
    Severity,
    finding,
    makes_check,
    ran,
    skipped,
)
from maskmill.verification.scratch import runs_of
from maskmill.verification.shingles import WORDS, Hashes, Numbers, hash_shingles
from maskmill.verification.text_checks import read_articles
from maskmill.verification.verify_targets import VerifyPlan
from maskmill.verification.work_items import Copy, ItemResult, WorkItem

_CHECK = "eval_leak"
_SHARES = (0.25, 0.5, 0.75, 0.95)  # of an article's shingles, in one document
_LEAST = 20  # shingles; a shorter article may well be written twice
_MOST_OWNERS = 8  # a shingle of more articles is a phrase that the corpus repeats
_MOST_SHARE = 0.01  # of the eval articles; if more are in the training text, the eval set is of little use
_UNLIKELY = 0.01
_LEAST_TRAINED = 10  # training articles; fewer do not show the share with near copies in part
_BLOCK_BYTES = 1 << 20  # of text that is hashed at a time
_MOST_BYTES = 1 << 25  # of articles whose shingles are all kept; of more text only a part is
_LEAST_BYTES = 1 << 22  # of training articles, if the eval text is smaller
_MOST_FILES = 16  # from which training articles are read
_BLOOM_BITS = 24
_BLOOM_SHIFT = np.uint64(64 - _BLOOM_BITS)


@dataclasses.dataclass(frozen=True, eq=False)
class Articles:
    """The articles to search: those of the eval text, then some of the training text.

    Attributes:
      hashes: uint64[shingles], ascending, each once. bloom: bool[2**24], True for the highest bits of any hash.
      starts: int64[shingles + 1]; owners: int64[…], the articles of shingle k are owners[starts[k]:starts[k + 1]].
      paths: of the files. files, numbers: int64[articles], the file of each and its number there, from 1.
      sizes: int64[articles], the number of shingles of each.
      held_out: the number of articles of the eval text.
    """

    hashes: Hashes
    bloom: npt.NDArray[np.bool_]
    starts: Numbers
    owners: Numbers
    paths: Sequence[str]
    files: Numbers
    numbers: Numbers
    sizes: Numbers
    held_out: int

    def find(self, documents: Numbers, hashes: Hashes) -> Iterator[tuple[int, int, int]]:
        """Yield each document with enough of an article's shingles: the document, the article, their number."""
        candidates = np.flatnonzero(self.bloom[hashes >> _BLOOM_SHIFT])
        places = np.minimum(np.searchsorted(self.hashes, hashes[candidates]), len(self.hashes) - 1)
        is_found = self.hashes[places] == hashes[candidates]
        # Pairs as one number each: NumPy sorts rows of two ten times as slowly.
        pairs = np.unique(documents[candidates[is_found]] * len(self.starts) + places[is_found])
        having, shingles = np.divmod(pairs, len(self.starts))
        counts = np.diff(self.starts)[shingles]
        first = np.repeat(self.starts[shingles] - np.cumsum(counts) + counts, counts)
        owners = self.owners[first + np.arange(counts.sum())]
        pairs, hits = np.unique(np.repeat(having, counts) * len(self.sizes) + owners, return_counts=True)
        having, owners = np.divmod(pairs, len(self.sizes))
        is_much = (hits >= _SHARES[0] * self.sizes[owners]) & (self.sizes[owners] >= _LEAST)
        return zip(having[is_much].tolist(), owners[is_much].tolist(), hits[is_much].tolist(), strict=True)


@functools.lru_cache(maxsize=1)
def load_articles(
    eval_texts: tuple[str, ...], train_texts: tuple[str, ...], verification: str | None
) -> Articles | None:
    """Return the articles to search, read once for a scratch directory; None if they have no shingles.

    Memory: some 30 bytes for each word of 32 MB of text; of more text, a part of the shingles is kept.

    Raises:
      UnusableInputError, RunFailedError: a file cannot be read.
    """
    chosen = train_texts[:: max(1, -(-len(train_texts) // _MOST_FILES))]
    paths, pairs = (*eval_texts, *chosen), [np.zeros((0, 2), np.uint64)]
    places: list[tuple[int, int]] = []
    held_out = 0
    with contextlib.ExitStack() as opened:
        stores = [opened.enter_context(contextlib.closing(open_ranges(path, cache_bytes=0))) for path in paths]
        size = sum(ranges.size(path) for path, ranges in zip(eval_texts, stores, strict=False))
        part = max(size, _LEAST_BYTES) // max(1, len(chosen))
        step = np.uint64(1 + (size + part * len(chosen)) // _MOST_BYTES)
        for file, (path, ranges) in enumerate(zip(paths, stores, strict=True)):
            is_eval = file < len(eval_texts)
            blocks = _blocks(path, ranges, _BLOCK_BYTES if is_eval else part)
            for first, count, documents, hashes in blocks if is_eval else itertools.islice(blocks, 1):
                kept = hashes % step == 0
                owners = (documents[kept] + len(places)).astype(np.uint64)
                pairs.append(np.unique(np.stack([hashes[kept], owners], axis=1), axis=0))
                places += [(file, first + number) for number in range(count)]
                held_out += count * is_eval
    table = np.concatenate(pairs)
    table = table[np.argsort(table[:, 0], kind="stable")]
    starts, counts = runs_of(table[:, 0])
    table = table[np.repeat(counts <= _MOST_OWNERS, counts)]
    if not len(table):
        return None
    starts, _ = runs_of(table[:, 0])
    hashes, owners, bloom = table[starts, 0], table[:, 1].astype(np.int64), np.zeros(1 << _BLOOM_BITS, np.bool_)
    bloom[hashes >> _BLOOM_SHIFT] = True
    of_files, numbers = np.array(places).T
    sizes, starts = np.bincount(owners, minlength=len(places)), np.append(starts, len(table))
    return Articles(hashes, bloom, starts, owners, paths, of_files, numbers, sizes, held_out)


def _blocks(path: str, ranges: ByteRanges, size: int) -> Iterator[tuple[int, int, Numbers, Hashes]]:
    """Yield blocks of documents: the number of the first, their count, and their shingles' documents and hashes."""
    first = 1
    for articles in read_articles(path, ranges, size):
        hashes, documents = hash_shingles(articles)
        yield first, len(articles), documents, hashes
        first += len(articles)


@makes_check("file", "text")
def look_for_articles(item: WorkItem, ranges: ByteRanges) -> Checked:
    """Search for articles of the eval text in a training file; the result has the best document for each."""
    if item.split != "train" or not item.eval_texts:
        return Checked()
    best: dict[int, Copy] = {}
    try:
        articles = load_articles(item.eval_texts, item.train_texts, item.scratch)
        if articles is None:
            return Checked()
        is_here = np.array([path == item.path for path in articles.paths])[articles.files]
        for first, _, documents, hashes in _blocks(item.path, ranges, _BLOCK_BYTES):
            for document, article, count in articles.find(documents, hashes):
                number = first + document
                is_itself = is_here[article] and articles.numbers[article] == number
                if not is_itself and (article not in best or count > best[article].shingles):
                    best[article] = Copy(article, item.path, number, count)
    except (UnusableInputError, RunFailedError) as error:
        return skipped(error, _CHECK)
    return ItemResult(item=item, copies=tuple(best.values()))


@makes_check("all")
def check_leaks(plan: VerifyPlan, results: Sequence[ItemResult]) -> Checked:
    """Report the eval articles in each training file, if there are more than by nature."""
    text = [result for result in results if result.item.kind == "text"]
    looked_at = [result for result in text if result.item.eval_texts and result.size is not None]
    if not looked_at:
        return skipped("there is not both training and eval text", _CHECK) if text else Checked()
    item = looked_at[0].item
    try:
        articles = load_articles(item.eval_texts, item.train_texts, item.scratch)
    except (UnusableInputError, RunFailedError) as error:
        return skipped(error, _CHECK)
    if articles is None:
        return ran(_CHECK, count=len(looked_at))
    copies = {copy.article: copy for copy in sorted((c for r in text for c in r.copies), key=lambda c: c.shingles)}
    shares = np.zeros(len(articles.sizes))
    shares[list(copies)] = [copy.shingles / articles.sizes[copy.article] for copy in copies.values()]
    are_long = articles.sizes >= _LEAST
    judged = [_judged(shares, share, are_long, articles.held_out) for share in _SHARES]
    natural: tuple[Severity, float] = ("note", _SHARES[-1])  # copies of whole articles exist by nature
    severity, least = min([natural, *filter(None, judged)], key=lambda one: SEVERITIES.index(one[0]))
    by_file: dict[str, list[Copy]] = {}
    for article in np.flatnonzero(shares[: articles.held_out] >= least).tolist():
        by_file.setdefault(copies[article].path, []).append(copies[article])
    return ran(_CHECK, *(_leak(articles, of_file, severity) for of_file in by_file.values()), count=len(looked_at))


def _judged(
    shares: npt.NDArray[np.float64], least: float, are_long: npt.NDArray[np.bool_], held_out: int
) -> tuple[Severity, float] | None:
    """Return the severity of the share of eval articles found by at least `least`, given that of training articles.

    None: it may be chance."""
    count, twins = int((shares[:held_out] >= least).sum()), int((shares[held_out:] >= least).sum())
    of_eval, trained = int(are_long[:held_out].sum()), max(1, int(are_long[held_out:].sum()))
    if not count or (trained < _LEAST_TRAINED and least < _SHARES[-1]):
        return None
    if upper_tail(count, of_eval, twins / trained) > _UNLIKELY:
        return None
    is_certain = is_too_many(count, of_eval, max(1, twins) / trained)
    return "warning" if is_certain or count > _MOST_SHARE * of_eval else "note", least


def _leak(articles: Articles, of_file: Sequence[Copy], severity: Severity) -> Finding:
    first = min(of_file, key=lambda copy: copy.document)
    share = f"{first.shingles / articles.sizes[first.article]:.0%}"
    number, eval_path = int(articles.numbers[first.article]), articles.paths[articles.files[first.article]]
    more = f", and {len(of_file) - 1:,} more are here, at least in part" if len(of_file) > 1 else ""
    what = (
        f"{share} of eval article {number:,} of {eval_path} is here, counted by {WORDS} words in a row without case "
        f"and punctuation{more}; take it out of the training text and make the examples again, or do not evaluate on it"
    )
    return finding(_CHECK, first.path, what, severity, at=("document", first.document), count=len(of_file))
