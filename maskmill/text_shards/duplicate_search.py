"""The search for duplicate paragraphs, in pieces of work of bounded memory that any worker may do.

Exact duplicates have one hash of all words. Near duplicates are found as in Broder, On the resemblance and containment
of documents (1997): MinHashes of word 5-grams, looked up by locality-sensitive hashing: only paragraphs that share a
band of their MinHashes are compared. Whichever paragraphs share a hash, of all words or of a band, lie in one share of
the hashes:

    hash_paragraphs   the paragraphs of some fragments → their hashes, sorted by share
    find_links        a share of the hashes → links: of a paragraph to the first one of the same hash
    unite             all links → groups, each in a share; in one process 5 bytes for each linked paragraph
    pick_candidates   the paragraphs of some fragments → those whose group has others, sorted by share
    drop_near         a share of the groups → those that are near one before them that stays, in order

A part of the paragraphs has a range of rows in each share, and to read one costs more than its bytes. So a part has as
many fragments as can be sorted at once.

Between two steps lie files named `<key>.<name>.<number>`; what a step returns tells which of their rows the next one
reads. All of them go once the decision is written (duplicates.py).
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import completions, files
from maskmill.text_shards.fragments import Fragment, read_paragraphs
from maskmill.text_shards.kernels import duplicates as kernels
from maskmill.text_shards.options import ExtractionOptions
from maskmill.text_shards.signatures import PERMUTATIONS, import_datasketch, paragraphs_type

Rows = npt.NDArray[Any]
Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Cut = Iterable[tuple[Rows, npt.NDArray[np.uint16]]]  # rows, and the number of the share of each

KIND = "duplicates"

# A paragraph that is dropped: the place of its fragment in order, and fields of its row of signatures.PARAGRAPHS.
DROPPED = np.dtype([("fragment", "<i8"), ("offset", "<i8"), ("size", "<i4"), ("sentences", "<i4"), ("body", "<i4")])
_HASHED = np.dtype([("hash", "<u8"), ("paragraph", "<i8")])
LABEL = np.dtype("<u2")

_TEXT_BYTES = 128 << 20  # of a share, about: 300,000 paragraphs of English prose, 48 MB of hashes of their bands
_MOST_SHARES = 30_000  # twice as many are numbers of 16 bits, which NumPy sorts in linear time
_PART_TEXT_BYTES = 64 << 20  # of the fragments of a part, about: 25 MB of hashes
_RUN_BYTES = 32 << 20  # that are sorted together
_WRITTEN_ROWS = 1 << 16  # at a time
_RANGES_AT_ONCE, _FILES_AT_ONCE = 64, 8  # that are read together
_LABELS_AT_ONCE = 1 << 20

# Outside of these thresholds datasketch finds no bands.
_LOWEST_INDEX_THRESHOLD, _HIGHEST_INDEX_THRESHOLD = 0.05, 0.95

_HALF = np.uint64(32)  # of the bits of a hash


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """The search of a build. key: of its decision. shares: into how many hashes, and groups, are cut."""

    key: str
    shares: int
    extraction: ExtractionOptions
    output: str

    def path(self, name: str, number: int) -> str:
        """Return where a step leaves a file."""
        return completions.work_path(self.output, KIND, f"{self.key}.{name}.{number}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """Some fragments in a search, one after the other.

    number: the place of the first one in order. count, first: how many paragraphs they have, and the number of their
    first one among all.
    bounds: where each share begins, and the last one ends, in the rows of the file that a step wrote of it, in each run
    of the file, [runs, shares + 1].
    """

    search: Search
    number: int
    fragments: tuple[Fragment, ...]
    count: int = 0
    first: int = 0
    bounds: Integers = dataclasses.field(default_factory=lambda: np.zeros((0, 1), np.int64))

    @property
    def end(self) -> int:
        """The number after that of the last fragment."""
        return self.number + len(self.fragments)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
    """A share of the hashes, or of the groups.

    ranges: in order the rows that it has: number and first paragraph of the part, start and end, [k, 4]. paragraphs:
    how many there are in all.
    """

    search: Search
    number: int
    ranges: Integers
    paragraphs: int


def parts_of(ordered: Sequence[Fragment], key: str, extraction: ExtractionOptions, output: str) -> list[Part]:
    """Return the fragments of a build, which come in order, as the first step takes them."""
    shares = min(1 + sum(fragment.size for fragment in ordered) // _TEXT_BYTES, _MOST_SHARES)
    search = Search(key=key, shares=shares, extraction=extraction, output=output)
    starts = list(itertools.accumulate((fragment.size for fragment in ordered), initial=0))
    by_part = itertools.groupby(range(len(ordered)), key=lambda number: starts[number] // _PART_TEXT_BYTES)
    numbers = [list(some) for _, some in by_part]
    return [
        Part(search=search, number=some[0], fragments=tuple(ordered[number] for number in some)) for some in numbers
    ]


def numbered(parts: Iterable[Part]) -> list[Part]:
    """Return the parts in order, each with the number of its first paragraph."""
    ordered = sorted(parts, key=lambda part: part.number)
    firsts = itertools.accumulate((part.count for part in ordered), initial=0)
    return [dataclasses.replace(part, first=first) for part, first in zip(ordered, firsts, strict=False)]


def shares_of(parts: Iterable[Part]) -> Iterator[Share]:
    """Yield the shares of what a step has written of all parts, but for those that have no row."""
    ordered = numbered(parts)
    rows = [(part, run) for part in ordered for run in part.bounds.tolist()]
    for number in range(len(rows[0][1]) - 1 if rows else 0):
        ranges = [(part.number, part.first, run[number], run[number + 1]) for part, run in rows]
        if ranges := [one for one in ranges if one[2] < one[3]]:
            paragraphs = sum(part.count for part in ordered)
            yield Share(search=ordered[0].search, number=number, ranges=np.array(ranges), paragraphs=paragraphs)


def _write_runs(path: str, cut: Cut, shares: int) -> Integers:
    """Write rows sorted by their share, run for run; return the bounds as a Part has them."""
    bounds: list[Integers] = []
    pending: list[tuple[Rows, npt.NDArray[np.uint16]]] = []
    written = 0

    def end_run() -> None:
        nonlocal written
        rows, numbers = (np.concatenate(columns) for columns in zip(*pending, strict=True))
        pending.clear()
        order = np.argsort(numbers, kind="stable")
        for start in range(0, len(rows), _WRITTEN_ROWS):
            file.write(rows[order[start : start + _WRITTEN_ROWS]].tobytes())
        bounds.append(written + np.append(0, np.cumsum(np.bincount(numbers, minlength=shares))))
        written += len(rows)

    with files.new_file(path, checksum=False) as file:
        for rows, numbers in cut:
            pending.append((rows, numbers))
            if sum(rows.nbytes for rows, _ in pending) >= _RUN_BYTES:
                end_run()
        if pending:
            end_run()
    return np.array(bounds, np.int64).reshape(-1, shares + 1)


def _read_ranges(share: Share, name: str, dtype: np.dtype[Any]) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of a share in order, with the number of the first paragraph of the part that they are of."""

    def read(number: int, start: int, end: int) -> bytes:
        path = share.search.path(name, number)
        return files.read_range(path, start * dtype.itemsize, end * dtype.itemsize)

    for place in range(0, len(share.ranges), _RANGES_AT_ONCE):
        numbers, firsts, starts, ends = share.ranges[place : place + _RANGES_AT_ONCE].T.tolist()
        for first, content in zip(firsts, files.each(share.search.output, read, numbers, starts, ends), strict=True):
            yield first, np.frombuffer(content, dtype)


