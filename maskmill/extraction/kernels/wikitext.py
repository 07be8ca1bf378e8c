"""Wikitext to plain text, compiled: three linear passes over one page's bytes.

- `structure` finds every construct that has a closing mark (templates, links, tables, comments, extension tags), so
  that the next pass knows at an opener whether and where it is closed.
- `render` walks the page once, copies what is prose, jumps over what is dropped, and evaluates the template rules.
- `clean` collapses white space and repairs punctuation next to what was dropped.

What the kernels know of a site and its rules is in tables.Tables. What the passes share: tags.py, links.py, lines.py,
text.py. The layouts of arrays stand where their dtypes are: tables.WORD, structure.EVENT, structure.OPENER,
render.FRAME, rules.ARGUMENT.
"""

import numpy as np

from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.clean import clean
from maskmill.extraction.kernels.render import render
from maskmill.extraction.kernels.structure import structure
from maskmill.extraction.kernels.tables import CALL, WORD, Tables, find, hash_bytes
from maskmill.extraction.kernels.text import byte_set, find_any, is_letter, trim
from maskmill.kernels import ascii, inlined_kernel, kernel

LONGEST_TEMPLATE = 100  # bytes of a template's name that are looked at for those of disambiguation pages
TEMPLATE_NAME_ENDS = byte_set(b"|}{<\n")
LONGEST_SWITCH = 60  # and of a behaviour switch


@kernel
def extract(text, n, title, tables, out, counts, calls):
    """Return the three passes; the number of bytes of plain text in `out`, uint8[at least 2 n + ROOM].

    text: uint8[at least n + PADDING], the page's UTF-8, zeros from n on. title: uint8, not empty. counts:
    int64[COUNTS], added to. calls: CALL[any], where calls are listed (LISTED_*) as long as there is room.
    """
    events, used = structure(text, n, tables)
    length = render(text, n, events, used, title, tables, out, counts, calls)
    return clean(out, length, counts, tables.settings[codes.SETTING_HOLES] != 0)


@inlined_kernel
def switch_name_end(text, i, n):
    """Return one past the behaviour switch `__NAME__` that starts at i, as far as it matters."""
    stop = min(n, i + LONGEST_SWITCH)
    i += 2
    while i < stop and (is_letter(text[i]) or text[i] >= ascii.NOT_ASCII or text[i] == ascii.UNDERSCORE):
        i += 1
    return i


@kernel
def is_disambiguation(text, n, tables):
    """Return True if a template of the DISAMBIGUATION domain is called in text[:n], or a switch of that domain is set.

    text: uint8[at least n + PADDING], the page's UTF-8, zeros from n on.
    """
    i = n - n  # a literal would make numba compile what is called with it twice
    while i < n:
        c = text[i]
        if c == ascii.OPEN_BRACE and text[i + 1] == ascii.OPEN_BRACE:
            end = find_any(text, i + 2, min(n, i + 2 + LONGEST_TEMPLATE), TEMPLATE_NAME_ENDS)
            start, stop = trim(text, i + 2, end)
        elif c == ascii.UNDERSCORE and text[i + 1] == ascii.UNDERSCORE:
            start = i
            end = stop = switch_name_end(text, i, n)
        else:
            i += 1
            continue
        if find(tables, codes.DOMAIN_DISAMBIGUATION, text, start, stop) >= 0:
            return True
        i = end
    return False


def warm_up() -> None:
    """Compile the entry kernels."""
    tables = Tables(
        structure_class=np.zeros(256, np.bool_),
        render_class=np.zeros(256, np.bool_),
        fold=np.zeros(256, np.uint8),
        words=np.zeros(16, WORD),
        pool=np.zeros(1, np.uint8),
        code=np.zeros(1, np.int32),
        upper=np.zeros(codes.CASED, np.uint16),
        lower=np.zeros(codes.CASED, np.uint16),
        settings=np.zeros(codes.SETTINGS, np.int64),
    )
    text = np.zeros(codes.PADDING, np.uint8)
    out = np.zeros(codes.ROOM, np.uint8)
    extract(text, 0, np.zeros(1, np.uint8), tables, out, np.zeros(codes.COUNTS, np.int64), np.zeros(0, CALL))
    is_disambiguation(text, 0, tables)
    hash_bytes(tables.fold, 1, np.frombuffer(b" ", np.uint8), 0, 1)  # the bytes of a word, which are read-only
