"""Makes the files of unicode_tables.py from lists of properties (tests/data/unicode).

`python -m maskmill.tokenization.make_unicode_tables SOURCE.tsv.gz TARGET.bin.gz`
"""

import dataclasses
import gzip
import struct
import sys

import numpy as np

from maskmill.tokenization.unicode_tables import (
    ACCENT,
    BYTES_SHIFT,
    CASE_SHIFT,
    CASED,
    COMPLEX,
    COMPLEX_BYTES,
    COUNT_SHIFT,
    DELETE,
    IDEOGRAPH,
    IGNORED,
    KEEP,
    MAGIC,
    MAP,
    PAGE_BITS,
    PAGES,
    POOL_SHIFT,
    PUNCTUATION,
    SIGMA,
    SIZES,
    SPACE,
    STARTER,
    WHITE,
)

_UNASSIGNED = "Cn"
_MARK = "Mn"  # the category of accents
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
class _Properties:
    """Properties by code point; a code point that is missing is unassigned and has no other property.

    categories: the general category. combining: the canonical combining class. nfd: the full canonical decomposition,
    where it has one. lower: the lower case, where it is another. case: CASED, IGNORED or 0.
    """

    categories: dict[int, str]
    combining: dict[int, int]
    nfd: dict[int, list[int]]
    lower: dict[int, list[int]]
    case: dict[int, int]

    def category(self, point: int) -> str:
        return self.categories.get(point, _UNASSIGNED)

    def combining_class(self, point: int) -> int:
        return self.combining.get(point, 0)

    def is_punctuation(self, point: int) -> bool:
        """As BERT sees it: all of ASCII but letters, digits and controls, and the categories P*."""
        if 33 <= point <= 47 or 58 <= point <= 64 or 91 <= point <= 96 or 123 <= point <= 126:
            return True
        return self.category(point).startswith("P")


def _hangul(point: int) -> list[int]:
    """The canonical decomposition of a Hangul syllable (Unicode Standard, section 3.12)."""
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

    def _entry(self, kind: int, count: int = 0, output: bytes = b"") -> int:
        """An entry whose output, `count` code points, is in the pool."""
        if output not in self._pooled:
            self._pooled[output] = len(self.pool)
            self.pool += output
        # A complex entry's byte count follows from its count, and may not fit.
        size = 0 if kind == COMPLEX else len(output)
        if count > 3 or size > 12 or self._pooled[output] >= 1 << 32 - POOL_SHIFT:
            raise ValueError(f"{output!r}: this does not fit into an entry")
        return kind | count << COUNT_SHIFT | size << BYTES_SHIFT | self._pooled[output] << POOL_SHIFT

    def block(self, page: int) -> tuple[int, ...]:
        """The entries of a page's code points."""
        return tuple(map(self._entry_of, range(page << PAGE_BITS, (page + 1) << PAGE_BITS)))

    def _entry_of(self, point: int) -> int:
        flags = WHITE if point in _STRIPPED else 0
        if self._do_lower_case:
            flags |= self._properties.case.get(point, 0) << CASE_SHIFT
        return self._becomes(point) | flags

    def _becomes(self, point: int) -> int:
        """The entry of a code point, but for its white space and its case."""
        category = self._properties.category(point)
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
        kept = [p for p in output if not self._do_lower_case or self._properties.category(p) != _MARK]
        text = "".join(map(chr, kept)).encode("utf-8", "surrogatepass")
        if any(first <= point <= last for first, last in _IDEOGRAPHS):
            return self._entry(IDEOGRAPH, len(kept), b"" if kept == [point] else text)
        if not kept:
            starter = any(not self._properties.combining_class(p) for p in output)
            return self._entry(STARTER if starter else ACCENT)
        if self._do_lower_case and any(self._properties.combining_class(p) for p in kept):
            return self._complex(output)
        if any(map(self._properties.is_punctuation, kept)):
            if len(kept) != 1:
                raise ValueError(f"U+{point:04X} becomes punctuation and more: the kernels do not expect that")
            return self._entry(PUNCTUATION, 1, b"" if kept == [point] else text)
        return KEEP if kept == [point] else self._entry(MAP, len(kept), text)

    def _complex(self, output: list[int]) -> int:
        """The entry of a code point that becomes marks which canonical ordering may move."""
        records = bytearray()
        for point in output:
            combining = self._properties.combining_class(point)
            is_accent = self._properties.category(point) == _MARK
            if is_accent and combining:
                continue
            if self._properties.is_punctuation(point):
                raise ValueError(f"U+{point:04X} is punctuation among marks: the kernels do not expect that")
            text = b"" if is_accent else chr(point).encode()
            records += bytes([combining, len(text)]) + text.ljust(4, b"\0")
        return self._entry(COMPLEX, len(records) // COMPLEX_BYTES, bytes(records))


def _build(properties: _Properties, do_lower_case: bool) -> tuple[bytes, int, int]:
    """Makes a table; returns its bytes, how many entries its blocks have, and the size of its pool."""
    builder = _Builder(properties, do_lower_case)
    pages = []
    blocks: dict[tuple[int, ...], int] = {}
    unassigned = (KEEP,) * (1 << PAGE_BITS)
    assigned = {point >> PAGE_BITS for point in properties.categories}
    for first, last in _IDEOGRAPHS:
        assigned.update(range(first >> PAGE_BITS, (last >> PAGE_BITS) + 1))
    for page in range(PAGES):
        block = builder.block(page) if page in assigned else unassigned
        pages.append(blocks.setdefault(block, len(blocks)))
    flat = np.array([entry for block in blocks for entry in block], np.uint32)
    table = np.array(pages, np.uint16).tobytes() + flat.tobytes() + bytes(builder.pool)
    return table, len(flat), len(builder.pool)


def build(source: str) -> bytes:
    """Makes the content of a table file (before packing) from a list of properties."""
    properties = _read_properties(source)
    lower, lower_blocks, lower_pool = _build(properties, True)
    cased, cased_blocks, cased_pool = _build(properties, False)
    return MAGIC + struct.pack(SIZES, lower_blocks, lower_pool, cased_blocks, cased_pool) + lower + cased


def main(source: str, target: str) -> None:
    """Writes a table file."""
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(build(source))


if __name__ == "__main__":
    main(*sys.argv[1:])
