"""The tables of the wikitext kernels: names, programs and settings that are made once for a site and its options.

maskmill.extraction.wikitext and maskmill.extraction.template_rules fill them, the kernels only read them.

- Tables.words: WORD[capacity], one open-addressing hash table for every set of names (DOMAIN_*). The capacity is a
  power of two, at most half of the rows are used, and a row's place follows from `hash_bytes`.
- Tables.pool: uint8, all strings: the keys, the texts that names stand for, the literals of the programs.
- Tables.code: int32, the programs of the template rules, one after another: OP_*, each followed by its operands.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.extraction.kernels import codes
from maskmill.kernels import inlined_kernel, kernel, lean_kernel


def record(kind: type[np.signedinteger[Any]], names: str) -> np.dtype[np.void]:
    """Return the type of rows whose fields all are of one kind."""
    return np.dtype([(name, kind) for name in names.split()])


# A row of Tables.words. `domain` is 0 in an empty row. The key lies in the pool. What the two values are depends on the
# domain; a name that stands for a text has the text's place in the pool and its length.
WORD = record(np.int32, "hash domain key key_length value second")

# A call: its bytes in the page, braces and all, and CALL_*.
CALL = record(np.int32, "start end kept")

FNV_OFFSET = 2166136261
FNV_PRIME = 16777619
HASH_BITS = 0x7FFFFFFF


class Tables(NamedTuple):
    """Tables for the kernels about a site, its language and the rules; see the module's comment."""

    structure_class: NDArray[np.bool_]  # [256], false for bytes that `structure` passes over
    render_class: NDArray[np.bool_]  # [256], false for bytes that `render` copies
    fold: NDArray[np.uint8]  # [256], what names are compared under: ASCII in lower case, `_` as a space
    words: NDArray[np.void]  # WORD[capacity]
    pool: NDArray[np.uint8]
    code: NDArray[np.int32]
    upper: NDArray[np.uint16]  # [CASED], the upper-case form of each of the first code points
    lower: NDArray[np.uint16]  # [CASED]
    settings: NDArray[np.int64]  # [SETTINGS], SETTING_*


def has_exact_names(domain: int) -> bool:
    """Return True if the names of a domain are case-sensitive."""
    return (
        domain == codes.DOMAIN_ENTITY
        or domain == codes.DOMAIN_TEX
        or domain == codes.DOMAIN_EXACT_TEMPLATE
        or domain >= codes.DOMAIN_EXACT_TABLES
    )


# Only kernels call this one: each caller in Python would compile it for its own type of number.
is_exact = lean_kernel(has_exact_names)


@kernel
def hash_bytes(fold, domain, source, start, end):
    """Return 31-bit FNV-1a of source[start:end] under the domain's case folding."""
    value = FNV_OFFSET ^ domain
    if is_exact(domain):
        for i in range(start, end):
            value = ((value ^ np.int64(source[i])) * FNV_PRIME) & HASH_BITS
    else:
        for i in range(start, end):
            value = ((value ^ np.int64(fold[source[i]])) * FNV_PRIME) & HASH_BITS
    return value


@inlined_kernel
def has_key(tables, row, domain, source, start):
    """Return True if the key in a row of `words` is the text from `start` on, under the domain's case folding."""
    word = tables.words[row]
    exact = is_exact(domain)
    for i in range(word.key_length):
        c = source[start + i]
        if not exact:
            c = tables.fold[c]
        if tables.pool[word.key + i] != c:
            return False
    return True


@lean_kernel
def find(tables, domain, source, start, end):
    """Return the row of `words` whose key in `domain` is source[start:end], or -1."""
    words = tables.words
    last = words.shape[0] - 1  # the capacity is a power of two
    value = hash_bytes(tables.fold, domain, source, start, end)
    row = value & last
    while words[row].domain != 0:
        word = words[row]
        if word.hash == value and word.domain == domain and word.key_length == end - start:
            if has_key(tables, row, domain, source, start):
                return row
        row = (row + 1) & last
    return -1


@lean_kernel
def find_in_table(tables, table, source, start, end):
    """Return the row of `words` for the key source[start:end] of a table of the rules, given as its domain; -1 if none.

    A key that has its case in common is preferred: MW and mW are two.
    """
    row = find(tables, codes.DOMAIN_EXACT_TABLES + table - codes.DOMAIN_TABLES, source, start, end)
    return row if row >= 0 else find(tables, np.int64(table), source, start, end)
