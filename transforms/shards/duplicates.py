"""Duplicate paragraphs: which paragraphs of a whole build are dropped.

The first paragraph of its kind stays, in the order of the documents. So what is dropped depends on the documents
alone, never on where the input is cut nor on which worker comes first. The decision is made once for a build and kept
in its work directory: `<key>.npy`, a row of DROPPED for each paragraph that goes.

Near duplicates are found as in Broder, On the resemblance and containment of documents (1997): MinHashes of word
5-grams, looked up by locality-sensitive hashing, through datasketch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import completions
from transforms.shards.fragments import Fragment, in_order, read_paragraphs
from transforms.shards.options import ExtractionOptions, QualityOptions
from transforms.shards.signatures import PERMUTATIONS, import_datasketch, new_sketch

Rows = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
Kinds = npt.NDArray[np.uint8]

KIND = "duplicates"

# What becomes of a paragraph: it stays, or goes as the duplicate of one before it.
STAYS, EXACT, NEAR = 0, 1, 2

# A paragraph that is dropped: the place of its fragment in order, and fields of its row of signatures.PARAGRAPHS.
_COPIED_FIELDS = ("offset", "size", "sentences", "body")
DROPPED = np.dtype([("fragment", "<i8"), ("offset", "<i8"), ("size", "<i4"), ("sentences", "<i4"), ("body", "<i4")])

# Outside of these thresholds datasketch finds no bands.
_LOWEST_INDEX_THRESHOLD, _HIGHEST_INDEX_THRESHOLD = 0.05, 0.95

# The odd number nearest to 2^64 / golden ratio, and a shift: they spread the bits of a band's values over its hash.
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HASH_SHIFT = np.uint64(29)


def decide(blocks: Callable[[], Iterable[Rows]], options: QualityOptions) -> Kinds:
    """Decides on all paragraphs of a build: STAYS, EXACT or NEAR for each, [paragraphs].

    Args:
      blocks: gives all paragraphs in the order of the documents, rows of `signatures.paragraphs_type` in pieces; it is
        called twice for near duplicates.
      options: what counts as a duplicate.

    Memory, measured: 60 bytes a paragraph; for near duplicates 60 and 8 for each of datasketch's bands (9 of them at a
    threshold of 0.8), and 4.5 kB for each paragraph that stays although it shares a band with another one.
    """
    exact_hashes: list[Hashes] = []
    band_hashes: list[Hashes] = []
    threshold = options.near_duplicate_threshold
    index = None if threshold is None else _new_index(threshold)
    for block in blocks():
        exact_hashes.append(block["exact"].copy())
        if index is not None:
            band_hashes.append(_hash_bands(block["near"], index))
    kinds = np.full(sum(map(len, exact_hashes)), STAYS, np.uint8)
    if options.drop_duplicates and len(kinds):
        kinds[:] = EXACT
        kinds[np.unique(np.concatenate(exact_hashes), return_index=True)[1]] = STAYS
    del exact_hashes
    if threshold is not None and len(kinds):
        candidates = _find_candidates(band_hashes, kinds == STAYS)
        del band_hashes
        _drop_near(blocks(), candidates, index, threshold, kinds)
    return kinds


def _new_index(threshold: float) -> Any:
    """An empty index of datasketch, which finds paragraphs of at least about this similarity."""
    threshold = min(max(threshold, _LOWEST_INDEX_THRESHOLD), _HIGHEST_INDEX_THRESHOLD)
    return import_datasketch().MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)


def _hash_bands(near: npt.NDArray[np.uint32], index: Any) -> Hashes:
    """Hashes each of the index's bands of MinHashes [paragraphs, PERMUTATIONS]: [bands, paragraphs].

    Equal bands have equal hashes.
    """
    hashes = np.zeros((index.b, len(near)), np.uint64)
    for band, (start, end) in enumerate(index.hashranges):
        for column in range(start, end):
            hashes[band] = (hashes[band] ^ near[:, column]) * _HASH_MULTIPLIER
            hashes[band] ^= hashes[band] >> _HASH_SHIFT
    return hashes


def _find_candidates(band_hashes: Sequence[Hashes], stays: Flags) -> Flags:
    """Marks the paragraphs, [paragraphs], that share a band with another one: the index can find no others.

    Args:
      band_hashes: of all paragraphs, [bands, paragraphs], in pieces.
      stays: the paragraphs that are not exact duplicates, [paragraphs]; the others are not looked at.
    """
    rows = np.flatnonzero(stays)
    is_candidate = np.zeros(len(stays), bool)
    for band in range(len(band_hashes[0])):
        hashes = np.concatenate([piece[band] for piece in band_hashes])[rows]
        order = np.argsort(hashes)
        is_same = np.diff(hashes[order]) == 0
        is_candidate[rows[order[1:][is_same]]] = True
        is_candidate[rows[order[:-1][is_same]]] = True
    return is_candidate


def _drop_near(blocks: Iterable[Rows], candidates: Flags, index: Any, threshold: float, kinds: Kinds) -> None:
    """Marks in `kinds` as NEAR each candidate that is at least `threshold` similar to one before it that stays."""
    blank = new_sketch()
    signatures: dict[int, npt.NDArray[np.uint32]] = {}  # of the candidates that stay, by paragraph
    block_start = 0
    for block in blocks:
        for row in np.flatnonzero(candidates[block_start : block_start + len(block)]).tolist():
            signature = block["near"][row].copy()
            sketch = blank.copy()
            sketch.hashvalues = signature
            paragraph = block_start + row
            if any(np.mean(signatures[other] == signature) >= threshold for other in index.query(sketch)):
                kinds[paragraph] = NEAR
            else:
                index.insert(paragraph, sketch)
                signatures[paragraph] = signature
        block_start += len(block)


def decision_key(fragments: Iterable[Fragment], extraction: ExtractionOptions) -> str:
    """What the decision depends on: the fragments in order, the options, the code's format."""
    keys = [fragment.key for fragment in in_order(fragments)]
    return completions.fingerprint(KIND, completions.FORMAT_VERSIONS["duplicates"], extraction.quality, keys)


