"""Evaluates the rules of templates."""

import numpy as np

from transforms.extraction.kernels.tables import (
    _NEWLINE,
    _SPACE,
    DOMAIN_FUNCTION,
    DOMAIN_NAMESPACE,
    DOMAIN_TABLES,
    DOMAIN_TEMPLATE,
    FLAG_BRACKET,
    FLAG_START,
    FORMAT_FIRST_LOWER,
    FORMAT_FIRST_UPPER,
    FORMAT_INTEGER,
    FORMAT_LOWER,
    FORMAT_NUMBER,
    FORMAT_SUPERSCRIPT,
    FORMAT_TABLES,
    FORMAT_UPPER,
    MAX_ARGUMENTS,
    MAX_TARGET,
    NAMESPACE_TEMPLATE,
    OP_ABSENT,
    OP_AGE,
    OP_END,
    OP_EQUAL,
    OP_FLAG,
    OP_IN_TABLE,
    OP_JOIN,
    OP_JUMP,
    OP_LITERAL,
    OP_TEST,
    OP_TITLE,
    OP_VALUE,
    SETTING_DAY,
    SETTING_DECIMAL_LENGTH,
    SETTING_DECIMAL_OFFSET,
    SETTING_GROUP_FROM,
    SETTING_GROUP_LENGTH,
    SETTING_GROUP_OFFSET,
    SETTING_MONTH,
    SETTING_YEAR,
    find,
)
from transforms.extraction.kernels.text import (
    is_blank,
    is_digit,
    put_code_point,
    put_integer,
    put_superscript,
    read_integer,
    trim,
)
from transforms.kernels import kernel

MAX_COLONS = 4  # prefixes tried in a template's name


@kernel
def find_argument(selector, arguments, first, last, out, pool, code):  # type: ignore[no-untyped-def]
    """(start, end) in the output of the argument a selector names, trimmed; an empty range if it is not given.

    A selector is a number from 1, or minus one minus the place in `code` where the offset and the length of the
    argument's name stand.
    """
    for a in range(last - 1, first - 1, -1):
        if selector > 0:
            if arguments[a, 4] == selector:
                return trim(out, int(arguments[a, 0]), int(arguments[a, 1]))
        elif arguments[a, 2] >= 0:
            start = arguments[a, 2]
            length = code[-selector]
            if arguments[a, 3] - start == length:
                offset = code[-1 - selector]
                same = True
                for k in range(length):
                    if pool[offset + k] != out[start + k]:
                        same = False
                        break
                if same:
                    return trim(out, int(arguments[a, 0]), int(arguments[a, 1]))
    return 0, 0


@kernel
def put_number(tables, out, o, room, start, end):  # type: ignore[no-untyped-def]
    """Writes the number out[start:end] with its digits grouped; other text as it is; -1 without room."""
    settings = tables.settings
    i = start
    digits = 0
    while i < end and not is_digit(out[i]):
        i += 1
    first = i
    while i < end and is_digit(out[i]):
        i += 1
    digits = i - first
    if o + (end - start) + digits * 2 > room:
        return -1
    for k in range(start, first):
        out[o] = out[k]
        o += 1
    for k in range(first, first + digits):
        left = first + digits - k
        if k > first and left % 3 == 0 and digits >= settings[SETTING_GROUP_FROM]:
            for m in range(settings[SETTING_GROUP_LENGTH]):
                out[o] = tables.pool[settings[SETTING_GROUP_OFFSET] + m]
                o += 1
        out[o] = out[k]
        o += 1
    k = first + digits
    if digits > 0 and k < end and out[k] == 46:
        for m in range(settings[SETTING_DECIMAL_LENGTH]):
            out[o] = tables.pool[settings[SETTING_DECIMAL_OFFSET] + m]
            o += 1
        k += 1
    while k < end:
        out[o] = out[k]
        o += 1
        k += 1
    return o


@kernel
def put_cased(tables, out, o, room, start, end, upper, whole):  # type: ignore[no-untyped-def]
    """Writes out[start:end] in upper or lower case, all of it or its first letter; -1 without room."""
    if o + (end - start) > room:
        return -1
    i = start
    while i < end:
        c = out[i]
        if whole or i == start:
            if c < 0x80:
                out[o] = tables.upper[c] if upper else tables.lower[c]
                o += 1
                i += 1
                continue
            if 0xC2 <= c < 0xD8 and i + 1 < end:
                code = ((c & 0x1F) << 6) | (out[i + 1] & 0x3F)
                if code < 0x600:
                    o = put_code_point(out, o, np.int64(tables.upper[code] if upper else tables.lower[code]))
                    i += 2
                    continue
        out[o] = c
        o += 1
        i += 1
    return o


