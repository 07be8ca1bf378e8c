"""TeX formulas to text."""

import numpy as np

from transforms.extraction.kernels.tables import _SPACE, DOMAIN_TEX, TEX_DELIMITER, TEX_FRACTION, TEX_TEXT, find
from transforms.extraction.kernels.text import is_digit, is_letter, put_code_point, put_entity, put_superscript
from transforms.kernels import kernel

MAX_FORMULA = 2000  # bytes of TeX that are turned into text
MAX_GROUPS = 32  # nested groups in a formula

GROUP_PLAIN = 0
GROUP_BRACKET = 1  # what opened it wrote a bracket
GROUP_NUMERATOR = 2
GROUP_NUMERATOR_BRACKET = 3
GROUP_TEXT = 4


@kernel
def group_end(text, i, end):  # type: ignore[no-untyped-def]
    """The position of the `}` that closes the `{` at i, or -1."""
    depth = 0
    while i < end:
        c = text[i]
        if c == 92:
            i += 1
        elif c == 123:
            depth += 1
        elif c == 125:
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return -1


@kernel
def needs_brackets(text, start, end):  # type: ignore[no-untyped-def]
    """True unless the TeX text[start:end] is one run of letters and digits, or one command."""
    i = start
    if i < end and text[i] == 92:
        i += 1
    while i < end and (is_letter(text[i]) or is_digit(text[i]) or text[i] == 46):
        i += 1
    return i < end


@kernel
def put_spaced(out, o, first):  # type: ignore[no-untyped-def]
    """Writes a space, unless at the start or behind one; the new end of the output."""
    if o > first and out[o - 1] != _SPACE and out[o - 1] != 40:
        out[o] = _SPACE
        return o + 1
    return o


