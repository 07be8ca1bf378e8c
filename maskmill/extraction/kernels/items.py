"""Tests of whether an item of a list that is no sentence says something beside names, titles, links and numbers.

It explains a name ("Name – what it is"), or is a phrase with words in small letters beside its links. What stands in
links is a title as a rule, and so is what stands in italics or quotes and starts with a capital; so the wikitext tells
what counts: words of the line outside links, titles, calls and tags. A call with one argument alone (`{{small|…}}`)
shows it as a rule: its words count. Scripts without capitals have no small words: there, the letters outside links and
titles count.
"""

from typing import NamedTuple

import numpy as np

from maskmill.characters.kernels.characters import code_at
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.prose import (
    CAPITAL,
    LETTER_POINTS,
    OTHER,
    SIGN,
    SIGN_POINTS,
    SMALL,
    UNCASED,
    ends_as_sentence,
    holds_prose,
    holds_sentences,
    is_dash,
    is_unstopped_sentence,
    letter_kind,
)
from maskmill.extraction.kernels.tags import LONGEST_ATTRIBUTES
from maskmill.extraction.kernels.text import byte_set, find_any, is_digit, is_letter, skip
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

FEWEST_WORDS = 4  # of an item in letters with capitals
SMALL_WORDS = 2  # outside links; one is enough that is long or beside links, with another word that is no number
CAPITALS_A_SMALL_WORD = 8  # with more of them, an item is a list of names
CAPITALS_OF_CITATION = 2  # outside its titles: of its author
LONG_WORD = 4  # letters of a small word that neither titles have, as `of` and `the`, nor lists of names, as `and`
UNCASED_POINTS = 48  # of a phrase in a script without capitals, as prose.py counts them
UNCASED_WORDS = 8  # of one that no divider divides: as many are no name
EXPLANATION_POINTS = 14  # and after a divider
LONGEST_ENTITY = 10  # bytes of `&nbsp;` and the like
TAG_ENDS = byte_set(b">\n")
# What divides a name from what explains it, beside dashes with spaces around them. Colons stand in titles, too.
DIVIDERS = tuple(map(ord, ",(，、،（；—"))
COLONS = tuple(map(ord, ":："))
QUOTES = tuple(map(ord, '"“”„«»'))
NO_BREAK = len("&nbsp;")
BOLD_MARKS = 3  # apostrophes; two or five mark italics
BEFORE_TITLES = byte_set(b' ([{<>-/"|')


class Words(NamedTuple):
    """Counts for a text: its words, those that start with a small letter, such ones of LONG_WORD letters,
    those that start with a capital, points of letters without case; whether there are links, a divider, and after the
    divider or a colon the small words of LONG_WORD letters and the points."""

    words: int
    small: int
    long: int
    capitals: int
    points: int
    linked: bool
    divided: bool
    long_behind: int
    points_behind: int


@inlined_kernel
def divides(text, i, size, end, code):
    """Return True if the character at i stands between a name and what explains it."""
    behind = text[i + size] if i + size < end else ascii.SPACE
    if code in DIVIDERS or code in COLONS:
        return not is_digit(behind)
    if not is_dash(code):
        return False
    if code == ascii.HYPHEN and behind == ascii.HYPHEN:
        return True
    return text[i - 1] == ascii.SPACE and behind == ascii.SPACE


@inlined_kernel
def after_markup(text, i, end, events, e):
    """Return one past the link, the call, the comment or the tag that starts at i; i if none does. e: the event that
    may.

    Of a call with one argument alone, where its argument starts.
    """
    if e < len(events) and events[e].start == i and events[e].end > i:
        start = lone_argument(text, events, e) if events[e].kind == codes.EVENT_TEMPLATE else -1
        return start if start > 0 else np.int64(events[e].end)
    if text[i] == ascii.LESS_THAN and (is_letter(text[i + 1]) or text[i + 1] == ascii.SLASH):
        stop = min(end, i + LONGEST_ATTRIBUTES)
        close = find_any(text, i, stop, TAG_ENDS)
        return close + 1 if close < stop else i
    return i


@lean_kernel
def lone_argument(text, events, e):
    """Return where the argument of the call that event e is starts, if it has one alone, without a name or a call in
    it; else -1."""
    start = np.int64(-1)
    i, end = np.int64(events[e].inner_start), np.int64(events[e].inner_end)
    e += 1
    while i < end:
        while e < len(events) and events[e].start < i:
            e += 1
        if e < len(events) and events[e].start == i and events[e].end > i:
            if events[e].kind == codes.EVENT_TEMPLATE:  # looking into calls in calls would take quadratic time
                return -1
            i = np.int64(events[e].end)
            continue
        if text[i] == ascii.EQUALS or (text[i] == ascii.PIPE and start > 0):
            return -1
        if text[i] == ascii.PIPE:
            start = i + 1
        i += 1
    return start


@inlined_kernel
def entity_end(text, i, end):
    """Return one past the entity that starts with the `&` at i; i if none does."""
    j = i + 1
    while j < end and j < i + LONGEST_ENTITY:
        if text[j] == ascii.SEMICOLON:
            return j + 1
        j += 1
    return i


@inlined_kernel
def follows_number(text, i):
    """Return True if a number ends before the space or the `&nbsp;` that ends at i."""
    if i > 1 and text[i - 1] == ascii.SPACE:
        return is_digit(text[i - 2])
    if i <= NO_BREAK or text[i - 1] != ascii.SEMICOLON or text[i - NO_BREAK] != ascii.AMPERSAND:
        return False
    return is_digit(text[i - NO_BREAK - 1])