@kernel
def put_formatted(tables, form, out, o, room, start, end):  # type: ignore[no-untyped-def]
    """Writes out[start:end] under one of the formats FORMAT_*; -1 without room."""
    if form == FORMAT_NUMBER:
        return put_number(tables, out, o, room, start, end)
    if form in (FORMAT_LOWER, FORMAT_UPPER):
        return put_cased(tables, out, o, room, start, end, form == FORMAT_UPPER, True)
    if form in (FORMAT_FIRST_UPPER, FORMAT_FIRST_LOWER):
        return put_cased(tables, out, o, room, start, end, form == FORMAT_FIRST_UPPER, False)
    if form == FORMAT_INTEGER:
        while start < end - 1 and out[start] == 48:
            start += 1
    if form == FORMAT_SUPERSCRIPT:
        if o + 3 * (end - start) > room:
            return -1
        k = start
        while k < end:
            if out[k] == 0xE2 and k + 2 < end and out[k + 1] == 0x88 and out[k + 2] == 0x92:  # U+2212
                o = put_code_point(out, o, np.int64(0x207B))
                k += 3
            else:
                o = put_superscript(out, o, out[k])
                k += 1
        return o
    if form >= FORMAT_TABLES:
        row = find(tables, np.int64(DOMAIN_TABLES + form - FORMAT_TABLES), out, start, end)
        if row >= 0:
            offset = tables.words[row, 4]
            length = tables.words[row, 5]
            if o + length > room:
                return -1
            for k in range(length):
                out[o + k] = tables.pool[offset + k]
            return o + length
    if o + (end - start) > room:
        return -1
    for k in range(start, end):
        out[o] = out[k]
        o += 1
    return o


@kernel
def evaluate(tables, program, arguments, first, last, out, o, room, title, flags):  # type: ignore[no-untyped-def]
    """Runs a rule's program and writes its text at out[o:room]; the new end, or -1 without room."""
    code = tables.code
    pool = tables.pool
    pc = program
    while True:
        op = code[pc]
        if op == OP_END:
            return o
        if op == OP_LITERAL:
            offset = code[pc + 1]
            length = code[pc + 2]
            if o + length > room:
                return -1
            for k in range(length):
                out[o + k] = pool[offset + k]
            o += length
            pc += 3
        elif op == OP_VALUE:
            form = code[pc + 1]
            count = code[pc + 2]
            for k in range(count):
                start, end = find_argument(code[pc + 3 + k], arguments, first, last, out, pool, code)
                if end > start:
                    o = put_formatted(tables, form, out, o, room, start, end)
                    if o < 0:
                        return -1
                    break
            pc += 3 + count
        elif op == OP_TEST:
            count = code[pc + 2]
            found = False
            for k in range(count):
                start, end = find_argument(code[pc + 3 + k], arguments, first, last, out, pool, code)
                if end > start:
                    found = True
                    break
            if found:
                pc += 3 + count
            else:
                pc = code[pc + 1]
        elif op == OP_ABSENT:
            start, end = find_argument(code[pc + 2], arguments, first, last, out, pool, code)
            if end > start:
                pc = code[pc + 1]
            else:
                pc += 3
        elif op == OP_EQUAL:
            start, end = find_argument(code[pc + 2], arguments, first, last, out, pool, code)
            offset = code[pc + 3]
            same = end - start == code[pc + 4]
            if same:
                for k in range(end - start):
                    if tables.fold[out[start + k]] != pool[offset + k]:
                        same = False
                        break
            if same:
                pc += 5
            else:
                pc = code[pc + 1]
        elif op == OP_IN_TABLE:
            start, end = find_argument(code[pc + 2], arguments, first, last, out, pool, code)
            if end > start and find(tables, np.int64(code[pc + 3]), out, start, end) >= 0:
                pc += 4
            else:
                pc = code[pc + 1]
        elif op == OP_JUMP:
            pc = code[pc + 1]
        elif op == OP_JOIN:
            total = 0
            for a in range(first, last):
                if arguments[a, 4] > total and arguments[a, 4] < MAX_ARGUMENTS:
                    start, end = trim(out, int(arguments[a, 0]), int(arguments[a, 1]))
                    if end > start:
                        total = arguments[a, 4]
            written = 0
            # Positional arguments stand in their order in almost every call, so one sweep over them is enough.
            for a in range(first, last):
                number = arguments[a, 4]
                if number < code[pc + 1] or (number - code[pc + 1]) % code[pc + 2] != 0:
                    continue
                start, end = trim(out, int(arguments[a, 0]), int(arguments[a, 1]))
                if end <= start:
                    continue
                offset = code[pc + 3]
                length = code[pc + 4]
                if number == total:
                    offset = code[pc + 5]
                    length = code[pc + 6]
                if o + length + (end - start) > room:
                    return -1
                if written > 0:
                    for k in range(length):
                        out[o + k] = pool[offset + k]
                    o += length
                for k in range(start, end):
                    out[o] = out[k]
                    o += 1
                written += 1
            pc += 7
        elif op == OP_AGE:
            settings = tables.settings
            start, end = find_argument(code[pc + 1], arguments, first, last, out, pool, code)
            year = read_integer(out, start, end)
            start, end = find_argument(code[pc + 2], arguments, first, last, out, pool, code)
            month = read_integer(out, start, end)
            start, end = find_argument(code[pc + 3], arguments, first, last, out, pool, code)
            day = read_integer(out, start, end)
            to_year = settings[SETTING_YEAR]
            to_month = settings[SETTING_MONTH]
            to_day = settings[SETTING_DAY]
            if code[pc + 4] != 0:
                start, end = find_argument(code[pc + 4], arguments, first, last, out, pool, code)
                to_year = read_integer(out, start, end)
                start, end = find_argument(code[pc + 5], arguments, first, last, out, pool, code)
                to_month = read_integer(out, start, end)
                start, end = find_argument(code[pc + 6], arguments, first, last, out, pool, code)
                to_day = read_integer(out, start, end)
            if year >= 0 and to_year >= year:
                age = to_year - year
                if month > 0 and to_month > 0 and (to_month < month or (to_month == month and to_day < day)):
                    age -= 1
                if age >= 0:
                    if o + 12 > room:
                        return -1
                    o = put_integer(out, o, age)
            pc += 7
        elif op == OP_FLAG:
            if (flags & code[pc + 2] != 0) == (code[pc + 3] != 0):
                pc += 4
            else:
                pc = code[pc + 1]
        elif op == OP_TITLE:
            if o + len(title) > room:
                return -1
            for k in range(len(title)):
                out[o + k] = title[k]
            o += len(title)
            pc += 1
        else:
            return o