def find_duplicates(fragments: Iterable[Fragment], extraction: ExtractionOptions, output: str) -> Rows:
    """Decides on the paragraphs of a build, unless an earlier run has; returns rows of DROPPED, in order."""
    ordered = in_order(fragments)
    key = decision_key(ordered, extraction)
    completions.once(
        output,
        KIND,
        key,
        lambda: _write_decision(ordered, extraction, output, key),
        lambda record: completions.PieceFiles(has_table=True),
        name="the decision on duplicate paragraphs",
    )
    return completions.read_table(output, KIND, key)


def duplicate_counts(fragments: Iterable[Fragment], extraction: ExtractionOptions, output: str) -> dict[str, int]:
    """How many paragraphs were looked at, and how many were dropped as what, once `find_duplicates` has decided."""
    return dict(completions.finished(output, KIND, decision_key(fragments, extraction))["counts"])


def _write_decision(
    ordered: Sequence[Fragment], extraction: ExtractionOptions, output: str, key: str
) -> dict[str, Any]:
    def numbered_blocks() -> Iterator[tuple[int, Rows]]:
        for number, fragment in enumerate(ordered):
            for block in read_paragraphs(fragment, extraction, output):
                yield number, block

    kinds = decide(lambda: (block for _, block in numbered_blocks()), extraction.quality)
    pieces = [np.zeros(0, DROPPED)]
    block_start = 0
    for number, block in numbered_blocks():
        rows = block[kinds[block_start : block_start + len(block)] != STAYS]
        piece = np.zeros(len(rows), DROPPED)
        piece["fragment"] = number
        for field in _COPIED_FIELDS:
            piece[field] = rows[field]
        pieces.append(piece)
        block_start += len(block)
    completions.write_table(output, KIND, key, np.concatenate(pieces))
    counts = {
        "read": len(kinds),
        "exact_duplicates": int(np.count_nonzero(kinds == EXACT)),
        "near_duplicates": int(np.count_nonzero(kinds == NEAR)),
    }
    return {"counts": counts}