@kernel
def put_formula(text, i, end, out, o, tables):  # type: ignore[no-untyped-def]
    """Writes the TeX formula text[i:end] as a line of text; the new end of the output, or -1 if it cannot be one."""
    words = tables.words
    pool = tables.pool
    if end - i > MAX_FORMULA:
        return -1
    groups = np.empty(MAX_GROUPS, np.int32)
    depth = 0
    first = o
    room = o + 2 * (end - i) + 8
    argument = -1  # what the next group or token is: GROUP_*, or -1
    while i < end:
        if o >= room - 8:
            return -1
        c = text[i]
        if c == 32 or c == 9 or c == 10 or c == 13:
            if depth > 0 and groups[depth - 1] == GROUP_TEXT:
                o = put_spaced(out, o, first)
            i += 1
            continue
        if c == 123:
            if depth >= MAX_GROUPS:
                return -1
            kind = GROUP_PLAIN
            if argument >= 0:
                kind = argument
                argument = -1
                if kind in (GROUP_NUMERATOR, GROUP_BRACKET):
                    close = group_end(text, i, end)
                    if close < 0:
                        return -1
                    if needs_brackets(text, i + 1, close):
                        out[o] = 40
                        o += 1
                        kind = GROUP_NUMERATOR_BRACKET if kind == GROUP_NUMERATOR else GROUP_BRACKET
                    elif kind == GROUP_BRACKET:
                        kind = GROUP_PLAIN
            groups[depth] = kind
            depth += 1
            i += 1
            continue
        if c == 125:
            if depth == 0:
                return -1
            depth -= 1
            kind = groups[depth]
            if kind in (GROUP_BRACKET, GROUP_NUMERATOR_BRACKET):
                while o > first and out[o - 1] == _SPACE:
                    o -= 1
                out[o] = 41
                o += 1
            if kind in (GROUP_NUMERATOR, GROUP_NUMERATOR_BRACKET):
                out[o] = 47
                o += 1
                argument = GROUP_BRACKET
            i += 1
            continue
        if c == 94:  # ^
            i += 1
            while i < end and text[i] == _SPACE:
                i += 1
            stop = i + 1
            start = i
            if text[i] == 123:
                stop = group_end(text, i, end)
                if stop < 0:
                    return -1
                start = i + 1
            k = start
            while k < stop and (is_digit(text[k]) or text[k] == 43 or text[k] == 45):
                k += 1
            if k == stop and k > start:
                for m in range(start, stop):
                    o = put_superscript(out, o, text[m])
                i = stop + 1 if start > i else stop
            elif text[start] == 92 and is_circ(text, start):
                o = put_code_point(out, o, np.int64(0xB0))
                i = stop + 1 if start > i else start + 5
            elif text[start] == 110 and (start == i or stop == start + 1):
                o = put_code_point(out, o, np.int64(0x207F))
                i = stop + 1 if start > i else stop
            else:
                out[o] = 94
                o += 1
                if start > i:
                    argument = GROUP_BRACKET
            continue
        if c == 95:  # _
            out[o] = 95
            o += 1
            i += 1
            while i < end and text[i] == _SPACE:
                i += 1
            if i < end and text[i] == 123:
                argument = GROUP_BRACKET
            continue
        if c == 92:  # a command
            j = i + 1
            while j < end and is_letter(text[j]):
                j += 1
            if j == i + 1:
                c = text[j]
                if c in (44, 59, 58, 32, 62):
                    o = put_spaced(out, o, first)
                elif c in (123, 125, 37, 36, 38, 35, 95):
                    out[o] = c
                    o += 1
                elif c == 124:
                    o = put_code_point(out, o, np.int64(0x2016))
                elif c != 33:
                    return -1
                i = j + 1
                continue
            row = find(tables, np.int64(DOMAIN_TEX), text, i + 1, j)
            if row < 0:
                return -1
            kind = words[row, 5]
            i = j
            if kind >= 0:
                offset = words[row, 4]
                k = 0
                if pool[offset] == _SPACE:
                    o = put_spaced(out, o, first)
                    k = 1
                while k < kind:
                    out[o] = pool[offset + k]
                    o += 1
                    k += 1
                # The root sign binds what follows it.
                if kind == 3 and pool[offset] == 0xE2 and pool[offset + 1] == 0x88 and pool[offset + 2] == 0x9A:
                    if i < end and text[i] == 91:
                        return -1
                    argument = GROUP_BRACKET
            elif kind == TEX_FRACTION:
                while i < end and text[i] == _SPACE:
                    i += 1
                if i >= end or text[i] != 123:
                    return -1
                argument = GROUP_NUMERATOR
            elif kind == TEX_DELIMITER:
                if i < end and text[i] == 46:
                    i += 1
            elif kind == TEX_TEXT:
                argument = GROUP_TEXT
            continue
        if argument >= 0 and argument != GROUP_TEXT:
            argument = -1
        if c == 38:
            before = i
            i, o = put_entity(text, i, end, out, o, tables)
            if i == before + 1:
                return -1
            continue
        if c in (61, 60, 62, 43, 45) and not (depth > 0 and groups[depth - 1] == GROUP_TEXT):
            unary = (
                o == first
                or out[o - 1] in (40, 44, 94, 95, 61, 91, 123, 124, 60, 62)
                or (o - 2 >= first and out[o - 1] == _SPACE and out[o - 2] in (61, 44, 60, 62))
            )
            if c in (43, 45) and unary:
                out[o] = c
                o += 1
            else:
                o = put_spaced(out, o, first)
                out[o] = c
                out[o + 1] = _SPACE
                o += 2
            i += 1
            continue
        if c == 126:
            o = put_spaced(out, o, first)
            i += 1
            continue
        out[o] = c
        o += 1
        i += 1
        if c == 44:
            out[o] = _SPACE
            o += 1
    if depth > 0:
        return -1
    while o > first and out[o - 1] == _SPACE:
        o -= 1
    return o


@kernel
def is_circ(text, i):  # type: ignore[no-untyped-def]
    """True if the command `\\circ` stands at i."""
    return text[i + 1] == 99 and text[i + 2] == 105 and text[i + 3] == 114 and text[i + 4] == 99