@kernel
def close_argument(arguments, a, out, o, position):  # type: ignore[no-untyped-def]
    """Ends argument `a` at output position o. `position` is the number it has if it is unnamed; returns the next."""
    arguments[a, 1] = o
    if arguments[a, 2] < 0:
        arguments[a, 4] = position
        return position + 1
    start, end = trim(out, int(arguments[a, 2]), int(arguments[a, 3]))
    arguments[a, 2] = start
    arguments[a, 3] = end
    arguments[a, 4] = read_integer(out, start, end)
    return position


@kernel
def where_called(out, line_start, start, blank):  # type: ignore[no-untyped-def]
    """FLAG_* of a template whose text goes to `start`, its line's text starting at line_start.

    blank: whether nothing but white space and marks stands between the two.
    """
    flags = FLAG_START if blank else 0
    closed = 0
    i = start - 1
    stop = max(line_start, start - 200)
    while i >= stop and out[i] != _NEWLINE:
        c = out[i]
        if c == 41 or (c == 0x89 and i >= 2 and out[i - 1] == 0xBC and out[i - 2] == 0xEF):
            closed += 1
        elif c == 40 or (c == 0x88 and i >= 2 and out[i - 1] == 0xBC and out[i - 2] == 0xEF):
            if closed == 0:
                flags |= FLAG_BRACKET
                break
            closed -= 1
        i -= 1
    return flags


@kernel
def find_template(text, start, end, tables):  # type: ignore[no-untyped-def]
    """(program, where the arguments start) of the template call whose content is text[start:end]; -1 if no rule.

    The program is found under the name up to the first `|`, or for a parser function up to the first `:`. A
    namespace prefix and `subst:` are passed over.
    """
    words = tables.words
    while start < end and (text[start] == _SPACE or text[start] == _NEWLINE or text[start] == 9 or text[start] == 95):
        start += 1
    j = start
    colons = 0
    stop = min(end, start + MAX_TARGET)
    while j < stop:
        c = text[j]
        if c == 124 or c == 123 or c == 91 or c == 60:
            break
        if c == 58 and colons < MAX_COLONS:
            colons += 1
            row = find(tables, np.int64(DOMAIN_FUNCTION), text, start, j)
            if row >= 0:
                return words[row, 4], j
            row = find(tables, np.int64(DOMAIN_NAMESPACE), text, start, j)
            if row >= 0 and words[row, 4] == NAMESPACE_TEMPLATE:
                start = j + 1
        j += 1
    if j >= stop and j < end:
        return -1, j
    name_end = j
    while name_end > start and (is_blank(text[name_end - 1]) or text[name_end - 1] == 95):
        name_end -= 1
    while start < name_end and is_blank(text[start]):
        start += 1
    row = find(tables, np.int64(DOMAIN_TEMPLATE), text, start, name_end)
    if row < 0:
        return -1, j
    if words[row, 5] != 0:
        # A name whose case matters.
        offset = words[row, 5] - 1
        for k in range(name_end - start):
            if tables.pool[offset + k] != text[start + k]:
                return -1, j
    return words[row, 4], j
