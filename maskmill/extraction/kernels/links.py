"""The part of a link, external link or language variant that shows: a range of the page, which `render` renders."""

import numpy as np

from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.tables import find
from maskmill.extraction.kernels.tags import same_name, skip_comment
from maskmill.extraction.kernels.text import (
    byte_set,
    find_any,
    has_word,
    is_alphanumeric,
    is_capital,
    is_digit,
    is_letter,
    separator_at,
    skip,
    stands_at,
    trim,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

NAMESPACE_NONE = 0
OPENING_PARENS, COLONS, SEMICOLONS = byte_set(b"("), byte_set(b":"), byte_set(b";")
# Beside spaces, what ends the address of an external link.
ADDRESS_ENDS = byte_set(bytes(range(ascii.SPACE + 1)) + b'"<>[]\x7f')
LESS, GREATER = np.frombuffer(b"&lt;", np.uint8), np.frombuffer(b"&gt;", np.uint8)
PIXELS = np.frombuffer(b"px]]", np.uint8)
FLAGS_ENDS = byte_set(b"|:{")
LONGEST_FLAGS = 20  # bytes of a variant that are looked at for its flags, and for a language's code


@lean_kernel
def namespace_of(text, start, colon, tables):
    """Return NAMESPACE_* of the prefix text[start:colon]; NAMESPACE_NONE if it is not one."""
    row = find(tables, codes.DOMAIN_NAMESPACE, text, start, colon)
    return np.int64(tables.words[row].value) if row >= 0 else NAMESPACE_NONE


@lean_kernel
def is_file_or_category(kind):
    """Return True for the namespaces whose links show nothing."""
    return kind == codes.NAMESPACE_FILE or kind == codes.NAMESPACE_CATEGORY


@inlined_kernel
def target_end(text, start, end):
    """Return (end of the link's target that starts at `start`, its first colon or -1).

    The end is that of the content if the target is all of it, and of MAX_TARGET bytes if it is too long.
    """
    colon = -1
    j = start
    while j < end:
        c = text[j]
        if c == ascii.PIPE or c == ascii.OPEN_BRACE or c == ascii.OPEN_BRACKET or c == ascii.NEWLINE:
            break
        if c == ascii.LESS_THAN:
            after = skip_comment(text, j, end)
            if after == j + 1:
                break
            j = after
            continue
        if c == ascii.COLON and colon < 0:
            colon = j
        j += 1
    return j, colon


@inlined_kernel
def short_name(text, start, end):
    """Return the end of the name text[start:end] before what stands in brackets: `[[Name (what)|]]` shows the name
    alone.
    """
    k = find_any(text, start, end, OPENING_PARENS)
    return k if k > start else end


@lean_kernel
def link_shows(text, inner, inner_end, tables):
    """Return (start, end) of what the internal link shows whose content is text[inner:inner_end]; (-1, -1) if
    nothing.
    """
    inner = skip(text, inner, inner_end, ascii.SPACE)
    start = inner
    if text[start] == ascii.COLON:
        start += 1
    j, colon = target_end(text, start, min(inner_end, inner + codes.MAX_TARGET))
    kind = NAMESPACE_NONE
    if colon >= 0:
        a, b = trim(text, start, colon)
        kind = namespace_of(text, a, b, tables)
    if start == inner:
        if is_file_or_category(kind) or (kind == codes.NAMESPACE_LANGUAGE and j >= inner_end):
            return -1, -1
    if j < inner_end and text[j] == ascii.PIPE:
        a, b = trim(text, j + 1, inner_end)
        if kind == codes.NAMESPACE_LANGUAGE and b - a == colon - start and same_name(text, a, start, b - a):
            # `[[:de:Haus|de]]` points to a page in another language after a name.
            return -1, -1
        if a < b:
            return j + 1, inner_end
        if kind != NAMESPACE_NONE:
            start = colon + 1
        return start, short_name(text, start, j)
    if j < inner_end:
        # No target MediaWiki would take: the content shows.
        return inner, inner_end
    if kind == codes.NAMESPACE_SITE and start == inner:
        return colon + 1, inner_end
    if text[start] == ascii.HASH:
        start += 1
    return start, inner_end


@lean_kernel
def is_symbol(text, start, end):
    """Return True if the link text[start:end] shows a small picture where a word may stand: `today [[File:G.png|10px]]
    is`.
    """
    k = end - len(PIXELS)
    if k < start + 2 or not (has_word(text, k, PIXELS) and is_digit(text[k - 1])):
        return False
    before = text[k - 2 - is_digit(text[k - 2])]
    if not (before == ascii.PIPE or before == ascii.SPACE) or start < 2 or text[start - 1] != ascii.SPACE:
        return False
    goes_on = text[end] == ascii.SPACE and is_letter(text[end + 1]) and not is_capital(text[end + 1])
    is_in_line = is_alphanumeric(text[start - 2]) or text[start - 2] == ascii.COMMA
    return is_in_line and (goes_on or text[end] == ascii.COMMA or text[end] == ascii.PERIOD)


@inlined_kernel
def names_category(text, inner, inner_end, tables):
    """Return True if the internal link with this content leads to a category or a file: `[[:Category:x]]`."""
    inner = skip(text, inner, inner_end, ascii.SPACE)
    if text[inner] != ascii.COLON:
        return False
    _, colon = target_end(text, inner + 1, min(inner_end, inner + codes.MAX_TARGET))
    if colon < 0:
        return False
    a, b = trim(text, inner + 1, colon)
    return is_file_or_category(namespace_of(text, a, b, tables))


@lean_kernel
def call_end(text, i, end):
    """Return one past the braces that close the call whose first brace is at i; `end` if none do."""
    depth = 0
    while i < end:
        if text[i] == ascii.OPEN_BRACE:
            depth += 1
        elif text[i] == ascii.CLOSE_BRACE:
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return end


@lean_kernel
def external_shows(text, inner, inner_end):
    """Return where what an external link shows starts, its content being text[inner:inner_end]; inner_end if nothing.

    Its address ends where MediaWiki ends it: at a space of any kind, a quote, an angle bracket, italics. Calls in it
    belong to it.
    """
    j = inner
    while j < inner_end and not ADDRESS_ENDS[text[j]] and separator_at(text, j) == 0:
        if text[j] == ascii.APOSTROPHE and text[j + 1] == ascii.APOSTROPHE:
            break
        if text[j] == ascii.AMPERSAND and (stands_at(text, j, LESS) or stands_at(text, j, GREATER)):
            break
        is_call = text[j] == ascii.OPEN_BRACE and text[j + 1] == ascii.OPEN_BRACE
        j = call_end(text, j, inner_end) if is_call else j + 1
    while j < inner_end and separator_at(text, j) > 0:
        j += separator_at(text, j)
    return min(j, inner_end)


@inlined_kernel
def variant_flags(text, start, bar):
    """Return the first of a variant's flags text[start:bar] that matters: R shows all; H, T and - show nothing; 0 if
    none.
    """
    for k in range(start, bar):
        c = text[k]
        if c == ascii.UPPER_H or c == ascii.UPPER_T or c == ascii.UPPER_R:
            return np.int64(c)
        # In `zh-hans` the hyphen is part of a code.
        if c == ascii.HYPHEN and not is_letter(text[k - 1]) and not is_letter(text[k + 1]):
            return ascii.HYPHEN
    return 0


@inlined_kernel
def variant_rank(text, start, end, tables):
    """Return (rank of the code that the piece text[start:end] of a variant starts with, or -1; its colon)."""
    colon = find_any(text, start, min(end, start + LONGEST_FLAGS), COLONS)
    if colon < end and text[colon] == ascii.COLON:
        a, b = trim(text, start, colon)
        row = find(tables, codes.DOMAIN_VARIANT, text, a, b)
        if row >= 0:
            return np.int64(tables.words[row].value), colon
    return -1, colon


@lean_kernel
def variant_shows(text, start, end, tables):
    """Return (start, end) of what `-{...}-` shows, its content being text[start:end].

    Of `code:text;` pairs it is the pair whose code ranks first for the language; a rule that shows nothing (flags
    H, T, -) gives an empty range.
    """
    j = find_any(text, start, min(end, start + LONGEST_FLAGS), FLAGS_ENDS)
    if j < end and text[j] == ascii.PIPE:
        flag = variant_flags(text, start, j)
        if flag == ascii.UPPER_R:
            return j + 1, end
        if flag != 0:
            return end, end
        start = j + 1
    best = -1
    best_start = start
    best_end = end
    i = start
    while i < end:
        piece = i
        i = find_any(text, i, end, SEMICOLONS)
        rank, colon = variant_rank(text, piece, i, tables)
        if rank >= 0 and (best < 0 or rank < best):
            best = rank
            best_start = colon + 1
            best_end = i
        i += 1
    return best_start, best_end
