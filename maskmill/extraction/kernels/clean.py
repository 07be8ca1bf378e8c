"""Third pass: collapses white space and repairs the punctuation next to what was dropped.

Brackets and quotation marks that held nothing but what was dropped go with it, and are counted. The pass works in
place: what is read at i has not been written to, as the output's end `w` is never after i.
"""

import string

import numpy as np

from maskmill.characters.kernels.characters import character_before
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.text import (
    BRACKET_MARK,
    HOLE,
    MARK,
    byte_set,
    find_any,
    is_alphanumeric,
    is_blank,
    is_capital,
    is_digit,
    is_letter,
    is_separator,
    is_stop,
    put_byte,
    skip_back,
    three_bytes,
    utf8,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel


def characters(text: str) -> tuple[int, ...]:
    """Return the characters of a text as `mark_at` gives them."""
    return tuple(utf8(c) for c in text)


OPENING_BRACKETS = characters("([（")
CLOSING_BRACKETS = characters(")]）")
# Quotation marks and East Asian brackets beyond ASCII, each with what closes it; `“` is closed in two ways.
PAIRS = tuple(characters(pair) for pair in ("«»", "「」", "『』", "《》", "〈〉", "【】", "［］", "“”", "„“", "„”"))
CLOSING_QUOTES = (ascii.DOUBLE_QUOTE, *(closer for _, closer in PAIRS))
SEPARATORS = characters(",;:،؛՝、，；：")  # marks that divide a sentence
WIDE_STOPS = characters("۔։。．।॥｡")  # marks beyond ASCII that end one
DIVIDERS = (*SEPARATORS, *characters(" /-・–—"))  # of the parts of a bracket
CURRENCIES = characters("$£¥")
FIRST_CURRENCY = utf8("\u20a0")
LAST_CURRENCY = utf8("\u20bf")
LETTERS = byte_set(string.ascii_letters.encode() + string.digits.encode() + bytes(range(ascii.NOT_ASCII, 256)))
LABEL_ENDS = byte_set(b":")
LONGEST_LABEL = 30  # bytes of `IPA:` and the like
LONGEST_BRACKET = 300  # bytes on either side of a BRACKET_MARK

FIRST_LATE_CONTROL = utf8("\u0080")
NO_BREAK_SPACE = utf8("\u00a0")  # follows the last one
SOFT_HYPHEN = utf8("\u00ad")
GENERAL_PUNCTUATION = utf8("\u2000") >> 8  # what the characters from U+2000 to U+203F start with
HAIR_SPACE = utf8("\u200a")  # the last of the spaces that this block starts with
ZERO_WIDTH_SPACE = utf8("\u200b")
LEFT_TO_RIGHT_MARK = utf8("\u200e")
RIGHT_TO_LEFT_MARK = utf8("\u200f")
LINE_SEPARATOR = utf8("\u2028")
PARAGRAPH_SEPARATOR = utf8("\u2029")
NARROW_NO_BREAK_SPACE = utf8("\u202f")
BYTE_ORDER_MARK = utf8("\ufeff")


@inlined_kernel
def character_at(out, i, n):
    """Return (UTF-8 of the character at i as one number, bytes of it), as far as `is_invisible` and `is_space` need it.

    Other characters than those are given as their first byte alone, which tells them apart as well.
    """
    c = np.int64(out[i])
    if c < ascii.NOT_ASCII:
        return c, 1
    if c == NO_BREAK_SPACE >> 8 and i + 1 < n:
        return two_bytes(out, i), 2
    if (c == GENERAL_PUNCTUATION >> 8 or c == BYTE_ORDER_MARK >> 16) and i + 2 < n:
        return three_bytes(out, i), 3
    return c, 1


@inlined_kernel
def is_invisible(character):
    """Return True for characters that take no room: soft hyphen, zero-width space, direction marks, byte order mark."""
    return (
        character == SOFT_HYPHEN
        or character == ZERO_WIDTH_SPACE
        or character == LEFT_TO_RIGHT_MARK
        or character == RIGHT_TO_LEFT_MARK
        or character == BYTE_ORDER_MARK
    )


@inlined_kernel
def is_space(character):
    """Return True for white space, control characters, and Unicode's spaces and separators."""
    if character < ascii.NOT_ASCII:
        return character <= ascii.SPACE or character == ascii.DELETE
    if character >> 8 == GENERAL_PUNCTUATION:
        return (
            character <= HAIR_SPACE
            or character == LINE_SEPARATOR
            or character == PARAGRAPH_SEPARATOR
            or character == NARROW_NO_BREAK_SPACE
        )
    return FIRST_LATE_CONTROL <= character <= NO_BREAK_SPACE


@lean_kernel
def two_bytes(out, i):
    """Return the bytes at i and i + 1 as one number, as `utf8` gives them."""
    return (np.int64(out[i]) << 8) | np.int64(out[i + 1])


@lean_kernel
def mark_at(out, i, n):
    """Return (UTF-8 of the character at i as one number, bytes of it); a character of four bytes is given as its first
    one.
    """
    c = np.int64(out[i])
    if 0xC0 <= c < 0xE0 and i + 1 < n:
        return two_bytes(out, i), 2
    if 0xE0 <= c < 0xF0 and i + 2 < n:
        return three_bytes(out, i), 3
    return c, 1


@lean_kernel
def mark_before(out, w, line):
    """Return (UTF-8 of the character before w as one number, bytes of it); (0, 0) at the start of the line."""
    if w <= line:
        return 0, 0
    at = character_before(out, w, line)
    mark, size = mark_at(out, at, w)
    return (mark, size) if at + size == w else (np.int64(out[w - 1]), 1)


@lean_kernel
def opens(out, w, line):
    """Return True if what is written, from `line` up to w, ends in an opening bracket."""
    mark, _ = mark_before(out, w, line)
    return mark in OPENING_BRACKETS


@lean_kernel
def opening_quote(out, w, line, mark):
    """Return the bytes of the quotation mark before w that this one closes; 0 if there is none.

    What opens and closes alike opens after a space, a bracket, or nothing.
    """
    before, size = mark_before(out, w, line)
    if mark == ascii.DOUBLE_QUOTE and before == mark:
        return 1 if w - line == 1 or out[w - 2] == ascii.SPACE or out[w - 2] == ascii.OPEN_PAREN else 0
    for opener, closer in PAIRS:
        if before == opener and mark == closer:
            return size
    return 0


@lean_kernel
def separator_before(out, w, line):
    """Return the bytes of the mark before w that divides a sentence; 0 if another character is there."""
    mark, size = mark_before(out, w, line)
    return size if mark in SEPARATORS else 0


@lean_kernel
def before_dividers(out, w, line):
    """Return the end of what is written without the spaces, commas, slashes and dashes that it ends with."""
    mark, size = mark_before(out, w, line)
    while mark in DIVIDERS:
        w -= size
        mark, size = mark_before(out, w, line)
    return w


@lean_kernel
def bracket_start(out, w, line):
    """Return where the bracket that is open at w starts in what is written; -1 if none is."""
    closed = 0
    i = w - 1
    while i >= line and w - i <= LONGEST_BRACKET:
        if out[i] == ascii.CLOSE_PAREN:
            closed += 1
        elif out[i] == ascii.OPEN_PAREN:
            if closed == 0:
                return i
            closed -= 1
        i -= 1
    return -1


@lean_kernel
def before_label(out, w, line):
    """Return the end of what is written without the label that it ends with: `IPA:` after an opening bracket or a
    separator.

    Its value was dropped. Outside brackets a label is not told from the start of a sentence.
    """
    end = skip_back(out, w, line, ascii.SPACE)
    if end == line or out[end - 1] != ascii.COLON:
        return w
    i = end - 1
    while (
        i > line
        and end - i <= LONGEST_LABEL
        and (is_letter(out[i - 1]) or out[i - 1] == ascii.SPACE or out[i - 1] >= ascii.NOT_ASCII)
    ):
        if opens(out, i, line) or separator_before(out, i, line) > 0:
            break
        i -= 1
    if i < end - 1 and (
        opens(out, i, line) or (separator_before(out, i, line) > 0 and bracket_start(out, i, line) >= 0)
    ):
        return i
    return w


@lean_kernel
def before_bracket(out, w, line):
    """Return (end of what is written, whether the bracket is kept) where a closing bracket follows what was dropped.

    What stands before it may be punctuation that led to what was dropped; brackets with nothing left in them go too.
    """
    w = before_label(out, w, line)
    nothing = before_dividers(out, w, line)
    mark, size = mark_before(out, nothing, line)
    if mark in OPENING_BRACKETS:
        return nothing - size, False
    while w > line:
        size = 1 if out[w - 1] == ascii.SPACE else separator_before(out, w, line)
        if size == 0:
            break
        w -= size
    return w, True


@lean_kernel
def before_quote(out, w, line, mark):
    """Return (end of what is written, whether the mark is kept) where a closing quotation mark follows what was
    dropped.
    """
    k = skip_back(out, w, line, ascii.SPACE)
    if mark == ascii.DOUBLE_QUOTE and k < w:
        return w, True
    opener = opening_quote(out, k, line, mark)
    return (k - opener, False) if opener > 0 else (w, True)


@inlined_kernel
def before_punctuation(out, w, line, c):
    """Return (end of what is written, whether c is kept) where the punctuation mark c follows what was dropped."""
    k = skip_back(out, w, line, ascii.SPACE)
    if c == ascii.COMMA or c == ascii.SEMICOLON:
        label = before_label(out, k, line)
        if label < k:
            return label, not opens(out, label, line) and separator_before(out, label, line) == 0
    if opens(out, k, line):
        return (w, True) if c == ascii.PERIOD else (k, False)
    if k == line:
        return w, not is_separator(c)
    before = out[k - 1]
    if before == c or (before == ascii.COMMA and (c == ascii.PERIOD or c == ascii.SEMICOLON or c == ascii.COLON)):
        # Two marks with nothing left between them: the later one stays.
        k -= 1
    elif c == ascii.COMMA and (before == ascii.SEMICOLON or before == ascii.COLON) and k < w:
        return w, False
    # A colon after a space is not one that belongs to the word before.
    return (w, True) if c == ascii.COLON and k < w else (k, True)


@lean_kernel
def before_wide(out, w, line, size, ends):
    """Return (end of what is written, bytes that go) where punctuation of `size` bytes follows what was dropped.

    ends: whether it ends a sentence. Of two marks with nothing left between them the later one stays.
    """
    k = skip_back(out, w, line, ascii.SPACE)
    if k == line or opens(out, k, line):
        return (w, 0) if ends else (k, size)
    return k - separator_before(out, k, line), 0


@inlined_kernel
def before_spaced(out, w, line, i, n):
    """Return the end of what is written without the space that stands wrongly before the comma or period at i."""
    if w - line <= 1 or out[w - 1] != ascii.SPACE:
        return w
    c = out[i]
    at_end = i + 1 >= n
    if c == ascii.COMMA and (at_end or is_blank(out[i + 1])):
        # No language sets a space before a comma.
        return w - 1
    if c == ascii.PERIOD and out[w - 2] == ascii.PERIOD and (at_end or not is_alphanumeric(out[i + 1])):
        # A spaced ellipsis is one, or each of its dots would be a sentence; ".NET" after an abbreviation is not.
        return w - 1
    return w


@inlined_kernel
def swaps_comma(out, w, line, i, n):
    """Return True if the comma at i stands after a space and before a letter, both neighbours beyond ASCII: `शब्द
    ,शब्द`.
    """
    if out[i] != ascii.COMMA or w - line <= 1 or i + 1 >= n:
        return False
    return out[w - 1] == ascii.SPACE and out[w - 2] >= ascii.NOT_ASCII and out[i + 1] >= ascii.NOT_ASCII


@inlined_kernel
def end_line(out, w, line, letters, hole):
    """Return the end of what is written once the line that starts at `line` has ended; without letters it is removed.

    hole: where a HOLE stands that no character follows; -1: there is none. It stays if it follows a space.
    """
    end = skip_back(out, w, line, ascii.SPACE)
    if not letters or end == line:
        return line
    if hole > end:
        end = put_byte(out, end, HOLE)
    out[end] = ascii.NEWLINE
    return end + 1


@lean_kernel
def has_letters(out, start, end):
    """Return True if there is a letter or a digit, or any character beyond ASCII, from start up to end."""
    return find_any(out, start, end, LETTERS) < end


@lean_kernel
def behind_mark(out, w, line, i, n, counts):
    """Return (end of what is written, bytes from i on that go) where the character at i follows what was dropped."""
    mark, size = mark_at(out, i, n)
    if mark in CLOSING_BRACKETS:
        w, kept = before_bracket(out, w, line)
    elif is_separator(mark) or is_stop(mark):
        w, kept = before_punctuation(out, w, line, mark)
        return w, 0 if kept else 1
    elif mark in SEPARATORS or mark in WIDE_STOPS:
        return before_wide(out, w, line, size, mark in WIDE_STOPS)
    elif mark in CLOSING_QUOTES:
        w, kept = before_quote(out, w, line, mark)
    else:
        return w, 0
    if kept:
        return w, 0
    counts[codes.COUNT_BRACKETS] += 1
    return w, size


@lean_kernel
def bracket_end(out, i, n):
    """Return one past the end of the bracket that is open at i; -1 if the line ends before it does."""
    opened = 0
    stop = min(n, i + LONGEST_BRACKET)
    while i < stop and out[i] != ascii.NEWLINE:
        if out[i] == ascii.OPEN_PAREN:
            opened += 1
        elif out[i] == ascii.CLOSE_PAREN:
            if opened == 0:
                return i + 1
            opened -= 1
        i += 1
    return -1


@lean_kernel
def drop_bracket(out, w, line, i, n, counts):
    """Return (end of what is written, where to go on) without the bracket around the BRACKET_MARK at i.

    Outside brackets a currency's sign before the mark goes: the figure that belongs to it is not known.
    """
    start = bracket_start(out, w, line)
    if start >= 0:
        end = bracket_end(out, i, n)
        if end >= 0:
            counts[codes.COUNT_BRACKETS] += 1
            return start, end
    mark, size = mark_before(out, w, line)
    while mark in CURRENCIES or FIRST_CURRENCY <= mark <= LAST_CURRENCY:
        w -= size
        while w > line and is_capital(out[w - 1]):
            w -= 1
        mark, size = mark_before(out, w, line)
    return w, i + 1


@lean_kernel
def is_debris(out, w, line, opened, marks, hole):
    """Return True if the bracket open at w is left without a digit, and with hardly a word between what was dropped.

    opened: where the text of a bracket starts in which a mark came first; marks: how many such stood there between
    spaces. hole: whether a HOLE comes last.
    """
    i = w
    words = 0
    holes = np.int64(hole)
    in_word = False
    mark, size = mark_before(out, i, line)
    while size > 0 and mark not in OPENING_BRACKETS:
        if is_digit(mark) or mark in CLOSING_BRACKETS or w - i > LONGEST_BRACKET:
            return False
        holes += mark == HOLE
        is_letter = LETTERS[out[i - 1]]
        words += is_letter and not in_word
        in_word = is_letter
        i -= size
        mark, size = mark_before(out, i, line)
    if size == 0:
        return False
    return (i == opened and words < marks) or (hole and words <= holes)


@lean_kernel
def leaves_hole(out, w, line, i, n, before, hole):
    """Return True if a sentence may need what a HOLE stands for: text follows it, and it does not begin a bracket.

    i: where the next character stands; hole, before, w: the end of what was written at the HOLE, before the character,
    and before it once punctuation is repaired; hole is `line` after quotation marks that went with it. In scripts
    without spaces, too, a mark is a footnote's that follows a letter at once, and that none follows so.
    """
    if w == line:
        return LETTERS[out[i]]
    if opens(out, skip_back(out, w, line, ascii.SPACE), line):
        return False
    if hole == line or not LETTERS[out[hole - 1]]:
        return True
    mark, _ = mark_at(out, i, n)
    is_letter = LETTERS[out[i]] and not (mark in SEPARATORS or mark in WIDE_STOPS or mark in CLOSING_QUOTES)
    return before == hole and is_letter


@inlined_kernel
def count_mark(out, w, line, opened, marks):
    """Return (where the text of the bracket starts in which a mark comes first, the marks between spaces in it) after
    one.
    """
    k = skip_back(out, w, line, ascii.SPACE)
    if opens(out, k, line):
        return k, 1
    return opened, marks + (k < w)


@inlined_kernel
def unsettled(out, w, line):
    """Return (end of what is written, place of the HOLE that waits for a character) after a bracket that went as a
    whole.
    """
    return (w - 1, w - 1) if w > line and out[w - 1] == HOLE else (w, -1)


@lean_kernel
def put_hole_at(out, w, line, i, n, before, gone, hole, opened, marks):
    """Return (end of what is written, place of the HOLE that waits for a character) once the character at i follows a
    mark.

    before: the end of what was written before punctuation was repaired; gone: the bytes of the character that go.
    """
    mark, _ = mark_at(out, i, n)
    closes = mark in CLOSING_BRACKETS
    if gone > 0:
        # A bracket, or a part of one with its label, went as a whole; quotation marks hold text, not a footnote.
        if closes or find_any(out, w, before, LABEL_ENDS) < before:
            return unsettled(out, w, line)
        return w, min(hole, line if mark in CLOSING_QUOTES else w)
    keeps = False
    if closes:
        is_last = hole >= 0 and skip_back(out, before, line, ascii.SPACE) == w  # no part of its own, after a comma
        keeps = is_debris(out, w, line, opened, marks, is_last)
    elif hole >= 0 and find_any(out, w, before, LABEL_ENDS) == before:
        keeps = leaves_hole(out, w, line, i, n, before, hole)
    if keeps:
        w = put_byte(out, w, HOLE)
    return w, -1


@lean_kernel
def clean(out, n, counts, keeps_holes):
    """Collapse white space and repair punctuation beside MARKs, in place; return the number of bytes left.

    out: uint8, of which the first n bytes are text. counts: int64[COUNTS], added to. Lines keep no space at their ends;
    blank lines, and lines without a letter or a digit, are removed. keeps_holes: whether HOLEs mark then where a
    sentence may need what is missing; if not, there are none before.
    """
    w = n - n
    line = w  # where the current line starts in what is written
    mark = False  # something was dropped since the last character
    letters = False
    hole = w - 1  # the end of what was written before a HOLE that no character follows yet; -1: there is none
    opened = w  # where the text of the last bracket starts that a mark came first in
    marks = w  # how many marks stood there between spaces since
    i = n - n
    while i < n:
        c = out[i]
        if c == ascii.NEWLINE:
            w = end_line(out, w, line, letters, hole)
            line = w
            mark = letters = False
            hole = n - n - 1
            i += 1
            continue
        if c == MARK or c == HOLE:
            mark = True
            if c == HOLE:
                hole = w
            opened, marks = count_mark(out, w, line, opened, marks)
            i += 1
            continue
        if c == BRACKET_MARK:
            behind = i + 1
            w, i = drop_bracket(out, w, line, i, n, counts)
            mark = True
            w, hole = unsettled(out, w, line)
            if keeps_holes and i == behind:
                hole = w
            letters = has_letters(out, line, w)
            continue
        character, size = character_at(out, i, n)
        if is_space(character):
            if w > line and out[w - 1] != ascii.SPACE and not (mark and opens(out, w, line)):
                out[w] = ascii.SPACE
                w += 1
            i += size
            continue
        if is_invisible(character):
            i += size
            continue
        if mark:
            before = w
            w, gone = behind_mark(out, w, line, i, n, counts)
            if w < before or gone > 0:
                letters = has_letters(out, line, w)  # wide punctuation counted as a letter, and may be gone
            if hole >= 0 or (keeps_holes and opened > line):
                w, hole = put_hole_at(out, w, line, i, n, before, gone, hole, opened, marks)
            if gone > 0:
                i += gone
                continue
        elif c == ascii.COMMA or c == ascii.PERIOD:
            w = before_spaced(out, w, line, i, n)
            if swaps_comma(out, w, line, i, n):
                out[w - 1] = ascii.COMMA
                c = np.uint8(ascii.SPACE)
        mark = False
        letters |= LETTERS[c]
        out[w] = c
        w += 1
        i += 1
    w = end_line(out, w, line, letters, hole)
    return w - 1 if w > 0 else 0
