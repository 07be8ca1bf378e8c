"""HTML tags and extension tags in wikitext."""

import numpy as np

from transforms.extraction.kernels.tables import _NEWLINE, _SPACE, DOMAIN_HIDDEN, SETTING_KEYWORDS, find
from transforms.extraction.kernels.text import is_digit, is_letter
from transforms.kernels import kernel


@kernel
def tag_end(text, i, n):  # type: ignore[no-untyped-def]
    """The position of the `>` of the tag that starts at i; -1 if another `<` or the end comes first."""
    j = i + 1
    while j < n:
        c = text[j]
        if c == 62:
            return j
        if c == 60:
            return -1
        j += 1
    return -1


@kernel
def tag_name_end(text, i):  # type: ignore[no-untyped-def]
    j = i
    while j < i + 20 and (is_letter(text[j]) or is_digit(text[j])):
        j += 1
    return j


@kernel
def same_name(text, i, other, length):  # type: ignore[no-untyped-def]
    for k in range(length):
        if (text[i + k] | 32) != (text[other + k] | 32):
            return False
    c = text[i + length]
    return not (is_letter(c) or is_digit(c))


@kernel
def closing_tag(text, i, n, name, length, reference):  # type: ignore[no-untyped-def]
    """The position of `</name` at or after i; -1 if there is none, -2 if a reference is cut short before it.

    A reference is cut short by the next `<ref` and by a heading: MediaWiki would swallow what lies between.
    """
    while i < n:
        c = text[i]
        if c == 60:
            if text[i + 1] == 47:
                if i + 2 + length <= n and same_name(text, i + 2, name, length):
                    return i
            elif reference and same_name(text, i + 1, name, length):
                return -2
        elif reference and c == _NEWLINE and text[i + 1] == 61 and text[i + 2] == 61:
            return -2
        i += 1
    return -1


@kernel
def is_hidden(text, start, end, tables):  # type: ignore[no-untyped-def]
    """True if a tag's attributes text[start:end] hide its content: `display:none`, or a class that is no prose."""
    i = start
    while i < end:
        c = text[i] | 32
        if c == 100 and same_letters(text, i, end, tables, 0):
            j = i + 7
            while j < end and (text[j] == _SPACE or text[j] == 58):
                j += 1
            if j + 4 <= end and same_letters(text, j, end, tables, 1):
                return True
        elif c == 99 and text[i + 5] == 61 and same_letters(text, i, end, tables, 2):
            j = i + 6
            quote = text[j]
            if quote == 34 or quote == 39:
                j += 1
            while j < end and text[j] != quote:
                word = j
                while j < end and text[j] != quote and text[j] != _SPACE:
                    j += 1
                if find(tables, np.int64(DOMAIN_HIDDEN), text, word, j) >= 0:
                    return True
                if j < end and text[j] == _SPACE:
                    j += 1
            i = j
        i += 1
    return False


@kernel
def same_letters(text, i, end, tables, which):  # type: ignore[no-untyped-def]
    """True if `display` (0), `none` (1) or `class` (2) stands at i, in any case."""
    if which == 0:
        length = 7
    elif which == 1:
        length = 4
    else:
        length = 5
    if i + length > end:
        return False
    for k in range(length):
        if tables.fold[text[i + k]] != tables.pool[tables.settings[SETTING_KEYWORDS + which] + k]:
            return False
    return True
