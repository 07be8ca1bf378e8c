"""Tables of BERT's basic tokenization for the kernels: its effect on each code point, for pinned Unicode versions.

The reference asks Python's `unicodedata` and `str.lower`, so its output depends on the Python that runs it. Here the
version is named: 11.0.0 is that of Python 3.7, which made MLPerf's published data; 15.1.0 that of Python 3.13.

Source of the rules: tokenization.py of google-research/bert. tools/make_unicode_tables.py makes the files by them.

A table maps a code point c in two steps: `blocks[pages[c >> 7] * 128 + (c & 127)]` is its entry, a uint32:

    bits 0-3    kind, see below
    bit 4       whether `str.strip` removes it (a line of such characters is blank)
    bits 5-6    how `str.lower` treats it around a capital sigma: 0 neither, 1 ignored, 2 cased
    bits 7-8    number of code points that replace it
    bits 9-12   number of their bytes in UTF-8; 0 for an ideograph or punctuation, which stays as it is
    bits 13-31  where they start in `pool`

For COMPLEX, `pool` has six bytes for each of its code points: combining class, number of UTF-8 bytes (0: it is
deleted), the bytes.
"""

import dataclasses
import functools
import gzip
import struct
from importlib import resources

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError

VERSIONS = ("11.0.0", "15.1.0")

# Kinds.
KEEP = 0  # stays as it is, inside a word
DELETE = 1  # is removed first
SPACE = 2  # ends a token and a word
IDEOGRAPH = 3  # a token and a word of its own
PUNCTUATION = 4  # a word of its own inside a token
MAP = 5  # becomes other code points, all starters, inside a word
STARTER = 6  # an accent of combining class 0: is removed, but ends a run of marks to be ordered
ACCENT = 7  # is removed by accent stripping
SIGMA = 8  # its lower case depends on the characters around it
COMPLEX = 9  # becomes marks that canonical ordering may move

PAGE_BITS = 7  # the lowest bits of a code point are its place in a block

# The parts of an entry.
KIND_MASK = 15
WHITE = 1 << 4
CASE_SHIFT = 5
CASE_MASK = 3
IGNORED = 1
CASED = 2
COUNT_SHIFT = 7
COUNT_MASK = 3
BYTES_SHIFT = 9
BYTES_MASK = 15
POOL_SHIFT = 13

COMPLEX_BYTES = 6

MAGIC = b"maskmill unicode 1\n"
PAGES = 0x110000 >> PAGE_BITS
SIZES = "<4I"  # entries of `blocks` and bytes of `pool`: lower-cased, then cased


@dataclasses.dataclass(frozen=True)
class CodePoints:
    """The table of one Unicode version, for tokenization with or without lower-casing; see the top of the module.

    pages: uint16[PAGES]. blocks: uint32[128 * number of blocks]. pool: uint8[n].
    """

    pages: npt.NDArray[np.uint16]
    blocks: npt.NDArray[np.uint32]
    pool: npt.NDArray[np.uint8]


@functools.cache
def load(version: str, do_lower_case: bool) -> CodePoints:
    """Return a table of the package; raise UnusableInputError if it has none for this version."""
    if version not in VERSIONS:
        raise UnusableInputError(f"unicode {version}: no such tables; there are {' and '.join(VERSIONS)}.")
    packed = resources.files("maskmill.tokenization").joinpath("data", f"unicode-{version}.bin.gz").read_bytes()
    content = gzip.decompress(packed)
    *lower, blocks, pool = struct.unpack_from(SIZES, content, len(MAGIC))
    start = len(MAGIC) + struct.calcsize(SIZES)
    if do_lower_case:
        blocks, pool = lower
    else:
        start += _table_bytes(*lower)
    # A bytearray, so that the arrays have the one type that the kernels are compiled for: not read-only.
    table = bytearray(content[start : start + _table_bytes(blocks, pool)])
    return CodePoints(
        np.frombuffer(table, np.uint16, PAGES),
        np.frombuffer(table, np.uint32, blocks, 2 * PAGES),
        np.frombuffer(table, np.uint8, pool, 2 * PAGES + 4 * blocks),
    )


def _table_bytes(blocks: int, pool: int) -> int:
    """Return the size of a table: uint16 `pages`, uint32 `blocks`, uint8 `pool`."""
    return 2 * PAGES + 4 * blocks + pool
