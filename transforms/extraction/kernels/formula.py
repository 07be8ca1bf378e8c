"""TeX formulas as a line of text: `<math>` elements that are short and hold nothing but what a line can show.

A function that writes takes where it reads, i, and the output's end, o, and returns both anew; o is -1 for a formula
that cannot be one line of text, which then shows nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.kernels import inlined_kernel, kernel, lean_kernel
from maskmill.kernels.ascii import (
    AMPERSAND,
    BACKSLASH,
    CARET,
    CARRIAGE_RETURN,
    CLOSE_BRACE,
    CLOSE_PAREN,
    COLON,
    COMMA,
    DOLLAR,
    EQUALS,
    EXCLAMATION,
    GREATER_THAN,
    HASH,
    HYPHEN,
    LESS_THAN,
    LOWER_N,
    NEWLINE,
    OPEN_BRACE,
    OPEN_BRACKET,
    OPEN_PAREN,
    PERCENT,
    PERIOD,
    PIPE,
    PLUS,
    SEMICOLON,
    SLASH,
    SPACE,
    TAB,
    TILDE,
    UNDERSCORE,
)
from transforms.extraction.kernels.tables import DOMAIN_TEX, TEX_DELIMITER, TEX_FRACTION, TEX_TEXT, find
from transforms.extraction.kernels.text import (
    SUPERSCRIPT_N,
    is_alphanumeric,
    is_digit,
    is_letter,
    put_code_point,
    put_entity,
    put_superscript,
    skip,
    stands_at,
    three_bytes,
    utf8,
)

MAX_FORMULA = 2000  # bytes of TeX that are turned into text
MAX_GROUPS = 32  # nested groups

# What a `{` opens, and what the next group or token is for.
GROUP_PLAIN = 0
GROUP_BRACKET = 1  # a group that gets brackets where it needs them
GROUP_NUMERATOR = 2  # of a fraction, which gets them too
GROUP_NUMERATOR_BRACKET = 3  # a numerator that got them
GROUP_TEXT = 4
GROUP_NONE = -1  # nothing waits for a group

STATE_DEPTH = 0  # open groups
STATE_WAITING = 1  # GROUP_*: what the next group is for
STATES = 2

DEGREE_SIGN = ord("°")
DOUBLE_BAR = ord("‖")
ROOT_SIGN = utf8("√")
CIRC = np.frombuffer(b"\\circ", np.uint8)


class Formula(NamedTuple):
    """What the functions of a formula work on."""

    text: NDArray[np.uint8]
    end: int  # of the formula in `text`
    out: NDArray[np.uint8]
    first: int  # where its text starts in the output
    groups: NDArray[np.int32]  # [MAX_GROUPS], GROUP_* of the open groups
    state: NDArray[np.int64]  # [STATES]


@lean_kernel
def group_end(text, i, end):
    """The position of the `}` that closes the `{` at i, or -1."""
    depth = 0
    while i < end:
        c = text[i]
        if c == BACKSLASH:
            i += 1
        elif c == OPEN_BRACE:
            depth += 1
        elif c == CLOSE_BRACE:
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return -1


@lean_kernel
def needs_brackets(text, start, end):
    """True unless the TeX text[start:end] is one run of letters and digits, or one command."""
    i = start
    if i < end and text[i] == BACKSLASH:
        i += 1
    while i < end and (is_alphanumeric(text[i]) or text[i] == PERIOD):
        i += 1
    return i < end


@lean_kernel
def put_spaced(out, o, first):
    """Writes a space, unless at the start or behind a space or an opening bracket; the new end of the output."""
    if o > first and out[o - 1] != SPACE and out[o - 1] != OPEN_PAREN:
        out[o] = SPACE
        return o + 1
    return o


@lean_kernel
def without_spaces(out, o, first):
    """The end of the output before the spaces at its end."""
    while o > first and out[o - 1] == SPACE:
        o -= 1
    return o


@inlined_kernel
def is_in_text(formula):
    """True inside the argument of a command such as `\\text`."""
    depth = formula.state[STATE_DEPTH]
    return depth > 0 and formula.groups[depth - 1] == GROUP_TEXT


@inlined_kernel
def open_group(formula, i, o):
    """Opens the group whose `{` is at i."""
    text, end, out = formula.text, formula.end, formula.out
    depth = formula.state[STATE_DEPTH]
    if depth >= MAX_GROUPS:
        return i, -1
    kind = formula.state[STATE_WAITING]
    formula.state[STATE_WAITING] = GROUP_NONE
    if kind == GROUP_NONE:
        kind = GROUP_PLAIN
    elif kind == GROUP_NUMERATOR or kind == GROUP_BRACKET:
        close = group_end(text, i, end)
        if close < 0:
            return i, -1
        if needs_brackets(text, i + 1, close):
            out[o] = OPEN_PAREN
            o += 1
            kind = GROUP_NUMERATOR_BRACKET if kind == GROUP_NUMERATOR else GROUP_BRACKET
        elif kind == GROUP_BRACKET:
            kind = GROUP_PLAIN
    formula.groups[depth] = kind
    formula.state[STATE_DEPTH] = depth + 1
    return i + 1, o


@inlined_kernel
def close_group(formula, i, o):
    """Closes the innermost group; i is at its `}`."""
    out = formula.out
    depth = formula.state[STATE_DEPTH] - 1
    if depth < 0:
        return i, -1
    formula.state[STATE_DEPTH] = depth
    kind = formula.groups[depth]
    if kind == GROUP_BRACKET or kind == GROUP_NUMERATOR_BRACKET:
        o = without_spaces(out, o, formula.first)
        out[o] = CLOSE_PAREN
        o += 1
    if kind == GROUP_NUMERATOR or kind == GROUP_NUMERATOR_BRACKET:
        out[o] = SLASH
        o += 1
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i + 1, o


@inlined_kernel
def put_power(formula, i, o):
    """Writes what follows the `^` at i as superscript characters, if it is a number, a degree or n; else the `^`."""
    text, end, out = formula.text, formula.end, formula.out
    i = skip(text, i + 1, end, SPACE)
    grouped = text[i] == OPEN_BRACE
    start = i
    stop = i + 1
    if grouped:
        start = i + 1
        stop = group_end(text, i, end)
        if stop < 0:
            return i, -1
    k = start
    while k < stop and (is_digit(text[k]) or text[k] == PLUS or text[k] == HYPHEN):
        k += 1
    after = stop + 1 if grouped else stop
    if k == stop and k > start:
        for m in range(start, stop):
            o = put_superscript(out, o, text[m])
        return after, o
    if stands_at(text, start, CIRC):
        # What follows the command in its group is dropped.
        return after if grouped else start + len(CIRC), put_code_point(out, o, np.int64(DEGREE_SIGN))
    if text[start] == LOWER_N and stop == start + 1:
        return after, put_code_point(out, o, np.int64(SUPERSCRIPT_N))
    out[o] = CARET
    if grouped:
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i, o + 1


@inlined_kernel
def put_index(formula, i, o):
    """Writes the `_` at i."""
    formula.out[o] = UNDERSCORE
    i = skip(formula.text, i + 1, formula.end, SPACE)
    if i < formula.end and formula.text[i] == OPEN_BRACE:
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i, o + 1


@inlined_kernel
def put_escape(formula, j, o):
    """Writes a command of one sign, which stands at j, behind its backslash."""
    out = formula.out
    c = formula.text[j]
    if c == COMMA or c == SEMICOLON or c == COLON or c == SPACE or c == GREATER_THAN:
        o = put_spaced(out, o, formula.first)
    elif c in (OPEN_BRACE, CLOSE_BRACE, PERCENT, DOLLAR, AMPERSAND, HASH, UNDERSCORE):
        out[o] = c
        o += 1
    elif c == PIPE:
        o = put_code_point(out, o, np.int64(DOUBLE_BAR))
    elif c != EXCLAMATION:
        return j, -1
    return j + 1, o


@inlined_kernel
def put_symbol(formula, pool, offset, length, i, o):
    """Writes the text that a command stands for, which ends at i. A space before it is one only where it shows."""
    out = formula.out
    k = 0
    if pool[offset] == SPACE:
        o = put_spaced(out, o, formula.first)
        k = 1
    while k < length:
        out[o] = pool[offset + k]
        o += 1
        k += 1
    # The root sign binds what follows it.
    if length == 3 and three_bytes(pool, offset) == ROOT_SIGN:
        if i < formula.end and formula.text[i] == OPEN_BRACKET:
            return i, -1
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i, o


@inlined_kernel
def put_command(formula, tables, i, o):
    """Writes the command whose backslash is at i, or does what it says."""
    text, end, state = formula.text, formula.end, formula.state
    j = i + 1
    while j < end and is_letter(text[j]):
        j += 1
    if j == i + 1:
        return put_escape(formula, j, o)
    row = find(tables, np.int64(DOMAIN_TEX), text, i + 1, j)
    if row < 0:
        return i, -1
    kind = tables.words[row].second
    if kind >= 0:
        return put_symbol(formula, tables.pool, np.int64(tables.words[row].value), kind, j, o)
    if kind == TEX_FRACTION:
        j = skip(text, j, end, SPACE)
        if j >= end or text[j] != OPEN_BRACE:
            return i, -1
        state[STATE_WAITING] = GROUP_NUMERATOR
    elif kind == TEX_DELIMITER:
        j += j < end and text[j] == PERIOD
    elif kind == TEX_TEXT:
        state[STATE_WAITING] = GROUP_TEXT
    return j, o


@inlined_kernel
def is_sign(out, o, first):
    """True if a plus or minus at the end of the output is the sign of what follows, as nothing stands before it."""
    if o == first:
        return True
    last = out[o - 1]
    if last in (
        OPEN_PAREN,
        COMMA,
        CARET,
        UNDERSCORE,
        EQUALS,
        OPEN_BRACKET,
        OPEN_BRACE,
        PIPE,
        LESS_THAN,
        GREATER_THAN,
    ):
        return True
    if last != SPACE or o - 2 < first:
        return False
    before = out[o - 2]
    return before == EQUALS or before == COMMA or before == LESS_THAN or before == GREATER_THAN


@inlined_kernel
def put_operator(out, o, first, c):
    """Writes an operator, with spaces around it unless it is a sign; the new end of the output."""
    if (c == PLUS or c == HYPHEN) and is_sign(out, o, first):
        out[o] = c
        return o + 1
    o = put_spaced(out, o, first)
    out[o] = c
    out[o + 1] = SPACE
    return o + 2


@inlined_kernel
def put_token(formula, tables, i, o):
    """Writes what starts at i and is neither white space, a group, an index nor a command."""
    text, out, first = formula.text, formula.out, formula.first
    if formula.state[STATE_WAITING] != GROUP_TEXT:
        formula.state[STATE_WAITING] = GROUP_NONE
    c = text[i]
    if c == AMPERSAND:
        after, o = put_entity(text, i, formula.end, out, o, tables)
        # An `&` that starts no entity aligns lines.
        return after, o if after > i + 1 else -1
    is_operator = c == EQUALS or c == LESS_THAN or c == GREATER_THAN or c == PLUS or c == HYPHEN
    if is_operator and not is_in_text(formula):
        return i + 1, put_operator(out, o, first, c)
    if c == TILDE:
        return i + 1, put_spaced(out, o, first)
    out[o] = c
    o += 1
    if c == COMMA:
        out[o] = SPACE
        o += 1
    return i + 1, o


@lean_kernel
def put_steps(formula, tables, i, o):
    """Writes the formula from i on; the new end of the output, or -1."""
    text, end, first = formula.text, formula.end, formula.first
    room = o + 2 * (end - i)
    while i < end:
        if o >= room:
            return -1
        c = text[i]
        if c == SPACE or c == TAB or c == NEWLINE or c == CARRIAGE_RETURN:
            if is_in_text(formula):
                o = put_spaced(formula.out, o, first)
            i += 1
        elif c == OPEN_BRACE:
            i, o = open_group(formula, i, o)
        elif c == CLOSE_BRACE:
            i, o = close_group(formula, i, o)
        elif c == CARET:
            i, o = put_power(formula, i, o)
        elif c == UNDERSCORE:
            i, o = put_index(formula, i, o)
        elif c == BACKSLASH:
            i, o = put_command(formula, tables, i, o)
        else:
            i, o = put_token(formula, tables, i, o)
        if o < 0:
            return -1
    if formula.state[STATE_DEPTH] > 0:
        return -1
    return without_spaces(formula.out, o, first)


@kernel
def put_formula(text, i, end, out, o, tables):
    """Writes the TeX formula text[i:end] as a line of text; the new end of the output, or -1 if it cannot be one."""
    if end - i > MAX_FORMULA:
        return -1
    groups = np.empty(MAX_GROUPS, np.int32)
    state = np.zeros(STATES, np.int64)
    state[STATE_WAITING] = GROUP_NONE
    return put_steps(Formula(text, end, out, o, groups, state), tables, i, o)
