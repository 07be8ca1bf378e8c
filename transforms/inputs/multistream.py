"""A sample of a multistream dump: some of its streams, chosen by the index that lies beside it.

The index tells for little what the dump's streams hold: where each begins, and the titles of its pages, hence how many
are of the namespaces that are taken. What the pages of a namespace take, packed, follows from the sizes of the streams
(`page_sizes`). So each stream has a measure, the packed bytes of its taken pages, which follows its text far better
than its size does where many pages are categories, templates and modules.
"""

import bz2
import collections
import dataclasses
import re
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from transforms.inputs.options import ReadOptions
from transforms.inputs.sampling import CountedReader, InputKind, Part, Sample, whole_records
from transforms.inputs.site import Site

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LARGEST_INDEX = 0.35  # of the bytes to read
_ROUNDS = 500  # of the estimate of what pages take
_MANY = 10  # streams
_FEW_BYTES = 2000  # packed: less than this says little about how taken and other bytes stand to each other
_FEW_PAGES = 5  # namespaces of fewer pages are one class
_TITLE = re.compile(rb"<title>([^<]*)</title>")
_INDEX_LINE = re.compile(rb"^(\d+):\d+:(.*)$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Streams:
    """The streams of pages of a dump, in order.

    bounds: the bytes at which they begin, and the byte behind the last, [streams + 1]. pages: how many pages of each
    class each has, [streams, classes]; class 0 are the pages that are taken.
    """

    bounds: Integers
    pages: Floats

    @property
    def sizes(self) -> Integers:
        """Packed bytes of each stream, [streams]."""
        return np.diff(self.bounds)


def index_of(file: files.FileInfo) -> str | None:
    """The path of a multistream dump's index; None where it does not lie beside the dump."""
    name = files.base_name(file.path)
    found = re.sub(r"multistream(\d*)\.xml", r"multistream-index\1.txt", name)
    if found == name:
        return None
    path = files.join(files.parent(file.path), found) if files.parent(file.path) else found
    return path if files.exists(path) else None


def read_streams(
    file: files.FileInfo, wanted: int, header: bytes, taken: Collection[int], reader: CountedReader
) -> Streams | None:
    """The streams of a dump by its index; None if there is no index, or if it would take too much of `wanted`.

    Raises:
      UnusableInputError: the index is not of this dump.
    """
    path = index_of(file)
    if path is None or files.size(path) > _LARGEST_INDEX * wanted:
        return None
    packed = reader.read(path, 0, files.size(path))
    try:
        lines = _INDEX_LINE.findall(bz2.decompress(packed) if packed.startswith(b"BZh") else packed)
    except (OSError, ValueError):
        raise UnusableInputError(f"{path}: the dump's index is damaged; fetch it again, or move it away.") from None
    starts = sorted({int(start) for start, _ in lines})
    if not starts or starts[-1] >= file.size:
        raise UnusableInputError(f"{path}: this is not the index of {file.path}; fetch both again, or move it away.")
    site = Site.parse(header)
    place = {start: row for row, start in enumerate(starts)}
    counts: collections.Counter[tuple[int, int]] = collections.Counter()
    for start, title in lines:
        counts[place[int(start)], site.namespace_of(title)] += 1
    return Streams(bounds=np.array([*starts, file.size], np.int64), pages=_classes(counts, len(starts), taken))


def _classes(counts: collections.Counter[tuple[int, int]], n_streams: int, taken: Collection[int]) -> Floats:
    """Pages by stream and class: the taken ones, those of each other namespace, those of small namespaces."""
    totals: collections.Counter[int] = collections.Counter()
    for (_, namespace), number in counts.items():
        totals[namespace] += number
    own = [n for n, number in sorted(totals.items()) if n not in taken and number >= _FEW_PAGES]
    column = {namespace: place + 1 for place, namespace in enumerate(own)}
    pages = np.zeros((n_streams, len(own) + 2))
    for (row, namespace), number in counts.items():
        pages[row, 0 if namespace in taken else column.get(namespace, len(own) + 1)] += number
    return pages


def page_sizes(sizes: Floats, pages: Floats) -> Floats:
    """What a page of each class takes, packed, on average: that which explains the streams' sizes best.

    The sizes are taken for sums over the pages whose spread grows with their mean; this is the likeliest mean of such
    (Poisson) sums, found by expectation maximisation: each round deals the bytes of a stream to its classes.

    Args:
      sizes: of the streams, [streams].
      pages: [streams, classes].

    Returns:
      Bytes, [classes]; 0 for classes without pages.
    """
    of_page = np.full(pages.shape[1], sizes.sum() / max(1.0, pages.sum()))
    for _ in range(_ROUNDS):
        of_page = of_page * (pages.T @ (sizes / np.maximum(pages @ of_page, 1e-9))) / np.maximum(pages.sum(0), 1.0)
    return of_page


def choose_streams(sizes: Integers, measures: Floats, wanted: int) -> Integers:
    """Chooses streams that stand for all, as many as `wanted` bytes hold.

    Many streams come at even distance from all, ordered by their measure, so that large and small ones have their
    share. Few streams are typical ones, each from another part of the file (`_typical`): in the dumps of
    docs/estimate.md this is the better choice below ten.

    Args:
      sizes: packed bytes of the streams, [streams].
      measures: packed bytes of their taken pages, [streams].
      wanted: how many packed bytes to choose at most; where that is less than any stream, the smallest is chosen.

    Returns:
      The numbers of the streams, in order, [chosen].
    """
    if sizes.sum() <= wanted:
        return np.arange(len(sizes))
    count = int(wanted / sizes.mean())
    if count < _MANY:
        return _typical(sizes, measures, wanted)
    by_measure = np.argsort(measures, kind="stable")
    chosen = by_measure
    while sizes[chosen].sum() > wanted:
        chosen = by_measure[(2 * np.arange(count) + 1) * len(sizes) // (2 * count)]
        count -= 1
    return np.sort(chosen)


def _typical(sizes: Integers, measures: Floats, wanted: int) -> Integers:
    """Streams near the average of all in size and measure.

    The file is cut into zones of equal measure, as many as streams of average size fit into `wanted`; from each comes
    the stream nearest to the averages. Others follow, the nearest first, as long as they fit.
    """
    has_pages = measures > 0
    ratios = np.where(has_pages, [sizes / sizes.mean(), measures / measures.mean()], 1.0)
    distance = np.where(has_pages, np.abs(np.log(ratios)).max(0), np.inf)
    count = max(1, int(wanted / sizes.mean()))
    zones = ((np.cumsum(measures) - measures / 2) / max(1e-9, measures.sum()) * count).astype(int)
    chosen: list[int] = []
    for zone in range(count):
        of_zone = np.where((zones == zone) & (sizes <= wanted / count), distance, np.inf)
        if np.isfinite(of_zone).any():
            chosen.append(int(np.argmin(of_zone)))
    for row in np.argsort(distance, kind="stable").tolist():
        if np.isfinite(distance[row]) and row not in chosen and sizes[[*chosen, row]].sum() <= wanted:
            chosen.append(row)
    return np.array(sorted(chosen) or [int(np.argmin(np.where(has_pages, sizes, sizes.max() + 1)))], np.int64)


def sample_streams(
    kind: InputKind, streams: Streams, wanted: int, taken: Collection[int], reading: ReadOptions, reader: CountedReader
) -> Sample:
    """Reads some streams of a dump that stand for all of it, `wanted` bytes at most."""
    sizes = streams.sizes
    of_page = page_sizes(sizes.astype(float), streams.pages)
    # The packed bytes of the taken pages of each stream, as far as the averages tell, [streams].
    measures = sizes * streams.pages[:, 0] * of_page[0] / np.maximum(streams.pages @ of_page, 1e-9)
    chosen = choose_streams(sizes, measures, wanted)
    told = measures[chosen]
    parts = []
    site = Site.parse(kind.header)
    for row in chosen.tolist():
        packed = reader.read(kind.files[0].path, int(streams.bounds[row]), int(streams.bounds[row + 1]))
        content = whole_records(
            reader.unpack(kind.files[0].path, packed, kind.container), kind.format, reading, is_start=True
        )
        measures[row] = len(packed) * _share_of_taken(content, site, taken)
        parts.append(Part(content=content, text_measure=measures[row], document_measure=float(streams.pages[row, 0])))
    unread = np.ones(len(sizes), bool)
    unread[chosen] = False
    measures[unread] = _corrected(sizes, measures, chosen, told)[unread]
    return Sample(
        kind=kind,
        parts=tuple(parts),
        text_total=float(measures.sum()),
        document_total=float(streams.pages[:, 0].sum()),
        counts_pages=True,
        error=_error(sizes[unread], streams.pages[unread], of_page),
    )


def _corrected(sizes: Integers, measures: Floats, chosen: Integers, told: Floats) -> Floats:
    """Measures, corrected by how taken and other bytes really stand to each other in the streams that were read.

    Args:
      measures: as found in the streams that were read, as the averages tell in the others, [streams].
      chosen, told: the streams that were read, and what the averages told of them, [chosen].
    """
    others = sizes - measures

    def odds(taken: float) -> float:
        return (taken + _FEW_BYTES) / (float(sizes[chosen].sum()) - taken + _FEW_BYTES)

    taken = measures * odds(float(measures[chosen].sum())) / odds(float(told.sum()))
    corrected: Floats = sizes * taken / np.maximum(taken + others, 1e-9)
    return corrected


def _error(sizes: Integers, pages: Floats, of_page: Floats) -> float:
    """The standard error of the sum of the measures: how far single pages are from their class's average.

    A page's spread is taken to be in proportion to its class's average. Of what a stream's size differs from its
    expectation, the taken pages and the others have a share each that is known only up to their spreads.
    """
    expected = pages @ of_page
    squares = pages * of_page**2
    total = np.maximum(squares.sum(1), 1e-9)
    spread = float(np.mean((sizes - expected) ** 2 / total)) if len(sizes) else 0.0
    return float(np.sqrt((spread * squares[:, 0] * (total - squares[:, 0]) / total).sum()))


def _share_of_taken(content: bytes, site: Site, taken: Collection[int]) -> float:
    """The share of the packed bytes of pages that pages of the taken namespaces and of none have, each group
    packed alone."""
    groups = [bytearray(), bytearray()]
    for page in content.split(b"<page>")[1:]:
        title = _TITLE.search(page)
        groups[site.namespace_of(title[1] if title else b"") not in taken] += page
    own, other = (len(bz2.compress(bytes(group))) if group else 0 for group in groups)
    return own / max(1, own + other)
