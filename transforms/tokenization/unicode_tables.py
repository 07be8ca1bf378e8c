"""What BERT's basic tokenization does to each code point, as tables for the kernels, for pinned Unicode versions.

The reference asks Python's `unicodedata` and `str.lower`, so its output depends on the Python that runs it. Here the
version is named: 11.0.0 is that of Python 3.7, which made MLPerf's published data; 15.1.0 that of Python 3.13.

`python -m transforms.unicode_tables SOURCE.tsv.gz TARGET.bin.gz` makes a table file from a list of properties (see
tests/data/unicode). Source of the rules: tokenization.py of google-research/bert.

A table maps a code point c in two steps: `blocks[pages[c >> 7] * 128 + (c & 127)]` is its entry, a uint32:

    bits 0-3    kind, see below
    bit 4       whether `str.strip` takes it away (a line of such characters is blank)
    bits 5-6    how `str.lower` treats it around a capital sigma: 0 neither, 1 ignored, 2 cased
    bits 7-8    number of code points that it becomes
    bits 9-12   number of their bytes in UTF-8; 0 for an ideograph or punctuation that stays as it is
    bits 13-31  where they start in `pool`

For COMPLEX, `pool` has six bytes for each of its code points: combining class, number of UTF-8 bytes (0: it is
deleted), the bytes.
"""

import dataclasses
import functools
import gzip
import struct
import sys
from importlib import resources

import numpy as np

from transforms.errors import UnusableInputError

VERSIONS = ("11.0.0", "15.1.0")

KEEP = 0  # stays as it is, inside a word
DELETE = 1  # is taken away before anything else
SPACE = 2  # ends a token and a word
IDEOGRAPH = 3  # a token and a word of its own
PUNCTUATION = 4  # a word of its own inside a token
MAP = 5  # becomes other code points, all starters, inside a word
STARTER = 6  # an accent of combining class 0: is taken away, but ends a run of marks to be ordered
ACCENT = 7  # is taken away by accent stripping
SIGMA = 8  # its lower case depends on what is around it
COMPLEX = 9  # becomes marks that canonical ordering may move

PAGE_BITS = 7  # of a code point, are its place in a block

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

