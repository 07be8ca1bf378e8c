"""Makes the files of unicode_tables.py from lists of properties (tests/data/unicode).

`python -m tools.make_unicode_tables SOURCE.tsv.gz TARGET.bin.gz`
"""

import gzip
import struct
import sys
from typing import NamedTuple

import numpy as np

from maskmill.tokenization import unicode_tables as tables

_MARK = "Mn"  # the category of accents
_STRIPPED = {9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
_STRIPPED |= set(range(0x2000, 0x200B))
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class _Property(NamedTuple):
    """Properties of a code point.

    category: the general category. combining: the canonical combining class. nfd: the full canonical decomposition,
    lower: the lower case; None if that is the code point itself. case: CASED, IGNORED or 0.
    """

    category: str = "Cn"  # unassigned
    combining: int = 0
    nfd: list[int] | None = None
    lower: list[int] | None = None
    case: int = 0


_NONE = _Property()


def _is_punctuation(point: int, category: str) -> bool:
    """As BERT sees it: all of ASCII but letters, digits and controls, and the categories P*."""
    if 33 <= point <= 47 or 58 <= point <= 64 or 91 <= point <= 96 or 123 <= point <= 126:
        return True
    return category.startswith("P")


def _hangul(point: int) -> list[int]:
    """Return the canonical decomposition of a Hangul syllable (Unicode Standard, section 3.12)."""
    index = point - 0xAC00
    parts = [0x1100 + index // 588, 0x1161 + index % 588 // 28]
    return [*parts, 0x11A7 + index % 28] if index % 28 else parts


def _read_properties(path: str) -> dict[int, _Property]:
    """Return the properties by code point; those that are missing are unassigned."""
    properties = {}
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            points, category, combining, nfd, lower, case = line.rstrip("\n").split("\t")
            first, _, last = points.partition("..")
            for point in range(int(first, 16), int(last or first, 16) + 1):
                properties[point] = _Property(
                    category,
                    int(combining),
                    _hangul(point) if nfd == "hangul" else [int(p, 16) for p in nfd.split()] or None,
                    [int(p, 16) for p in lower.split()] or None,
                    {"": 0, "i": tables.IGNORED, "c": tables.CASED}[case],
                )
    return properties


class _Builder:
    """Makes the entries of one table."""

    def __init__(self, properties: dict[int, _Property], do_lower_case: bool) -> None:
        self._properties = properties
        self._do_lower_case = do_lower_case
        self.pool = bytearray()
        self._pooled: dict[bytes, int] = {}

    def _of(self, point: int) -> _Property:
        return self._properties.get(point, _NONE)

    def _entry(self, kind: int, count: int = 0, output: bytes = b"") -> int:
        """Return an entry whose output, `count` code points, is in the pool."""
        if output not in self._pooled:
            self._pooled[output] = len(self.pool)
            self.pool += output
        # A complex entry's byte count follows from its count, and may not fit.
        size = 0 if kind == tables.COMPLEX else len(output)
        if count > 3 or size > 12 or self._pooled[output] >= 1 << 32 - tables.POOL_SHIFT:
            raise ValueError(f"{output!r}: this does not fit into an entry")
        return (
            kind | count << tables.COUNT_SHIFT | size << tables.BYTES_SHIFT | self._pooled[output] << tables.POOL_SHIFT
        )

    def block(self, page: int) -> tuple[int, ...]:
        """Return the entries of a page's code points."""
        return tuple(map(self._entry_of, range(page << tables.PAGE_BITS, (page + 1) << tables.PAGE_BITS)))

    def _entry_of(self, point: int) -> int:
        flags = tables.WHITE if point in _STRIPPED else 0
        if self._do_lower_case:
            flags |= self._of(point).case << tables.CASE_SHIFT
        return self._becomes(point) | flags

    def _becomes(self, point: int) -> int:
        """Return the entry of a code point, but for its white space and its case."""
        category = self._of(point).category
        if point in (9, 10, 13) or category == "Zs":
            return self._entry(tables.SPACE)
        if point in (0, 0xFFFD) or category in ("Cc", "Cf"):
            return self._entry(tables.DELETE)
        if category in ("Zl", "Zp"):
            return self._entry(tables.SPACE)  # the reference keeps them; str.split takes them for spaces
        output = [point]
        if self._do_lower_case and point == 0x3A3:
            return self._entry(tables.SIGMA)
        if self._do_lower_case:
            lower = self._of(point).lower or output
            output = [d for p in lower for d in self._of(p).nfd or [p]]
        kept = [p for p in output if not self._do_lower_case or self._of(p).category != _MARK]
        text = "".join(map(chr, kept)).encode("utf-8", "surrogatepass")
        if any(first <= point <= last for first, last in _IDEOGRAPHS):
            return self._entry(tables.IDEOGRAPH, len(kept), b"" if kept == [point] else text)
        if not kept:
            starter = any(not self._of(p).combining for p in output)
            return self._entry(tables.STARTER if starter else tables.ACCENT)
        if self._do_lower_case and any(self._of(p).combining for p in kept):
            return self._complex(output)
        if any(_is_punctuation(p, self._of(p).category) for p in kept):
            if len(kept) != 1:
                raise ValueError(f"U+{point:04X} becomes punctuation and more: the kernels do not expect that")
            return self._entry(tables.PUNCTUATION, 1, b"" if kept == [point] else text)
        return tables.KEEP if kept == [point] else self._entry(tables.MAP, len(kept), text)

    def _complex(self, output: list[int]) -> int:
        """Return the entry of a code point that becomes marks which canonical ordering may move."""
        records = bytearray()
        for point in output:
            category, combining, *_ = self._of(point)
            is_accent = category == _MARK
            if is_accent and combining:
                continue
            if _is_punctuation(point, category):
                raise ValueError(f"U+{point:04X} is punctuation among marks: the kernels do not expect that")
            text = b"" if is_accent else chr(point).encode()
            records += bytes([combining, len(text)]) + text.ljust(4, b"\0")
        return self._entry(tables.COMPLEX, len(records) // tables.COMPLEX_BYTES, bytes(records))


def _build(properties: dict[int, _Property], do_lower_case: bool) -> tuple[bytes, int, int]:
    """Make a table; return its bytes, how many entries its blocks have, and the size of its pool."""
    builder = _Builder(properties, do_lower_case)
    pages = []
    blocks: dict[tuple[int, ...], int] = {}
    unassigned = (tables.KEEP,) * (1 << tables.PAGE_BITS)
    assigned = {point >> tables.PAGE_BITS for point in properties}
    for first, last in _IDEOGRAPHS:
        assigned.update(range(first >> tables.PAGE_BITS, (last >> tables.PAGE_BITS) + 1))
    for page in range(tables.PAGES):
        block = builder.block(page) if page in assigned else unassigned
        pages.append(blocks.setdefault(block, len(blocks)))
    flat = np.array([entry for block in blocks for entry in block], np.uint32)
    table = np.array(pages, np.uint16).tobytes() + flat.tobytes() + bytes(builder.pool)
    return table, len(flat), len(builder.pool)


def build(source: str) -> bytes:
    """Make the content of a table file (before packing) from a list of properties."""
    properties = _read_properties(source)
    lower, lower_blocks, lower_pool = _build(properties, True)
    cased, cased_blocks, cased_pool = _build(properties, False)
    return tables.MAGIC + struct.pack(tables.SIZES, lower_blocks, lower_pool, cased_blocks, cased_pool) + lower + cased


def main(source: str, target: str) -> None:
    """Write a table file."""
    with open(target, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(build(source))


if __name__ == "__main__":
    main(*sys.argv[1:])
