"""TeX formulas as a line of text: `<math>` elements that are short and hold nothing but what a line can show.

A function that writes takes where it reads, i, and the output's end, o, and returns both anew; o is -1 for a formula
that cannot be one line of text, which then shows nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.kernels.characters import put_code_point
from maskmill.kernels import ascii, inlined_kernel, kernel, lean_kernel
from transforms.extraction.kernels import codes
from transforms.extraction.kernels.tables import find
from transforms.extraction.kernels.text import (
    SUPERSCRIPT_N,
    byte_set,
    is_alphanumeric,
    is_digit,
    is_letter,
    put_byte,
    put_entity,
    put_superscript,
    skip,
    skip_back,
    stands_at,
    three_bytes,
    utf8,
)

MAX_FORMULA = 2000  # bytes of TeX that are turned into text
MAX_GROUPS = 32  # nested groups

# What a `{` opens, and what the next group or token is for.
GROUP_PLAIN = 0
GROUP_BRACKET = 1  # a group that gets brackets if it needs them
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
OPERATORS = byte_set(b"=<>+-")
BEFORE_SIGNS = byte_set(b"(,^_=[{|<>")  # behind these a plus or minus is a sign, and behind the next with a space
BEFORE_SPACED_SIGNS = byte_set(b"=,<>")
SPACE_COMMANDS = byte_set(b",;: >")
ESCAPED = byte_set(b"{}%$&#_")
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
def needs_brackets(text, start, end):
    """True unless the TeX text[start:end] is one run of letters and digits, or one command."""
    i = start
    if i < end and text[i] == ascii.BACKSLASH:
        i += 1
    while i < end and (is_alphanumeric(text[i]) or text[i] == ascii.PERIOD):
        i += 1
    return i < end


@lean_kernel
def put_spaced(out, o, first):
    """Writes a space, unless at the start or behind a space or an opening bracket; the new end of the output."""
    if o > first and out[o - 1] != ascii.SPACE and out[o - 1] != ascii.OPEN_PAREN:
        return put_byte(out, o, ascii.SPACE)
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
            o = put_byte(out, o, ascii.OPEN_PAREN)
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
        o = skip_back(out, o, formula.first, ascii.SPACE)
        o = put_byte(out, o, ascii.CLOSE_PAREN)
    if kind == GROUP_NUMERATOR or kind == GROUP_NUMERATOR_BRACKET:
        o = put_byte(out, o, ascii.SLASH)
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i + 1, o


@inlined_kernel
def put_power(formula, i, o):
    """Writes what follows the `^` at i as superscript characters, if it is a number, a degree or n; else the `^`."""
    text, end, out = formula.text, formula.end, formula.out
    i = skip(text, i + 1, end, ascii.SPACE)
    grouped = text[i] == ascii.OPEN_BRACE
    start = i
    stop = i + 1
    if grouped:
        start = i + 1
        stop = group_end(text, i, end)
        if stop < 0:
            return i, -1
    k = start
    while k < stop and (is_digit(text[k]) or text[k] == ascii.PLUS or text[k] == ascii.HYPHEN):
        k += 1
    after = stop + 1 if grouped else stop
    if k == stop and k > start:
        for m in range(start, stop):
            o = put_superscript(out, o, text[m])
        return after, o
    if stands_at(text, start, CIRC):
        # What follows the command in its group is dropped.
        return after if grouped else start + len(CIRC), put_code_point(out, o, np.int64(DEGREE_SIGN))
    if text[start] == ascii.LOWER_N and stop == start + 1:
        return after, put_code_point(out, o, np.int64(SUPERSCRIPT_N))
    out[o] = ascii.CARET
    if grouped:
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i, o + 1


@inlined_kernel
def put_index(formula, i, o):
    """Writes the `_` at i."""
    formula.out[o] = ascii.UNDERSCORE
    i = skip(formula.text, i + 1, formula.end, ascii.SPACE)
    if i < formula.end and formula.text[i] == ascii.OPEN_BRACE:
        formula.state[STATE_WAITING] = GROUP_BRACKET
    return i, o + 1


@inlined_kernel
def put_escape(formula, j, o):
    """Writes a command of one sign, which stands at j, behind its backslash."""
    out = formula.out
    c = formula.text[j]
    if SPACE_COMMANDS[c]:
        o = put_spaced(out, o, formula.first)
    elif ESCAPED[c]:
        o = put_byte(out, o, c)
    elif c == ascii.PIPE:
        o = put_code_point(out, o, np.int64(DOUBLE_BAR))
    elif c != ascii.EXCLAMATION:
        return j, -1
    return j + 1, o


@inlined_kernel
def put_symbol(formula, pool, offset, length, i, o):
    """Writes the text that a command stands for, which ends at i. A space before it is one only if it shows."""
    out = formula.out
    k = 0
    if pool[offset] == ascii.SPACE:
        o = put_spaced(out, o, formula.first)
        k = 1
    while k < length:
        o = put_byte(out, o, pool[offset + k])
        k += 1
    # The root sign binds what follows it.
    if length == 3 and three_bytes(pool, offset) == ROOT_SIGN:
        if i < formula.end and formula.text[i] == ascii.OPEN_BRACKET:
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
    row = find(tables, codes.DOMAIN_TEX, text, i + 1, j)
    if row < 0:
        return i, -1
    kind = tables.words[row].second
    if kind >= 0:
        return put_symbol(formula, tables.pool, np.int64(tables.words[row].value), kind, j, o)
    if kind == codes.TEX_FRACTION:
        j = skip(text, j, end, ascii.SPACE)
        if j >= end or text[j] != ascii.OPEN_BRACE:
            return i, -1
        state[STATE_WAITING] = GROUP_NUMERATOR
    elif kind == codes.TEX_DELIMITER:
        j += j < end and text[j] == ascii.PERIOD
    elif kind == codes.TEX_TEXT:
        state[STATE_WAITING] = GROUP_TEXT
    return j, o


@inlined_kernel
def is_sign(out, o, first):
    """True if a plus or minus at the end of the output is the sign of what follows, as nothing stands before it."""
    if o == first:
        return True
    last = out[o - 1]
    if BEFORE_SIGNS[last]:
        return True
    if last != ascii.SPACE or o - 2 < first:
        return False
    return BEFORE_SPACED_SIGNS[out[o - 2]]


@inlined_kernel
def put_operator(out, o, first, c):
    """Writes an operator, with spaces around it unless it is a sign; the new end of the output."""
    if (c == ascii.PLUS or c == ascii.HYPHEN) and is_sign(out, o, first):
        return put_byte(out, o, c)
    o = put_spaced(out, o, first)
    out[o] = c
    out[o + 1] = ascii.SPACE
    return o + 2


@inlined_kernel
def put_token(formula, tables, i, o):
    """Writes what starts at i and is neither white space, a group, an index nor a command."""
    text, out, first = formula.text, formula.out, formula.first
    if formula.state[STATE_WAITING] != GROUP_TEXT:
        formula.state[STATE_WAITING] = GROUP_NONE
    c = text[i]
    if c == ascii.AMPERSAND:
        after, o = put_entity(text, i, formula.end, out, o, tables)
        # An `&` that starts no entity aligns lines.
        return after, o if after > i + 1 else -1
    if OPERATORS[c] and not is_in_text(formula):
        return i + 1, put_operator(out, o, first, c)
    if c == ascii.TILDE:
        return i + 1, put_spaced(out, o, first)
    o = put_byte(out, o, c)
    if c == ascii.COMMA:
        o = put_byte(out, o, ascii.SPACE)
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
        if c == ascii.SPACE or c == ascii.TAB or c == ascii.NEWLINE or c == ascii.CARRIAGE_RETURN:
            if is_in_text(formula):
                o = put_spaced(formula.out, o, first)
            i += 1
        elif c == ascii.OPEN_BRACE:
            i, o = open_group(formula, i, o)
        elif c == ascii.CLOSE_BRACE:
            i, o = close_group(formula, i, o)
        elif c == ascii.CARET:
            i, o = put_power(formula, i, o)
        elif c == ascii.UNDERSCORE:
            i, o = put_index(formula, i, o)
        elif c == ascii.BACKSLASH:
            i, o = put_command(formula, tables, i, o)
        else:
            i, o = put_token(formula, tables, i, o)
        if o < 0:
            return -1
    if formula.state[STATE_DEPTH] > 0:
        return -1
    return skip_back(formula.out, o, first, ascii.SPACE)


@kernel
def put_formula(text, i, end, out, o, tables):
    """Writes the TeX formula text[i:end] as a line of text; the new end of the output, or -1 if it cannot be one."""
    if end - i > MAX_FORMULA:
        return -1
    groups = np.empty(MAX_GROUPS, np.int32)
    state = np.zeros(STATES, np.int64)
    state[STATE_WAITING] = GROUP_NONE
    return put_steps(Formula(text, end, out, o, groups, state), tables, i, o)
