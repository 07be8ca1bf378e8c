"""Signatures of paragraphs, by which duplicates are found: a hash of the words, and a MinHash of word 5-grams.

A fragment writes a row for each of its paragraphs; `duplicates` decides over the rows of a whole build. MinHashes are
those of datasketch (Broder, On the resemblance and containment of documents, 1997).
"""

import hashlib
import re
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.text_shards.options import QualityOptions

# Of a MinHash. Fewer make the estimated similarity coarser, more make signing slower.
PERMUTATIONS = 128

_WORD = re.compile(r"\w+")
_WORDS_A_SHINGLE = 5
_HASH_BYTES = 8

# Which of datasketch's families of permutations, and which of its members: other ones drop other paragraphs.
_SCHEME = "affine32"
_SEED = 1

# offset, size: the paragraph's bytes in its fragment's text; sentences: lines in it; body: lines of its whole document,
# the title left out; exact: 64 bits that paragraphs of the same words share, case and punctuation aside.
PARAGRAPHS = np.dtype([("offset", "<i8"), ("exact", "<u8"), ("size", "<i4"), ("sentences", "<i4"), ("body", "<i4")])
# near: the MinHash of the paragraph's word 5-grams.
SIGNED_PARAGRAPHS = np.dtype([*PARAGRAPHS.descr, ("near", "<u4", (PERMUTATIONS,))])


def paragraphs_type(options: QualityOptions) -> np.dtype[Any]:
    """Return the type of a fragment's rows of paragraphs: with a MinHash where near duplicates are looked for."""
    return PARAGRAPHS if options.near_duplicate_threshold is None else SIGNED_PARAGRAPHS


class ParagraphSigner:
    """Signs paragraphs. Raises UnusableInputError if near duplicates are asked for and datasketch is missing."""

    def __init__(self, options: QualityOptions) -> None:
        self._options = options
        # One sketch for all paragraphs: to draw its permutations takes longer than to use them.
        self._sketch = None if options.near_duplicate_threshold is None else new_sketch()

    def sign(self, row: npt.NDArray[Any], paragraph: bytes) -> bool:
        """Write a paragraph's signatures to a row [1] of `paragraphs_type`; return False if it has too few words."""
        words = _WORD.findall(paragraph.decode("utf-8", "replace").casefold())
        if len(words) < self._options.min_duplicate_words:
            return False
        digest = hashlib.sha256(" ".join(words).encode()).digest()
        row["exact"] = int.from_bytes(digest[:_HASH_BYTES], "big")
        if self._sketch is not None:
            starts = range(max(1, len(words) - _WORDS_A_SHINGLE + 1))
            self._sketch.clear()
            self._sketch.update_batch({" ".join(words[i : i + _WORDS_A_SHINGLE]).encode() for i in starts})
            row["near"] = self._sketch.hashvalues
        return True


def new_sketch() -> Any:
    """Return an empty MinHash of PERMUTATIONS, the same in every process."""
    return import_datasketch().MinHash(num_perm=PERMUTATIONS, seed=_SEED, scheme=_SCHEME, hashfunc=zlib.crc32)


def import_datasketch() -> Any:
    """Return the module datasketch, which is an extra. Raises UnusableInputError if it is missing."""
    try:
        import datasketch
    except ImportError:
        raise UnusableInputError(
            "--near_duplicate_threshold needs datasketch; install it: pip install 'maskmill[quality]'."
        ) from None
    return datasketch