@lean_kernel
def title_end(text, i, end, tables):
    """Return one past the title in italics or quotes that starts at i; i if none does. Titles start with no small
    letter.
    """
    code, size = code_at(text, i)
    if code == ascii.APOSTROPHE:
        mark = skip(text, i, end, code) - i
        if mark == 1 or mark == BOLD_MARKS:
            return i
        size = mark
    elif code not in QUOTES:
        return i
    j = i + size
    first = OTHER
    while j < end and first != SMALL:
        mark = code
        code, size = code_at(text, j)
        kind = letter_kind(code, tables)
        if first == OTHER and (kind != OTHER or is_digit(code)):
            first = max(kind, SMALL + (kind == OTHER))
        j += size
        if text[i] == ascii.APOSTROPHE and code == mark == ascii.APOSTROPHE:
            return skip(text, j, end, code)
        if text[i] != ascii.APOSTROPHE and code in QUOTES:
            return j
    return i


@lean_kernel
def count_words(text, start, end, events, e, outside, tables):
    """Return the Words of text[start:end]; with `outside`, of a page's, of what stands outside titles and events from e
    on.
    """
    linked = False
    words = small = long = capitals = points = long_behind = points_behind = 0
    divided = behind = False
    word = 0  # letters and digits of the present word
    is_small = is_unit = False
    i = start
    while i < end:
        code, size = code_at(text, i)
        while e < len(events) and events[e].start < i:
            e += 1
        after = after_markup(text, i, end, events, e) if outside else i
        if outside and after == i and (i == start or BEFORE_TITLES[text[i - 1]]):
            after = title_end(text, i, end, tables)
        if after > i:
            linked = linked or (text[i] == ascii.OPEN_BRACKET and text[i + 1] == ascii.OPEN_BRACKET)
            i = after
            word = LONG_WORD if word == 0 else word  # letters after a link belong to it
            is_small = False
            continue
        kind = letter_kind(code, tables)
        if kind != OTHER or is_digit(code):
            if word == 0:
                words += 1
                capitals += kind == CAPITAL
                is_small = kind == SMALL
                is_unit = is_small and follows_number(text, i)
                small += is_small and not is_unit
            word += 1
            if is_small and word == LONG_WORD:
                long += 1
                small += is_unit  # `45 points`, not `12 km`
            long_behind += is_small and behind and word == LONG_WORD
            more = LETTER_POINTS * (kind == UNCASED) + SIGN_POINTS * (kind == SIGN)
            points += more
            points_behind += more * behind
        elif not (code == ascii.APOSTROPHE and word > 0 and i + 1 < end and is_letter(text[i + 1])):
            small -= is_small and not is_unit and word == 1 and code == ascii.PERIOD  # as in `b. 1970`
            word = 0
            if code == ascii.AMPERSAND and outside:
                size = max(entity_end(text, i, end) - i, 1)
                divided = divided or (size > 1 and text[i + 2] == ascii.LOWER_D)  # `&ndash;`, `&mdash;`
            if divides(text, i, size, end, code):
                divided = divided or code not in COLONS
                behind = True
            behind = behind or divided
        i += size
    return Words(words, small, long, capitals, points, linked, divided, long_behind, points_behind)


@inlined_kernel
def says_something_uncased(outside):
    """Return True if an item says more than names and titles in a script without capitals; outside: of it without
    links.
    """
    if outside.points < EXPLANATION_POINTS * max(outside.small + outside.capitals, 1):
        return False
    if outside.points >= UNCASED_POINTS or outside.points_behind >= EXPLANATION_POINTS:
        return True
    return outside.words >= UNCASED_WORDS and not outside.divided


@lean_kernel
def says_something(whole, outside):
    """Return True if an item says more than names and titles; whole, outside: Words of its text, and of it without
    links.
    """
    if whole.words < FEWEST_WORDS or outside.small * CAPITALS_A_SMALL_WORD < outside.capitals:
        return False
    is_phrase = outside.small >= SMALL_WORDS and (outside.divided or outside.long > 0)
    has_more = (
        outside.small > 0 and outside.small + outside.capitals >= SMALL_WORDS and whole.points < EXPLANATION_POINTS
    )
    return is_phrase or outside.long_behind > 0 or (has_more and (outside.linked or outside.long > 0))


@lean_kernel
def is_citation(text, start, end, events, e, tables):
    """Return True if text[start:end], of a page, has nothing but titles in italics, names and numbers beside its
    stop.
    """
    i = start
    while i < end - 1 and not (text[i] == ascii.APOSTROPHE and text[i + 1] == ascii.APOSTROPHE):
        i += 1
    if i >= end - 1:
        return False
    outside = count_words(text, start, end, events, e, True, tables)
    has_author_and_year = outside.capitals >= CAPITALS_OF_CITATION and outside.words > outside.capitals
    return has_author_and_year and outside.small == 0 and outside.points == 0


@lean_kernel
def is_sentence(out, start, end, in_works, tables):
    """Return True if an item is a sentence, or holds some; in_works: in a list of works, whose entries may end with a
    stop.
    """
    if ends_as_sentence(out, start, end) and (not in_works or holds_prose(out, start, end, tables)):
        return True
    return holds_sentences(out, start, end, tables) or is_unstopped_sentence(out, start, end, tables)
