"""TeX formulas as a line of text: `<math>` elements that are short and hold nothing but what a line can show.

The formula is read once from left to right. A stack of frames says what is open: groups, environments, and commands
that wait for an argument. What an argument needs (brackets, the bar of a fraction) is decided when it is written.

A function that writes takes where it reads, i, and the output's end, o, and returns both anew; o is -1 for a formula
that cannot be one line of text, which then shows nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.kernels.characters import put_code_point
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.chemistry import RIGHT_ARROW, put_chemistry
from maskmill.extraction.kernels.tables import Tables, find, record
from maskmill.extraction.kernels.text import (
    SUPERSCRIPT_N,
    byte_set,
    copy,
    is_digit,
    is_letter,
    put_byte,
    put_entity,
    put_superscript,
    skip,
    skip_any,
    skip_back,
    stands_at,
    three_bytes,
    utf8,
)
from maskmill.kernels import ascii, inlined_kernel, kernel, lean_kernel

MAX_FORMULA = 2000  # bytes of TeX that are turned into text
MAX_FRAMES = 64
LONGEST_ROOT_INDEX = 12  # bytes
TAGS = 16  # bytes of the tags around a formula, or of a command, for which its text may use the output's room

# An open frame: its kind, where its text starts in the output, and where the part after its `\over` or `\choose` does
# (-1: it has none). For the base of a label, `start` is where the label starts and `part` where the base does.
FRAME = record(np.int32, "kind start part")

# Kinds of frames that something closes.
GROUP = 0
GROUP_TEXT = 1  # the argument of a command such as `\text`
GROUP_DELIMITED = 2  # `\left` to `\right`; `start` is -1 before the delimiter is written
GROUP_LINES = 3  # an environment of lines
GROUP_CASES = 4
GROUP_CELL = 5  # a matrix, which is a line of text only if it has one cell
# Commands that wait for an argument.
WAIT_PLAIN = 6  # which shows
WAIT_TEXT = 7
WAIT_INDEX = 8  # brackets around it unless it is letters and digits
WAIT_TIGHT = 9  # a power, what stands under a root: unless it is letters or digits
WAIT_NUMERATOR = 10
WAIT_DENOMINATOR = 11
WAIT_CHOSEN_FROM = 12  # the two arguments of a binomial coefficient
WAIT_CHOSEN = 13
WAIT_ABOVE = 14  # a label above or below what follows
WAIT_BELOW = 15
WAIT_BASE_ABOVE = 16  # what such a label belongs to
WAIT_BASE_BELOW = 17
WAIT_OPERATOR = 18  # the name of a function
WAIT_ARROW = 19  # the label of an arrow
FIRST_WAITING = WAIT_PLAIN

PART_NONE = -1
PART_SPACE = 0  # of an index or a power: a space follows it, which stood before it

# How closely an argument is bound: 1/2a is half an a, and e^iπ is no power of iπ.
PLACE_LOOSE, PLACE_DENOMINATOR, PLACE_POWER = range(3)

DEGREE_SIGN = ord("°")
DOUBLE_BAR = ord("‖")
ROOT_SIGN = ord("√")
PRIME = ord("′")
LEFT_ANGLE = ord("⟨")
RIGHT_ANGLE = ord("⟩")
OPERATORS = byte_set(b"=<>+-")
BEFORE_SIGNS = byte_set(b"(,^_=[{|<>")  # after these a plus or minus is a sign, and after the next with a space
BEFORE_SPACED_SIGNS = byte_set(b"=,;<>")
SPACE_COMMANDS = byte_set(b",;: >")
ESCAPED = byte_set(b"{}%$&#_")
SPACING = byte_set(b" \t\n\r")
CLAUSE_ENDS = byte_set(b",;.:")
LINE_STARTS = byte_set(b" \t\n\r&")
GREEK = byte_set(bytes((0xCE, 0xCF)))  # first bytes of its letters
SPACE_MARKS = byte_set(b"\\,;:>~")  # the last bytes of commands that are a space
CIRC = np.frombuffer(b"\\circ", np.uint8)
PRIME_COMMAND = np.frombuffer(b"\\prime", np.uint8)
END_COMMAND = np.frombuffer(b"\\end", np.uint8)
NOT = np.frombuffer(b"not ", np.uint8)
COMBINATIONS = np.frombuffer(b"C(", np.uint8)

# What an index of a root is written with.
ROOT_INDICES = np.zeros(ascii.NOT_ASCII, np.int64)
for _plain, _raised in zip(
    "0123456789+-abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True
):
    ROOT_INDICES[ord(_plain)] = ord(_raised)

# First two bytes of the UTF-8 of U+2200 to U+22FF, the operators, and those of these that are names of things.
FIRST_OPERATOR = utf8("\u2200") >> 8
LAST_OPERATOR = utf8("\u22ff") >> 8
NAMES_AMONG_OPERATORS = tuple(map(utf8, "∂∅∆∇√∞"))
PARTIAL = utf8("∂")
RAISED = utf8("\u2070") >> 8  # first two bytes of the raised characters, beside `¹²³`
RAISED_LATIN = tuple(map(utf8, "¹²³"))


class Formula(NamedTuple):
    """A formula, with the text, output and tables that the functions of this module work on."""

    text: NDArray[np.uint8]
    end: int  # of the formula in `text`
    out: NDArray[np.uint8]
    first: int  # where its text starts in the output
    tables: Tables
    frames: NDArray[np.void]  # FRAME[MAX_FRAMES]
    depth: NDArray[np.int64]  # [1], frames that are open; the first is the formula


@lean_kernel
def group_end(text, i, end):
    """Return the position of the `}` that closes the `{` at i, or -1."""
    depth = 0
    while i < end:
        c = text[i]
        if c == ascii.BACKSLASH:
            i += 1
        elif c == ascii.OPEN_BRACE:
            depth += 1
        elif c == ascii.CLOSE_BRACE:
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return -1


@lean_kernel
def needs_brackets(out, start, end, place):
    """Return True unless what is written is one character, or a run of letters and digits that reads as one in its
    PLACE_*.

    Names such as π and ∂ are letters; raised characters, sums, and what has spaces in it are more than a run.
    """
    digits = letters = wide = count = 0
    more = False
    i = start
    while i < end:
        c = out[i]
        count += 1
        if is_digit(c) or c == ascii.PERIOD or (c == ascii.COMMA and digits > 0 and letters == 0):
            digits += letters == 0
        elif is_letter(c):
            letters += 1
        elif c < ascii.NOT_ASCII:
            more = True
        else:
            three = three_bytes(out, i)
            is_operator = FIRST_OPERATOR <= three >> 8 <= LAST_OPERATOR and three not in NAMES_AMONG_OPERATORS
            more = more or is_operator or three >> 8 in RAISED_LATIN or three >> 8 == RAISED
            wide += place == PLACE_POWER or three != PARTIAL
            letters += 1
            while i + 1 < end and out[i + 1] & 0xC0 == 0x80:
                i += 1
        i += 1
    if count <= 1:
        return False
    if place == PLACE_LOOSE or more:
        return more
    return wide > 0 or (digits > 0 and letters > 0)


@lean_kernel
def insert(out, o, at, c):
    """Write c before what is written from `at` on; return the new end of the output."""
    for k in range(o, at, -1):
        out[k] = out[k - 1]
    out[at] = c
    return o + 1


@lean_kernel
def put_brackets(out, o, start, place):
    """Trim what is written from `start` on, and put brackets around it if it needs them; return the new end."""
    k = skip(out, start, o, ascii.SPACE)
    o = copy(out, k, skip_back(out, o, k, ascii.SPACE), out, start)
    if needs_brackets(out, start, o, place):
        o = put_byte(out, insert(out, o, start, ascii.OPEN_PAREN), ascii.CLOSE_PAREN)
    return o


@lean_kernel
def put_spaced(out, o, first):
    """Write a space, unless at the start or after a space or an opening bracket; return the new end of the output."""
    if o > first and out[o - 1] != ascii.SPACE and out[o - 1] != ascii.OPEN_PAREN:
        return put_byte(out, o, ascii.SPACE)
    return o


@inlined_kernel
def top_frame(formula):
    """Return the number of the innermost frame."""
    return formula.depth[0] - 1


@lean_kernel
def push_frame(formula, kind, o):
    """Open a frame whose text starts at o; o, or -1 if there are too many."""
    top = formula.depth[0]
    if top >= MAX_FRAMES:
        return -1
    formula.frames[top].kind = kind
    formula.frames[top].start = o
    formula.frames[top].part = PART_NONE
    formula.depth[0] = top + 1
    return o


@lean_kernel
def starts_factor(formula, i):
    """Return True if what follows at i is multiplied with what is written, and would join it: a letter, a number, a
    root.
    """
    text, end, tables = formula.text, formula.end, formula.tables
    i = skip_any(text, i, end, SPACING)
    if i >= end or text[i] != ascii.BACKSLASH:
        return i < end and (is_letter(text[i]) or is_digit(text[i]))
    j = i + 1
    while j < end and is_letter(text[j]):
        j += 1
    row = find(tables, codes.DOMAIN_TEX, text, i + 1, j)
    if row < 0:
        return False
    kind = tables.words[row].second
    if kind >= 0:
        return kind > 0 and GREEK[tables.pool[tables.words[row].value]]
    return kind == codes.TEX_GROUP or kind == codes.TEX_FRACTION or kind == codes.TEX_ROOT or kind == codes.TEX_TEXT


@lean_kernel
def put_label(formula, top, i, o):
    """Write the label in frame `top` after its base, which ends before i: `\\overset{a}{b}` is b^a."""
    out = formula.out
    above = formula.frames[top].kind == WAIT_BASE_ABOVE
    start, base = np.int64(formula.frames[top].start), np.int64(formula.frames[top].part)
    if o + (base - start) > len(out):
        return -1
    label_end = copy(out, start, base, out, o)
    base_end = skip_back(out, o, base, ascii.SPACE)
    spaced = base_end < o or starts_factor(formula, i)
    if start == formula.first:
        base = skip(out, base, base_end, ascii.SPACE)
    label = o
    o = copy(out, base, base_end, out, start)
    # The label lies after what is now written, so it can be moved to the left.
    if label < label_end:
        o = put_byte(out, o, ascii.CARET if above else ascii.UNDERSCORE)
        o = copy(out, label, label_end, out, o)
    return put_byte(out, o, ascii.SPACE) if spaced else o


@inlined_kernel
def put_index_brackets(out, o, start, place):
    """Put brackets around an index or a power if it needs them; without any text its `_` or `^` goes, too."""
    o = put_brackets(out, o, start, place)
    return o if o > start else o - 1


@lean_kernel
def finish_atom(formula, i, o):
    """Give what was written last, up to o, to the command that waits for it; return the new end of the output.

    i: where the formula goes on. An argument can complete one command after the other.
    """
    out = formula.out
    while o >= 0:
        top = top_frame(formula)
        kind = formula.frames[top].kind
        start = np.int64(formula.frames[top].start)
        if kind == GROUP_DELIMITED and start < 0:
            formula.frames[top].start = o
        if kind < FIRST_WAITING:
            return o
        if kind == WAIT_NUMERATOR:
            o = put_byte(out, put_brackets(out, o, start, PLACE_LOOSE), ascii.SLASH)
            formula.frames[top].kind = WAIT_DENOMINATOR
            formula.frames[top].start = o
            return o
        if kind == WAIT_CHOSEN_FROM:
            o = skip_back(out, o, start, ascii.SPACE)
            out[o] = ascii.COMMA
            out[o + 1] = ascii.SPACE
            formula.frames[top].kind = WAIT_CHOSEN
            return o + 2
        if kind == WAIT_ABOVE or kind == WAIT_BELOW:
            o = put_brackets(out, o, start, PLACE_LOOSE)
            formula.frames[top].kind = WAIT_BASE_ABOVE if kind == WAIT_ABOVE else WAIT_BASE_BELOW
            formula.frames[top].part = o
            return o
        formula.depth[0] = top
        if kind == WAIT_INDEX or kind == WAIT_TIGHT:
            o = put_index_brackets(out, o, start, PLACE_POWER if kind == WAIT_TIGHT else PLACE_LOOSE)
            if formula.frames[top].part == PART_SPACE:
                o = put_spaced(out, o, formula.first)
        elif kind == WAIT_DENOMINATOR:
            o = put_brackets(out, o, start, PLACE_DENOMINATOR)
            if out[o - 1] != ascii.CLOSE_PAREN and starts_factor(formula, i):
                o = put_spaced(out, o, formula.first)
        elif kind == WAIT_CHOSEN:
            o = put_byte(out, skip_back(out, o, start, ascii.SPACE), ascii.CLOSE_PAREN)
        elif kind == WAIT_ARROW:
            o = put_spaced(out, put_index_brackets(out, o, start, PLACE_LOOSE), formula.first)
        elif kind == WAIT_BASE_ABOVE or kind == WAIT_BASE_BELOW:
            o = put_label(formula, top, i, o)
        elif kind == WAIT_OPERATOR and starts_factor(formula, i):
            o = put_spaced(out, o, formula.first)
    return o


@lean_kernel
def finish_part(formula, o):
    """End what stands after an `\\over` or `\\choose` of the innermost frame; the new end of the output."""
    frame = formula.frames[top_frame(formula)]
    part = np.int64(frame.part)
    if part == PART_NONE:
        return o
    formula.frames[top_frame(formula)].part = PART_NONE
    if formula.out[part - 1] == ascii.SLASH:
        return put_brackets(formula.out, o, part, PLACE_DENOMINATOR)
    return put_byte(formula.out, skip_back(formula.out, o, part, ascii.SPACE), ascii.CLOSE_PAREN)


@inlined_kernel
def put_infix(formula, kind, j, o):
    """Write the `\\over` or `\\choose` that ends at j: what its group holds so far is its first argument."""
    out, top = formula.out, top_frame(formula)
    frame = formula.frames[top]
    start = np.int64(frame.start)
    if frame.kind >= FIRST_WAITING or frame.kind == GROUP_TEXT or frame.part != PART_NONE or start < 0:
        return j, -1
    if kind == codes.TEX_OVER:
        o = put_byte(out, put_brackets(out, o, start, PLACE_LOOSE), ascii.SLASH)
    else:
        o = skip_back(out, o, start, ascii.SPACE)
        for k in range(len(COMBINATIONS)):
            o = insert(out, o, start + k, COMBINATIONS[k])
        out[o] = ascii.COMMA
        out[o + 1] = ascii.SPACE
        o += 2
    formula.frames[top].part = o
    return j, o


@inlined_kernel
def is_in_text(formula):
    """Return True inside the argument of a command such as `\\text`."""
    return formula.frames[top_frame(formula)].kind == GROUP_TEXT


@inlined_kernel
def open_group(formula, i, o):
    """Open the group whose `{` is at i. An operator or a comma alone in braces is an ordinary sign, without spaces:
    `3{,}14` is 3,14."""
    kind = formula.frames[top_frame(formula)].kind
    sign = formula.text[i + 1]
    is_braced = i + 2 < formula.end and formula.text[i + 2] == ascii.CLOSE_BRACE
    if is_braced and (sign == ascii.COMMA or OPERATORS[sign]) and kind < FIRST_WAITING:
        return i + 3, finish_atom(formula, i + 3, put_byte(formula.out, o, sign))
    is_text = kind == WAIT_TEXT or kind == GROUP_TEXT
    return i + 1, push_frame(formula, GROUP_TEXT if is_text else GROUP, o)


@inlined_kernel
def close_group(formula, i, o):
    """Close the innermost group; i is at its `}`."""
    top = top_frame(formula)
    if top == 0 or formula.frames[top].kind > GROUP_TEXT:
        return i, -1
    o = finish_part(formula, o)
    formula.depth[0] = top
    return i + 1, finish_atom(formula, i + 1, o)


@lean_kernel
def before_index(formula, i, o):
    """Return the end of the output without the space after a command such as `\\lim`, if its index stands at i."""
    out = formula.out
    if o - 1 <= formula.first or out[o - 1] != ascii.SPACE:
        return o
    i -= 1
    while SPACING[formula.text[i]]:
        i -= 1
    is_empty_group = formula.text[i] == ascii.CLOSE_BRACE and formula.text[i - 1] == ascii.OPEN_BRACE
    return o if is_empty_group or SPACE_MARKS[formula.text[i]] else o - 1


@lean_kernel
def wait_for_index(formula, kind, o, spaced):
    """Wait for an index or a power; spaced: whether a space follows it. The new end of the output."""
    o = push_frame(formula, kind, o)
    if o >= 0 and spaced:
        formula.frames[top_frame(formula)].part = PART_SPACE
    return o


@inlined_kernel
def put_power(formula, i, o):
    """Write what follows the `^` at i as superscript characters, if it is a number, a degree, primes or n; else the
    `^`, and wait for the rest."""
    text, end, out = formula.text, formula.end, formula.out
    written = before_index(formula, i, o)
    spaced = written < o
    o = written
    i = skip_any(text, i + 1, end, SPACING)
    if i >= end:
        return i, -1
    grouped = text[i] == ascii.OPEN_BRACE
    start = i
    stop = i + 1
    if grouped:
        start = i + 1
        stop = group_end(text, i, end)
        if stop < 0:
            return i, -1
    k = start
    while stands_at(text, k, PRIME_COMMAND) and k < end:
        o = put_code_point(out, o, np.int64(PRIME))
        k = skip(text, k + len(PRIME_COMMAND), end, ascii.SPACE)
        stop = stop if grouped else k
    while k < stop and (is_digit(text[k]) or text[k] == ascii.PLUS or text[k] == ascii.HYPHEN):
        o = put_superscript(out, o, text[k])
        k += 1
    after = stop + 1 if grouped else stop
    if stands_at(text, k, CIRC):
        # What follows the command in its group is dropped.
        k = stop = stop if grouped else start + len(CIRC)
        after = stop + 1 if grouped else stop
        o = put_code_point(out, o, np.int64(DEGREE_SIGN))
    elif k == start and text[start] == ascii.LOWER_N and stop == start + 1:
        k = stop
        o = put_code_point(out, o, np.int64(SUPERSCRIPT_N))
    if k >= stop and o > written:
        return after, put_spaced(out, o, formula.first) if spaced else o
    out[written] = ascii.CARET
    return i, wait_for_index(formula, WAIT_TIGHT, written + 1, spaced)


@inlined_kernel
def put_root(formula, i, o):
    """Write the root sign, with the index before it that stands in square brackets at i, if any."""
    text, end, out = formula.text, formula.end, formula.out
    i = skip_any(text, i, end, SPACING)
    if i < end and text[i] == ascii.OPEN_BRACKET:
        i += 1
        stop = i + LONGEST_ROOT_INDEX
        while i < end and text[i] != ascii.CLOSE_BRACKET:
            c = text[i]
            if not SPACING[c]:
                if c >= ascii.NOT_ASCII or ROOT_INDICES[c] == 0 or i >= stop:
                    return i, -1
                o = put_code_point(out, o, ROOT_INDICES[c])
            i += 1
        i += 1
    o = put_code_point(out, o, np.int64(ROOT_SIGN))
    return i, push_frame(formula, WAIT_TIGHT, o)


@inlined_kernel
def put_index(formula, i, o):
    """Write the `_` at i, and wait for the index."""
    written = before_index(formula, i, o)
    formula.out[written] = ascii.UNDERSCORE
    return i + 1, wait_for_index(formula, WAIT_INDEX, written + 1, written < o)


@lean_kernel
def put_line_end(formula, i, o):
    """Write what stands between two lines of a formula, the first of which ended before i."""
    text, end, out = formula.text, formula.end, formula.out
    top = top_frame(formula)
    kind = formula.frames[top].kind
    i = skip(text, i, end, ascii.ASTERISK)
    if i < end and text[i] == ascii.OPEN_BRACKET:  # how far apart they are
        while i < end and text[i] != ascii.CLOSE_BRACKET:
            i += 1
        i += 1
    i = skip_any(text, i, end, LINE_STARTS)
    if i >= end or stands_at(text, i, END_COMMAND):
        return i, o
    if kind == GROUP_CELL or kind == GROUP_TEXT or kind >= FIRST_WAITING:
        return i, -1
    o = skip_back(out, finish_part(formula, o), formula.first, ascii.SPACE)
    if o > formula.first:
        if kind == GROUP_CASES and (out[o - 1] == ascii.COMMA or out[o - 1] == ascii.PERIOD):
            o -= 1
        if not (CLAUSE_ENDS[out[o - 1]] or (OPERATORS[text[i]] and kind != GROUP_CASES)):
            o = put_byte(out, o, ascii.SEMICOLON)
        o = put_byte(out, o, ascii.SPACE)
    if kind != GROUP_DELIMITED:
        formula.frames[top].start = o
    return i, o


@inlined_kernel
def put_cell_end(formula, i, o):
    """Write what stands between two cells, at the `&` at i."""
    out, top = formula.out, top_frame(formula)
    kind = formula.frames[top].kind
    if kind != GROUP_LINES and kind != GROUP_CASES:
        return i, -1
    o = finish_part(formula, o)
    if kind == GROUP_CASES:
        o = skip_back(out, o, formula.first, ascii.SPACE)
        if out[o - 1] != ascii.OPEN_BRACE and not CLAUSE_ENDS[out[o - 1]]:
            o = put_byte(out, o, ascii.COMMA)
        o = put_byte(out, o, ascii.SPACE)
    formula.frames[top].start = o
    return i + 1, o


@inlined_kernel
def begin_environment(formula, i, o):
    """Begin the environment whose name stands in braces at i."""
    text, end, out = formula.text, formula.end, formula.out
    i = skip_any(text, i, end, SPACING)
    close = group_end(text, i, end)
    if close < 0:
        return i, -1
    row = find(formula.tables, codes.DOMAIN_TEX, text, i, close + 1)
    if row < 0:
        return i, -1
    kind = formula.tables.words[row].second
    i = close + 1
    if kind == codes.TEX_ARRAY:
        i = skip_any(text, i, end, SPACING)
        close = group_end(text, i, end)
        if close < 0:
            return i, -1
        i = close + 1
    behind_brace = o > formula.first and out[o - 1] == ascii.OPEN_BRACE
    if kind == codes.TEX_LINES:
        return i, push_frame(formula, GROUP_LINES, o)
    if kind == codes.TEX_CASES or behind_brace:
        if not behind_brace:
            o = put_byte(out, o, ascii.OPEN_BRACE)
        return i, push_frame(formula, GROUP_CASES, o)
    return i, push_frame(formula, GROUP_CELL, o)


@inlined_kernel
def end_environment(formula, i, o):
    """End the innermost environment, whose name stands in braces at i."""
    text, out, top = formula.text, formula.out, top_frame(formula)
    i = skip_any(text, i, formula.end, SPACING)
    close = group_end(text, i, formula.end)
    kind = formula.frames[top].kind
    if close < 0 or not GROUP_LINES <= kind <= GROUP_CELL:
        return i, -1
    o = skip_back(out, finish_part(formula, o), formula.first, ascii.SPACE)
    if kind == GROUP_CASES:
        last = out[o - 1]
        if last == ascii.PERIOD or last == ascii.COMMA:
            out[o - 1] = ascii.CLOSE_BRACE
            o = put_byte(out, o, last)
        else:
            o = put_byte(out, o, ascii.CLOSE_BRACE)
    formula.depth[0] = top
    return close + 1, finish_atom(formula, close + 1, o)


@inlined_kernel
def put_escape(formula, j, o):
    """Write a command of one sign, which stands at j, after its backslash."""
    out = formula.out
    c = formula.text[j]
    if c == ascii.BACKSLASH:
        return put_line_end(formula, j + 1, o)
    if SPACE_COMMANDS[c] or SPACING[c]:
        return j + 1, put_spaced(out, o, formula.first)
    if c == ascii.EXCLAMATION:  # takes away the space after a comma: `10,\\!000`
        is_comma = o - 1 > formula.first and out[o - 1] == ascii.SPACE and out[o - 2] == ascii.COMMA
        return j + 1, o - is_comma
    if c == ascii.SLASH:
        return j + 1, o
    if ESCAPED[c]:
        o = put_byte(out, o, c)
    elif c == ascii.PIPE:
        o = put_code_point(out, o, np.int64(DOUBLE_BAR))
    else:
        return j, -1
    return j + 1, finish_atom(formula, j + 1, o)


@lean_kernel
def put_symbol(formula, pool, offset, length, i, o):
    """Write the text that a command stands for, which ends at i. A space before it is one only if it shows."""
    out = formula.out
    k = 0
    if pool[offset] == ascii.SPACE:
        o = put_spaced(out, o, formula.first)
        k = 1
    while k < length:
        o = put_byte(out, o, pool[offset + k])
        k += 1
    return i, finish_atom(formula, i, o)


@inlined_kernel
def put_negation(formula, i, o):
    """Write the negation of the sign or the command at i, after `\\not`."""
    text, end, out, tables = formula.text, formula.end, formula.out, formula.tables
    i = skip_any(text, i, end, SPACING)
    j = start = i
    if i < end and text[i] == ascii.BACKSLASH:
        start = j = i + 1
        while j < end and is_letter(text[j]):
            j += 1
    else:
        j = i + 1
    # The key is put together after the output.
    key_end = copy(NOT, 0, len(NOT), out, o)
    key_end = copy(text, start, min(j, end), out, key_end)
    row = find(tables, codes.DOMAIN_TEX, out, o, key_end)
    if row < 0:
        return i, -1
    return put_symbol(formula, tables.pool, np.int64(tables.words[row].value), tables.words[row].second, j, o)


@inlined_kernel
def put_reaction(formula, i, o):
    """Write the chemical formula that stands in braces at i."""
    text, out = formula.text, formula.out
    i = skip_any(text, i, formula.end, SPACING)
    close = group_end(text, i, formula.end)
    if close < 0:
        return i, -1
    return close + 1, finish_atom(formula, close + 1, put_chemistry(text, i + 1, close, out, o, len(out)))


@inlined_kernel
def put_fence(formula, kind, i, o):
    """Do what `\\left`, `\\right` or `\\middle` says, which ends before i."""
    text, end, out, top = formula.text, formula.end, formula.out, top_frame(formula)
    if kind == codes.TEX_RIGHT:
        if formula.frames[top].kind != GROUP_DELIMITED:
            return i, -1
        o = skip_back(out, finish_part(formula, o), formula.first, ascii.SPACE)
        formula.depth[0] = top
    i = skip_any(text, i, end, SPACING)
    c = text[i] if i < end else ascii.PERIOD
    # The dot is no delimiter, and angle brackets would be signs elsewhere. Others are written as what follows.
    special = c == ascii.PERIOD or c == ascii.LESS_THAN or c == ascii.GREATER_THAN
    if special and c != ascii.PERIOD:
        o = put_code_point(out, o, np.int64(LEFT_ANGLE if c == ascii.LESS_THAN else RIGHT_ANGLE))
    if kind == codes.TEX_LEFT:
        o = push_frame(formula, GROUP_DELIMITED, o)
        if o >= 0 and not special:
            formula.frames[top + 1].start = -1
    return i + special, o


@lean_kernel
def skip_argument(text, i, end):
    """Return one past the arguments from i on of a command that shows nothing: one in square brackets, one in braces;
    -1 if there is none in braces."""
    i = skip_any(text, skip(text, i, end, ascii.ASTERISK), end, SPACING)
    if i < end and text[i] == ascii.OPEN_BRACKET:
        while i < end and text[i] != ascii.CLOSE_BRACKET:
            i += 1
        i += 1
    close = group_end(text, i, end) if i < end and text[i] == ascii.OPEN_BRACE else -1
    return close + 1 if close >= 0 else -1


@inlined_kernel
def put_arrow(formula, o):
    """Write the arrow to the right whose label follows."""
    out = formula.out
    o = put_code_point(out, put_spaced(out, o, formula.first), np.int64(RIGHT_ARROW))
    return put_byte(out, o, ascii.CARET)


@inlined_kernel
def wait_for_argument(formula, kind, j, o):
    """Make the command that ends at j wait for its argument: what TEX_* says is done with it once it is there."""
    out = formula.out
    if kind == codes.TEX_FRACTION:
        waiting = WAIT_NUMERATOR
    elif kind == codes.TEX_TEXT:
        waiting = WAIT_TEXT
    elif kind == codes.TEX_BINOMIAL:
        o = copy(COMBINATIONS, 0, len(COMBINATIONS), out, o)
        waiting = WAIT_CHOSEN_FROM
    elif kind == codes.TEX_ABOVE:
        waiting = WAIT_ABOVE
    elif kind == codes.TEX_BELOW:
        waiting = WAIT_BELOW
    elif kind == codes.TEX_ARROW:
        o = put_arrow(formula, o)
        waiting = WAIT_ARROW
    elif kind == codes.TEX_OPERATOR:
        j = skip(formula.text, j, formula.end, ascii.ASTERISK)
        o = put_spaced(out, o, formula.first)
        waiting = WAIT_OPERATOR
    else:
        waiting = WAIT_PLAIN
    return j, push_frame(formula, waiting, o)


@lean_kernel
def put_command(formula, i, o):
    """Write the command whose backslash is at i, or do what it says."""
    text, end, tables = formula.text, formula.end, formula.tables
    j = i + 1
    while j < end and is_letter(text[j]):
        j += 1
    if j == i + 1:
        return put_escape(formula, j, o)
    row = find(tables, codes.DOMAIN_TEX, text, i + 1, j)
    if row < 0:
        return i, -1
    kind = tables.words[row].second
    if kind >= 0:
        i, o = put_symbol(formula, tables.pool, np.int64(tables.words[row].value), kind, j, o)
        return i, o
    if kind == codes.TEX_IGNORED:
        return j, o
    if kind == codes.TEX_LEFT or kind == codes.TEX_RIGHT or kind == codes.TEX_MIDDLE:
        return put_fence(formula, kind, j, o)
    if kind == codes.TEX_OVER or kind == codes.TEX_CHOOSE:
        return put_infix(formula, kind, j, o)
    if kind == codes.TEX_ROOT:
        return put_root(formula, j, o)
    if kind == codes.TEX_NOT:
        return put_negation(formula, j, o)
    if kind == codes.TEX_BEGIN:
        return begin_environment(formula, j, o)
    if kind == codes.TEX_END:
        return end_environment(formula, j, o)
    if kind == codes.TEX_NEWLINE:
        return put_line_end(formula, j, o)
    if kind == codes.TEX_CHEMISTRY:
        return put_reaction(formula, j, o)
    if kind == codes.TEX_HIDDEN:
        after = skip_argument(text, j, end)
        return after, o if after >= 0 else -1
    return wait_for_argument(formula, kind, j, o)


@inlined_kernel
def is_sign(formula, o):
    """Return True if a plus or minus at the end of the output is the sign of what follows, as nothing stands before
    it.
    """
    out, first = formula.out, formula.first
    frame = formula.frames[top_frame(formula)]
    if o == first or o == frame.start or o == frame.part:
        return True
    last = out[o - 1]
    if BEFORE_SIGNS[last]:
        return True
    if last != ascii.SPACE or o - 2 < first:
        return False
    return BEFORE_SPACED_SIGNS[out[o - 2]]


@inlined_kernel
def put_operator(formula, o, c):
    """Write an operator, with spaces around it unless it is a sign; return the new end of the output."""
    out = formula.out
    if (c == ascii.PLUS or c == ascii.HYPHEN) and is_sign(formula, o):
        return put_byte(out, o, c)
    o = put_spaced(out, o, formula.first)
    out[o] = c
    out[o + 1] = ascii.SPACE
    return o + 2


@inlined_kernel
def put_token(formula, i, o):
    """Write what starts at i and is neither white space, a group, an index nor a command."""
    text, out = formula.text, formula.out
    c = text[i]
    if c == ascii.AMPERSAND:
        after, written = put_entity(text, i, formula.end, out, o, formula.tables)
        if after == i + 1:
            return put_cell_end(formula, i, o)  # an `&` that starts no entity
        return after, finish_atom(formula, after, written)
    if c == ascii.TILDE:
        return i + 1, put_spaced(out, o, formula.first)
    if is_in_text(formula):
        return i + 1, o if c == ascii.DOLLAR else put_byte(out, o, c)
    if OPERATORS[c]:
        return i + 1, finish_atom(formula, i + 1, put_operator(formula, o, c))
    o = put_byte(out, o, c)
    if c == ascii.COMMA:
        o = put_byte(out, o, ascii.SPACE)
    elif c >= ascii.NOT_ASCII and i + 1 < formula.end and text[i + 1] & 0xC0 == 0x80:
        return i + 1, o  # the character goes on
    return i + 1, finish_atom(formula, i + 1, o)


@lean_kernel
def put_steps(formula, i, o):
    """Write the formula from i on; return the new end of the output, or -1."""
    text, end, first = formula.text, formula.end, formula.first
    room = o + 2 * (end - i + TAGS)
    while i < end:
        c = text[i]
        if SPACING[c]:
            if is_in_text(formula):
                o = put_spaced(formula.out, o, first)
            i += 1
        elif c == ascii.OPEN_BRACE:
            i, o = open_group(formula, i, o)
        elif c == ascii.CLOSE_BRACE:
            i, o = close_group(formula, i, o)
        elif c == ascii.CARET and not is_in_text(formula):
            i, o = put_power(formula, i, o)
        elif c == ascii.UNDERSCORE and not is_in_text(formula):
            i, o = put_index(formula, i, o)
        elif c == ascii.BACKSLASH:
            i, o = put_command(formula, i, o)
        else:
            i, o = put_token(formula, i, o)
        if o < 0 or o > room:
            return -1
    if formula.depth[0] > 1:
        return -1
    return skip_back(formula.out, finish_part(formula, o), first, ascii.SPACE)


@kernel
def put_formula(text, i, end, out, o, tables):
    """Write the TeX formula text[i:end] as a line of text; return the new end of the output, or -1 if it cannot be
    one.
    """
    if end - i > MAX_FORMULA:
        return -1
    frames = np.empty(MAX_FRAMES, FRAME)
    formula = Formula(text, end, out, o, tables, frames, np.zeros(1, np.int64))
    push_frame(formula, GROUP, o)
    return put_steps(formula, i, o)