# ---- hashes and links


@functools.lru_cache(maxsize=1)
def bands_of(threshold: float) -> Integers:
    """Return the columns of MinHashes that make up each band, from and up to, [bands, 2]; datasketch's for the
    threshold.
    """
    threshold = min(max(threshold, _LOWEST_INDEX_THRESHOLD), _HIGHEST_INDEX_THRESHOLD)
    return np.array(import_datasketch().MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS).hashranges, np.int64)


def hash_bands(near: npt.NDArray[np.uint32], bands: Integers) -> Hashes:
    """Hash each band of MinHashes [paragraphs, PERMUTATIONS]: [paragraphs, bands]. Equal bands have equal hashes."""
    hashes = np.empty((len(near), len(bands)), np.uint64)
    kernels.hash_bands(near, bands, hashes)
    return hashes


def _paragraphs_of(part: Part) -> Iterator[tuple[int, Rows]]:
    """Yield the rows of a part's paragraphs in pieces, each with the place of its fragment in order."""
    for place, fragment in enumerate(part.fragments, part.number):
        for block in read_paragraphs(fragment, part.search.extraction, part.search.output):
            yield place, block


def hash_paragraphs(part: Part) -> Part:
    """Write `hashes`: of each paragraph that of its words, then those of its bands, in twice as many shares."""
    search, quality = part.search, part.search.extraction.quality
    shares = np.uint64(search.shares)
    count = 0

    def cut() -> Cut:
        nonlocal count
        for _, block in _paragraphs_of(part):
            kinds = []
            if quality.drop_duplicates:
                kinds.append((0, block["exact"][:, None]))
            if quality.near_duplicate_threshold is not None:
                kinds.append((1, hash_bands(block["near"].copy(), bands_of(quality.near_duplicate_threshold))))
            for kind, hashes in kinds:
                rows = np.zeros(hashes.shape, _HASHED)
                rows["hash"], rows["paragraph"] = hashes, count + np.arange(len(block))[:, None]
                numbers = ((hashes >> _HALF) * shares >> _HALF) + np.uint64(kind) * shares
                yield rows.ravel(), numbers.ravel().astype(np.uint16)
            count += len(block)

    bounds = _write_runs(search.path("hashes", part.number), cut(), 2 * search.shares)
    return dataclasses.replace(part, count=count, bounds=bounds)