_MAGIC = b"maskmill unicode 1\n"
_PAGES = 0x110000 >> PAGE_BITS
_STRIPPED = {9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
_STRIPPED |= set(range(0x2000, 0x200B))
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


@dataclasses.dataclass(frozen=True)
class CodePoints:
    """The table of one Unicode version, for lower-casing tokenization or not.

    `pages` uint16[8704], `blocks` uint32[128 * number of blocks], `pool` uint8[n]: see the module's head.
    """

    version: str
    do_lower_case: bool
    pages: np.ndarray
    blocks: np.ndarray
    pool: np.ndarray


@functools.cache
def load(version: str, do_lower_case: bool) -> CodePoints:
    """Reads a table that comes with the package.

    Raises:
      UnusableInputError: there is no table for this version.
    """
    if version not in VERSIONS:
        raise UnusableInputError(f"unicode {version}: no such tables; there are {' and '.join(VERSIONS)}.")
    packed = resources.files("transforms.tokenization").joinpath("data", f"unicode-{version}.bin.gz").read_bytes()
    content = gzip.decompress(packed)
    sizes = struct.unpack_from("<4I", content, len(_MAGIC))
    at = len(_MAGIC) + 16
    if do_lower_case:
        blocks, pool = sizes[:2]
    else:
        at += _PAGES * 2 + sizes[0] * 4 + sizes[1]
        blocks, pool = sizes[2:]
    end = at + _PAGES * 2 + blocks * 4 + pool
    # A bytearray, so that the arrays have the one type that the kernels are compiled for: not read-only.
    table = bytearray(content[at:end])
    return CodePoints(
        version,
        do_lower_case,
        np.frombuffer(table, np.uint16, _PAGES),
        np.frombuffer(table, np.uint32, blocks, _PAGES * 2),
        np.frombuffer(table, np.uint8, pool, _PAGES * 2 + blocks * 4),
    )


@dataclasses.dataclass(frozen=True)
class _Properties:
    """Properties by code point; what is missing has the category Cn and nothing else."""

    categories: dict[int, str]
    combining: dict[int, int]
    nfd: dict[int, list[int]]
    lower: dict[int, list[int]]
    case: dict[int, int]


def _hangul(point: int) -> list[int]:
    index = point - 0xAC00
    parts = [0x1100 + index // 588, 0x1161 + index % 588 // 28]
    return [*parts, 0x11A7 + index % 28] if index % 28 else parts


def _read_properties(path: str) -> _Properties:
    properties = _Properties({}, {}, {}, {}, {})
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            points, category, combining, nfd, lower, case = line.rstrip("\n").split("\t")
            first, _, last = points.partition("..")
            for point in range(int(first, 16), int(last or first, 16) + 1):
                properties.categories[point] = category
                properties.combining[point] = int(combining)
                if nfd:
                    properties.nfd[point] = _hangul(point) if nfd == "hangul" else [int(p, 16) for p in nfd.split()]
                if lower:
                    properties.lower[point] = [int(p, 16) for p in lower.split()]
                properties.case[point] = {"": 0, "i": IGNORED, "c": CASED}[case]
    return properties


class _Builder:
    """Makes the entries of one table."""

    def __init__(self, properties: _Properties, do_lower_case: bool) -> None:
        self._properties = properties
        self._do_lower_case = do_lower_case
        self.pool = bytearray()
        self._pooled: dict[bytes, int] = {}

    def _is_punctuation(self, point: int) -> bool:
        if 33 <= point <= 47 or 58 <= point <= 64 or 91 <= point <= 96 or 123 <= point <= 126:
            return True
        return self._properties.categories.get(point, "Cn").startswith("P")

    def _entry(self, kind: int, count: int = 0, output: bytes = b"") -> int:
        if output not in self._pooled:
            self._pooled[output] = len(self.pool)
            self.pool += output
        # A complex entry's byte count follows from its count, and may not fit.
        size = 0 if kind == COMPLEX else len(output)
        if count > 3 or size > 12 or self._pooled[output] >= 1 << 32 - POOL_SHIFT:
            raise ValueError(f"{output!r}: this does not fit into an entry")
        return kind | count << COUNT_SHIFT | size << BYTES_SHIFT | self._pooled[output] << POOL_SHIFT

    def entry(self, point: int) -> int:
        marks = WHITE if point in _STRIPPED else 0
        if self._do_lower_case:
            marks |= self._properties.case.get(point, 0) << CASE_SHIFT
        return self._what_it_becomes(point) | marks

    def _what_it_becomes(self, point: int) -> int:
        category = self._properties.categories.get(point, "Cn")
        if point in (9, 10, 13) or category == "Zs":
            return self._entry(SPACE)
        if point in (0, 0xFFFD) or category in ("Cc", "Cf"):
            return self._entry(DELETE)
        if category in ("Zl", "Zp"):
            return self._entry(SPACE)  # the reference keeps them; str.split takes them for spaces
        output = [point]
        if self._do_lower_case and point == 0x3A3:
            return self._entry(SIGMA)
        if self._do_lower_case:
            lower = self._properties.lower.get(point, output)
            output = [d for p in lower for d in self._properties.nfd.get(p, [p])]
        kept = [p for p in output if not self._do_lower_case or self._properties.categories.get(p, "Cn") != "Mn"]
        text = "".join(map(chr, kept)).encode("utf-8", "surrogatepass")
        if any(first <= point <= last for first, last in _IDEOGRAPHS):
            return self._entry(IDEOGRAPH, len(kept), b"" if kept == [point] else text)
        if not kept:
            starter = any(not self._properties.combining.get(p, 0) for p in output)
            return self._entry(STARTER if starter else ACCENT)
        if self._do_lower_case and any(self._properties.combining.get(p, 0) for p in kept):
            return self._complex(output)
        if any(map(self._is_punctuation, kept)):
            if len(kept) != 1:
                raise ValueError(f"U+{point:04X} becomes punctuation and more: the kernels do not expect that")
            return self._entry(PUNCTUATION, 1, b"" if kept == [point] else text)
        return KEEP if kept == [point] else self._entry(MAP, len(kept), text)

    def _complex(self, output: list[int]) -> int:
        records = bytearray()
        for point in output:
            combining = self._properties.combining.get(point, 0)
            is_accent = self._properties.categories.get(point, "Cn") == "Mn"
            if is_accent and combining:
                continue
            if self._is_punctuation(point):
                raise ValueError(f"U+{point:04X} is punctuation among marks: the kernels do not expect that")
            text = b"" if is_accent else chr(point).encode()
            records += bytes([combining, len(text)]) + text.ljust(4, b"\0")
        return self._entry(COMPLEX, len(records) // COMPLEX_BYTES, bytes(records))


def _build(properties: _Properties, do_lower_case: bool) -> tuple[bytes, int, int]:
    builder = _Builder(properties, do_lower_case)
    pages = []
    blocks: dict[tuple[int, ...], int] = {}
    for page in range(_PAGES):
        block = tuple(builder.entry(point) for point in range(page << 7, (page + 1) << 7))
        pages.append(blocks.setdefault(block, len(blocks)))
    flat = np.array([entry for block in blocks for entry in block], np.uint32)
    table = np.array(pages, np.uint16).tobytes() + flat.tobytes() + bytes(builder.pool)
    return table, len(flat), len(builder.pool)


def build(source: str) -> bytes:
    """Makes the content of a table file (before packing) from a list of properties."""
    properties = _read_properties(source)
    lower, lower_blocks, lower_pool = _build(properties, True)
    cased, cased_blocks, cased_pool = _build(properties, False)
    return _MAGIC + struct.pack("<4I", lower_blocks, lower_pool, cased_blocks, cased_pool) + lower + cased


def main(source: str, target: str) -> None:
    """Writes a table file."""
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(build(source))


if __name__ == "__main__":
    main(*sys.argv[1:])
