"""Duplicate paragraphs: a signature of each, and one decision over those of a whole build.

The first paragraph of its kind stays, in the order of the documents. So what is dropped depends on the documents
alone, never on where the input is cut nor on which worker comes first.

Near duplicates are found as in Broder, On the resemblance and containment of documents (1997): MinHashes of word
5-grams, looked up by locality-sensitive hashing, through datasketch.
"""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.errors import UnusableInputError
from transforms.shards.options import QualityOptions

PERMUTATIONS = 128
_WORDS = re.compile(r"\w+")
_SHINGLE = 5
_SCHEME = "affine32"

# offset, size: the paragraph's bytes in its fragment's text; sentences: lines in it; body: lines of its whole document,
# the title left out; exact: 64 bits that paragraphs of the same words share, case and punctuation aside.
PARAGRAPHS = np.dtype([("offset", "<i8"), ("exact", "<u8"), ("size", "<i4"), ("sentences", "<i4"), ("body", "<i4")])
# near: the MinHash of the paragraph's word 5-grams.
SIGNED_PARAGRAPHS = np.dtype([*PARAGRAPHS.descr, ("near", "<u4", (PERMUTATIONS,))])

STAYS, EXACT, NEAR = 0, 1, 2


def paragraphs_type(options: QualityOptions) -> np.dtype[Any]:
    """The rows in which a fragment's paragraphs are written down."""
    return PARAGRAPHS if options.near_duplicate_threshold is None else SIGNED_PARAGRAPHS


class ParagraphSigner:
    """Signs paragraphs. Raises UnusableInputError if near duplicates are asked for and datasketch is missing."""

    def __init__(self, options: QualityOptions) -> None:
        self._options = options
        # One sketch for all paragraphs: to draw its permutations takes longer than to use them.
        self._sketch = None if options.near_duplicate_threshold is None else _new_sketch()

    def sign(self, row: npt.NDArray[Any], paragraph: bytes) -> bool:
        """Writes a paragraph's signatures to a row [1] of `paragraphs_type`; false where it has too few words."""
        words = _WORDS.findall(paragraph.decode("utf-8", "replace").casefold())
        if len(words) < self._options.min_duplicate_words:
            return False
        row["exact"] = int.from_bytes(hashlib.sha256(" ".join(words).encode()).digest()[:8], "big")
        if self._sketch is not None:
            shingles = {" ".join(words[i : i + _SHINGLE]).encode() for i in range(max(1, len(words) - _SHINGLE + 1))}
            self._sketch.clear()
            self._sketch.update_batch(shingles)
            row["near"] = self._sketch.hashvalues
        return True


def decide(blocks: Callable[[], Iterable[npt.NDArray[Any]]], options: QualityOptions) -> npt.NDArray[np.uint8]:
    """Which paragraphs of a build go: STAYS, EXACT or NEAR for each, [paragraphs].

    Args:
      blocks: gives all paragraphs in the order of the documents, in pieces; it is called twice for near duplicates.
      options: what counts as a duplicate.

    Memory, measured: 60 bytes a paragraph; for near duplicates 60 and 8 for each of datasketch's bands (9 of them at a
    threshold of 0.8), and 4.5 kB for each paragraph that stays although it shares a band with another one.
    """
    exact: list[npt.NDArray[np.uint64]] = []
    bands: list[npt.NDArray[np.uint64]] = []
    index = None if options.near_duplicate_threshold is None else _index(options.near_duplicate_threshold)
    for block in blocks():
        exact.append(block["exact"].copy())
        if index is not None:
            bands.append(_hash_bands(block["near"], index))
    kinds = np.zeros(sum(map(len, exact)), np.uint8)
    if options.drop_duplicates and len(kinds):
        kinds[:] = EXACT
        kinds[np.unique(np.concatenate(exact), return_index=True)[1]] = STAYS
    del exact
    if index is not None and len(kinds):
        shared = _share_a_band(bands, kinds == STAYS)
        del bands
        _drop_near(blocks(), shared, index, options.near_duplicate_threshold or 0, kinds)
    return kinds


def _index(threshold: float) -> Any:
    # Outside of these thresholds datasketch finds no bands.
    return _datasketch().MinHashLSH(threshold=min(max(threshold, 0.05), 0.95), num_perm=PERMUTATIONS)


def _hash_bands(near: npt.NDArray[np.uint32], index: Any) -> npt.NDArray[np.uint64]:
    """A hash of each of the index's bands, [bands, paragraphs]: equal bands have equal hashes."""
    hashes = np.zeros((index.b, len(near)), np.uint64)
    for band, (start, end) in enumerate(index.hashranges):
        for column in range(start, end):
            hashes[band] = (hashes[band] ^ near[:, column]) * np.uint64(0x9E3779B97F4A7C15)
            hashes[band] ^= hashes[band] >> np.uint64(29)
    return hashes


def _share_a_band(hashes: Sequence[npt.NDArray[np.uint64]], stays: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Marks the paragraphs among those that stay of which a band occurs twice: only they can be found by the index.

    Args:
      hashes: of the bands of the paragraphs, [bands, paragraphs], in pieces.
      stays: [paragraphs].
    """
    rows = np.flatnonzero(stays)
    shared = np.zeros(len(stays), bool)
    for band in range(len(hashes[0])):
        values = np.concatenate([piece[band] for piece in hashes])[rows]
        order = np.argsort(values)
        same = np.diff(values[order]) == 0
        shared[rows[order[1:][same]]] = True
        shared[rows[order[:-1][same]]] = True
    return shared


def _drop_near(
    blocks: Iterable[npt.NDArray[Any]],
    shared: npt.NDArray[np.bool_],
    index: Any,
    threshold: float,
    kinds: npt.NDArray[np.uint8],
) -> None:
    """Marks as NEAR each paragraph that is at least `threshold` similar to one before it that stays."""
    blank = _new_sketch()
    kept: dict[int, npt.NDArray[np.uint32]] = {}
    first = 0
    for block in blocks:
        for number in np.flatnonzero(shared[first : first + len(block)]).tolist():
            signature = block["near"][number].copy()
            sketch = blank.copy()
            sketch.hashvalues = signature
            if any(np.mean(kept[other] == signature) >= threshold for other in index.query(sketch)):
                kinds[first + number] = NEAR
            else:
                index.insert(first + number, sketch)
                kept[first + number] = signature
        first += len(block)


def _new_sketch() -> Any:
    return _datasketch().MinHash(num_perm=PERMUTATIONS, seed=1, scheme=_SCHEME, hashfunc=zlib.crc32)


def check_installed(options: QualityOptions) -> None:
    """Raises UnusableInputError where near duplicates are asked for and datasketch is missing."""
    if options.near_duplicate_threshold is not None:
        _datasketch()


def _datasketch() -> Any:
    try:
        import datasketch
    except ImportError:
        raise UnusableInputError(
            "--near_duplicate_threshold needs datasketch; install maskmill with its extra: maskmill[quality]."
        ) from None
    return datasketch