def find_links(share: Share) -> Share:
    """Write `links`, unsigned [n, 2]: paragraphs with the first of the same hash, exact duplicates with themselves."""
    size = int((share.ranges[:, 3] - share.ranges[:, 2]).sum())
    hashes, paragraphs = np.empty(size, np.uint64), np.empty(size, _number_type(share.paragraphs))
    end = 0
    for first, rows in _read_ranges(share, "hashes", _HASHED):
        start, end = end, end + len(rows)
        hashes[start:end], paragraphs[start:end] = rows["hash"], rows["paragraph"] + first
    links = np.empty((size, 2), paragraphs.dtype)
    is_exact = share.number < share.search.shares
    newest = np.full(1 << (2 * size).bit_length(), -1, np.int32)
    links = links[: kernels.link_equal(hashes, paragraphs, newest, is_exact, links)]
    files.write_bytes(share.search.path("links", share.number), links.tobytes())
    return share


def _number_type(paragraphs: int) -> np.dtype[Any]:
    """Return the type of a paragraph's number."""
    return np.dtype("<u4" if paragraphs < 1 << 32 else "<u8")


def _links_of(shares: Sequence[Share]) -> Iterator[Rows]:
    """Yield the links of shares."""
    for place in range(0, len(shares), _FILES_AT_ONCE):
        some = shares[place : place + _FILES_AT_ONCE]
        paths = [share.search.path("links", share.number) for share in some]
        for content in files.each(paths[0], files.read_bytes, paths):
            yield np.frombuffer(content, _number_type(some[0].paragraphs)).reshape(-1, 2)


