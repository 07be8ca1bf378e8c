"""Entry points: the text of a page, and whether it is a disambiguation page."""

import numpy as np

from transforms.extraction.kernels.clean import clean
from transforms.extraction.kernels.render import render
from transforms.extraction.kernels.structure import structure
from transforms.extraction.kernels.tables import (
    _NEWLINE,
    DOMAIN_DISAMBIGUATION,
    PADDING,
    ROOM,
    SETTINGS,
    Tables,
    find,
    hash_bytes,
)
from transforms.extraction.kernels.text import is_letter, trim
from transforms.kernels import kernel


@kernel
def extract(text, n, title, tables, out):  # type: ignore[no-untyped-def]
    """The three passes; the number of bytes of plain text in `out`, uint8[at least 2 n + ROOM]."""
    events, used = structure(text, n, tables)
    length = render(text, n, events, used, title, tables, out)
    return clean(out, length)


@kernel
def is_disambiguation(text, n, tables):  # type: ignore[no-untyped-def]
    """True if a template of the DISAMBIGUATION domain is called in text[:n], or a switch of that domain is set."""
    i = 0
    while i < n:
        c = text[i]
        if c == 123 and text[i + 1] == 123:
            i += 2
            start = i
            while i < n and i < start + 100:
                c = text[i]
                if c == 124 or c == 125 or c == 123 or c == 60 or c == _NEWLINE:
                    break
                i += 1
            a, b = trim(text, start, i)
            if find(tables, np.int64(DOMAIN_DISAMBIGUATION), text, a, b) >= 0:
                return True
        elif c == 95 and text[i + 1] == 95:
            start = i
            i += 2
            while i < n and i < start + 60 and (is_letter(text[i]) or text[i] >= 0x80 or text[i] == 95):
                i += 1
            if find(tables, np.int64(DOMAIN_DISAMBIGUATION), text, start, i) >= 0:
                return True
        else:
            i += 1
    return False


def warm_up() -> None:
    """Compiles the entry kernels."""
    tables = Tables(
        structure_class=np.zeros(256, np.uint8),
        render_class=np.zeros(256, np.uint8),
        fold=np.zeros(256, np.uint8),
        words=np.zeros((16, 6), np.int32),
        pool=np.zeros(1, np.uint8),
        code=np.zeros(1, np.int32),
        upper=np.zeros(0x600, np.uint16),
        lower=np.zeros(0x600, np.uint16),
        settings=np.zeros(SETTINGS, np.int64),
    )
    text = np.zeros(PADDING, np.uint8)
    extract(text, 0, np.zeros(1, np.uint8), tables, np.zeros(ROOM, np.uint8))
    is_disambiguation(text, 0, tables)
    hash_bytes(tables.fold, 1, text, 0, 1)