def unite(elements: Iterable[Part | Share]) -> list[Part]:
    """Write `labels`: what becomes of each paragraph, kernels.STAYS, IS_EXACT or CANDIDATE and above, [paragraphs].

    elements: all parts, and the shares whose links are found. Returns the parts for the next step.
    """
    elements = list(elements)
    parts = numbered(element for element in elements if isinstance(element, Part))
    shares = sorted((one for one in elements if isinstance(one, Share)), key=lambda share: share.number)
    if not parts:
        return []
    search, count = parts[0].search, parts[-1].first + parts[-1].count
    states, ranks = np.zeros(count, np.uint8), np.zeros(-(-count // kernels.BLOCK), _number_type(count))
    for links in _links_of(shares):
        kernels.mark(states, links)
    parents = np.arange(kernels.rank(states, ranks), dtype=ranks.dtype)
    for links in _links_of(shares):
        kernels.unite(parents, states, ranks, links)
    members, place = np.zeros(len(parents), np.uint8), 0
    kernels.count_members(parents, states, members)
    with files.new_file(search.path("labels", 0), checksum=False) as file:
        for first in range(0, count, _LABELS_AT_ONCE):
            of_these = states[first : first + _LABELS_AT_ONCE]
            labels = np.empty(len(of_these), LABEL)
            place = kernels.label(parents, members, of_these, place, search.shares, labels)
            file.write(labels.tobytes())
    return parts


# ---- near duplicates


def _candidate_type(extraction: ExtractionOptions) -> np.dtype[Any]:
    """Return the rows of DROPPED, and `near` where near duplicates are looked for."""
    signed = [field for field in paragraphs_type(extraction.quality).descr if field[0] == "near"]
    return np.dtype([*DROPPED.descr, *signed])


def pick_candidates(part: Part) -> Part:
    """Write `candidates`, the paragraphs that may be near duplicates, and `exact`, rows of the exact ones."""
    search = part.search
    row_type = _candidate_type(search.extraction)
    start, end = (place * LABEL.itemsize for place in (part.first, part.first + part.count))
    labels = np.frombuffer(files.read_range(search.path("labels", 0), start, end), LABEL)
    exact = [np.zeros(0, DROPPED)]

    def rows_of(number: int, block: Rows, chosen: npt.NDArray[np.bool_], dtype: np.dtype[Any]) -> Rows:
        rows = np.zeros(int(np.count_nonzero(chosen)), dtype)
        rows["fragment"] = number
        for name in (dtype.names or ())[1:]:
            rows[name] = block[name][chosen]
        return rows

    def cut() -> Cut:
        place = 0
        for number, block in _paragraphs_of(part):
            of_block = labels[place : place + len(block)]
            place += len(block)
            exact.append(rows_of(number, block, of_block == kernels.IS_EXACT, DROPPED))
            chosen = of_block >= kernels.CANDIDATE
            yield rows_of(number, block, chosen, row_type), of_block[chosen] - LABEL.type(kernels.CANDIDATE)

    blocks = cut() if (labels != kernels.STAYS).any() else ()
    bounds = _write_runs(search.path("candidates", part.number), blocks, search.shares)
    files.write_bytes(search.path("exact", part.number), np.concatenate(exact).tobytes())
    return dataclasses.replace(part, bounds=bounds)


def drop_near(share: Share) -> Share:
    """Write `near`: the rows of those candidates that are near one before them that stays.

    Memory: 512 bytes for each candidate of the share that stays, and 40 for each and each band.
    """
    threshold = share.search.extraction.quality.near_duplicate_threshold or 0.0
    bands = bands_of(threshold)
    size = int((share.ranges[:, 3] - share.ranges[:, 2]).sum())
    buckets = 1 << (2 * size * len(bands)).bit_length()
    chains = np.full(buckets, -1, np.int64), np.empty(size * len(bands), np.int64)
    kept, count = np.empty((size, PERMUTATIONS), np.uint32), 0
    dropped = [np.zeros(0, DROPPED)]
    for _, rows in _read_ranges(share, "candidates", _candidate_type(share.search.extraction)):
        near, is_near = rows["near"].copy(), np.empty(len(rows), bool)
        count = kernels.find_near(near, hash_bands(near, bands), bands, threshold, chains, kept, count, is_near)
        of_range = np.zeros(int(np.count_nonzero(is_near)), DROPPED)
        for name in DROPPED.names or ():
            of_range[name] = rows[name][is_near]
        dropped.append(of_range)
    files.write_bytes(share.search.path("near", share.number), np.concatenate(dropped).tobytes())
    return share
