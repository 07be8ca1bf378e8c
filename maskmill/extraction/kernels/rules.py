"""Evaluates the rules of templates: finds a call's program, and runs it over the call's arguments.

The arguments of a call are already rendered, one after another in the output, and the program writes after them;
`render` then moves what it wrote to where the call starts.

A function that writes takes the output's end `o` and returns the new one, or -1 if there is no room up to `room`, or if
the rule does not say what such a call shows: then the call gives nothing, and counts as one without a rule.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.characters.kernels.characters import code_at, put_code_point
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.chemistry import put_chemistry
from maskmill.extraction.kernels.formula import put_formula
from maskmill.extraction.kernels.quantities import (
    default_precision,
    put_decimal,
    read_decimal,
    read_unit,
    rounds_to_zero,
)
from maskmill.extraction.kernels.tables import Tables, find, find_in_table, record
from maskmill.extraction.kernels.tags import skip_comment
from maskmill.extraction.kernels.text import (
    HOLES,
    MINUS_SIGN,
    SUPERSCRIPT_MINUS,
    byte_set,
    copy,
    find_any,
    is_alphanumeric,
    is_blank,
    is_capital,
    is_digit,
    put_byte,
    put_integer,
    put_superscript,
    put_word,
    read_integer,
    skip_any,
    skip_back,
    three_bytes,
    trim,
    utf8,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

MAX_ARGUMENTS = 4096  # of all calls that are open at once
EXACT_LENGTHS = (2, 3)  # of names whose case matters
BEFORE_NAMES = byte_set(b" \n\t_")
NAME_ENDS = byte_set(b"|{[<")
MAX_COLONS = 4  # prefixes tried in a template's name
MOST_MONTHS, MOST_DAYS = 12, 31
LONGEST_AGE = 12  # bytes of output that an age may take
GROUP = 3  # digits between two thousands separators
LONGEST_SYMBOL = 32  # bytes
LONGEST_QUANTITIES = 200  # bytes that a value may take in other units, names included
LONGEST_UNITS = 24  # bytes of the names of units that a call of {{convert}} asks for
MINUS = ord("−")
SPACE = byte_set(b" ")
LONGEST_START = 4  # bytes of the keys that an argument is tested to start with
FIRST_LETTERS, LAST_LETTERS = 0xC3, 0xDF  # first bytes of UTF-8 that has two, without those of signs
BRACKET_DISTANCE = 200  # bytes before a call in which an open bracket is looked for

# An argument of a call: where its value stands in the output, where its name does (-1: it has none), and its number,
# which is what its name says or its place among those without a name (-1: the name is not a number).
ARGUMENT = record(np.int32, "start end name_start name_end number")

# Digits, and characters beyond ASCII: other scripts have their own digits.
DIGITS = byte_set(b"0123456789" + bytes(range(ascii.NOT_ASCII, 256)))

FULLWIDTH_OPEN_PAREN = utf8("（")
FIRST_ARROW, LAST_ARROW = utf8("←"), utf8("⇿")
FULLWIDTH_CLOSE_PAREN = utf8("）")


class Call(NamedTuple):
    """A template call whose rule is evaluated: its arguments are the rows [first, last) of `arguments`."""

    tables: Tables
    arguments: NDArray[np.void]  # ARGUMENT[MAX_ARGUMENTS]
    first: int
    last: int
    out: NDArray[np.uint8]
    room: int  # the rule may write up to here
    title: NDArray[np.uint8]  # the page's
    flags: int  # FLAG_*
    counts: NDArray[np.int64]  # [COUNTS]


@inlined_kernel
def has_name(call, a, place):
    """Return True if the name of argument `a` is the one whose offset in the pool and length stand at `place` in the
    code.
    """
    argument = call.arguments[a]
    offset = call.tables.code[place]
    length = call.tables.code[place + 1]
    if argument.name_start < 0 or argument.name_end - argument.name_start != length:
        return False
    for k in range(length):
        if call.tables.pool[offset + k] != call.out[argument.name_start + k]:
            return False
    return True


@lean_kernel
def value_of(call, a):
    """Return (start, end) in the output of the value of argument `a`, trimmed, but with the holes at its ends.

    A value that is nothing but a hole is empty, and counted.
    """
    first, last = np.int64(call.arguments[a].start), np.int64(call.arguments[a].end)
    start, end = trim(call.out, first, last)
    if start == end:
        call.counts[codes.COUNT_MISSING] += find_any(call.out, first, last, HOLES) < last
        return start, end
    start = find_any(call.out, first, start, HOLES)
    return start, last if find_any(call.out, end, last, HOLES) < last else end


@lean_kernel
def find_argument(call, selector):
    """Return (start, end) in the output of the argument a selector names, trimmed; an empty range if it is not given.

    A selector is a number from 1, or minus one minus the place in `code` where the offset and the length of the
    argument's name stand. The last argument of a name counts.
    """
    for a in range(call.last - 1, call.first - 1, -1):
        if call.arguments[a].number == selector if selector > 0 else has_name(call, a, -1 - selector):
            return value_of(call, a)
    return 0, 0


@lean_kernel
def read_argument(call, selector):
    """Return the integer that an argument is; -1 if it is not one."""
    start, end = find_argument(call, selector)
    return read_integer(call.out, start, end)


@inlined_kernel
def put_number(tables, out, o, room, start, end):
    """Write the number out[start:end] with its digits grouped; other text as it is; return -1 without room."""
    settings = tables.settings
    first = start
    while first < end and not is_digit(out[first]):
        first += 1
    after = first
    while after < end and is_digit(out[after]):
        after += 1
    digits = after - first
    if o + (end - start) + digits * 2 > room:
        return -1
    o = copy(out, start, first, out, o)
    for k in range(first, after):
        if k > first and (after - k) % GROUP == 0 and digits >= settings[codes.SETTING_GROUP_FROM]:
            separator = settings[codes.SETTING_GROUP_OFFSET]
            o = copy(tables.pool, separator, separator + settings[codes.SETTING_GROUP_LENGTH], out, o)
        o = put_byte(out, o, out[k])
    if digits > 0 and after < end and out[after] == ascii.PERIOD:
        separator = settings[codes.SETTING_DECIMAL_OFFSET]
        o = copy(tables.pool, separator, separator + settings[codes.SETTING_DECIMAL_LENGTH], out, o)
        after += 1
    return copy(out, after, end, out, o)


@lean_kernel
def put_cased(tables, form, out, o, room, start, end):
    """Write out[start:end] in upper or lower case, all of it or its first letter; return -1 without room."""
    if o + (end - start) > room:
        return -1
    upper = form == codes.FORMAT_UPPER or form == codes.FORMAT_FIRST_UPPER
    whole = form == codes.FORMAT_UPPER or form == codes.FORMAT_LOWER
    i = start
    while i < end:
        code, size = code_at(out, i)
        if (whole or i == start) and code < codes.CASED:
            o = put_code_point(out, o, np.int64(tables.upper[code] if upper else tables.lower[code]))
        else:
            o = copy(out, i, i + size, out, o)
        i += size
    return o


@inlined_kernel
def put_exponent(out, o, room, start, end):
    """Write out[start:end] with its digits and signs as superscript characters; return -1 without room."""
    if o + 3 * (end - start) > room:
        return -1
    k = start
    while k < end:
        if k + 2 < end and three_bytes(out, k) == MINUS_SIGN:
            o = put_code_point(out, o, np.int64(SUPERSCRIPT_MINUS))
            k += 3
        else:
            o = put_superscript(out, o, out[k])
            k += 1
    return o


@lean_kernel
def title_end(out, start, end):
    """Return the end of the page's title out[start:end] without the hyphen or the bracket that it ends with.

    The bracket tells pages of one name apart, and the hyphen says that the title is no link.
    """
    last = out[end - 1]
    if last == ascii.HYPHEN:
        return end - 1
    if last == ascii.CLOSE_PAREN:
        for i in range(end - 2, start, -1):
            if out[i] == ascii.OPEN_PAREN:
                return skip_back(out, i, start, ascii.SPACE)
    return end


@lean_kernel
def starts_with_key(call, table, start, end):
    """Return True if the argument out[start:end] starts with a key of a table of the rules."""
    for i in range(start + 1, min(end, start + LONGEST_START) + 1):
        if find_in_table(call.tables, table, call.out, start, i) >= 0:
            return True
    return False


@lean_kernel
def put_formatted(tables, form, out, o, room, start, end):
    """Write out[start:end] under one of the formats FORMAT_*; return -1 without room, or if the text does not fit
    it.
    """
    if form == codes.FORMAT_SURE_NUMBER or form == codes.FORMAT_NUMERAL or form == codes.FORMAT_EXPONENT:
        if find_any(out, start, end, DIGITS) == end or (
            form == codes.FORMAT_NUMERAL and out[start] == ascii.OPEN_PAREN
        ):
            return -1
        if form == codes.FORMAT_NUMERAL and (out[start] == ascii.PLUS or out[start] == ascii.HYPHEN):
            start += 1
    if form == codes.FORMAT_NUMBER or form == codes.FORMAT_SURE_NUMBER:
        return put_number(tables, out, o, room, start, end)
    if codes.FORMAT_LOWER <= form <= codes.FORMAT_FIRST_LOWER:
        return put_cased(tables, form, out, o, room, start, end)
    if form == codes.FORMAT_SUPERSCRIPT or form == codes.FORMAT_EXPONENT:
        return put_exponent(out, o, room, start, end)
    if form == codes.FORMAT_CHEMISTRY:
        return put_chemistry(out, start, end, out, o, room)
    if form == codes.FORMAT_FORMULA:
        # The formula's text is at most twice as long, but for its last symbol.
        return -1 if o + 2 * (end - start) + LONGEST_SYMBOL > room else put_formula(out, start, end, out, o, tables)
    if form == codes.FORMAT_TITLE:
        end = title_end(out, start, end)
    if form == codes.FORMAT_INTEGER:
        while start < end - 1 and out[start] == ascii.ZERO:
            start += 1
    if form >= codes.FORMAT_TABLES:
        row = find_in_table(tables, codes.DOMAIN_TABLES + form - codes.FORMAT_TABLES, out, start, end)
        if row >= 0:
            return -1 if o + tables.words[row].second > room else put_word(tables, row, out, o)
    if o + (end - start) > room:
        return -1
    return copy(out, start, end, out, o)


@inlined_kernel
def put_literal(call, offset, length, o):
    """Write a string of the pool."""
    if o + length > call.room:
        return -1
    return copy(call.tables.pool, offset, offset + length, call.out, o)


@lean_kernel
def first_given(call, place):
    """Return (start, end) in the output of the first of some arguments that is not empty; an empty range if all are.

    Their number and their selectors stand at `place` in the code.
    """
    code = call.tables.code
    for k in range(code[place]):
        start, end = find_argument(call, code[place + 1 + k])
        if end > start:
            return start, end
    return 0, 0


@inlined_kernel
def put_value(call, pc, o):
    """OP_VALUE: writes the first of some arguments that is not empty."""
    start, end = first_given(call, pc + 2)
    if end <= start:
        return o
    return put_formatted(call.tables, call.tables.code[pc + 1], call.out, o, call.room, start, end)


@inlined_kernel
def last_number(call):
    """Return the highest number of an argument that is not empty; 0 if there is none."""
    highest = np.int64(0)
    for a in range(call.first, call.last):
        number = np.int64(call.arguments[a].number)
        if highest < number < MAX_ARGUMENTS:
            start, end = trim(call.out, np.int64(call.arguments[a].start), np.int64(call.arguments[a].end))
            if end > start:
                highest = number
    return highest


@inlined_kernel
def put_joined(call, pc, o):
    """OP_JOIN: writes the numbered arguments that are not empty, with separators between them."""
    code = call.tables.code
    out = call.out
    from_number = code[pc + 1]
    step = code[pc + 2]
    last = last_number(call)
    is_first = True
    # Positional arguments stand in their order in almost every call, so one sweep over them is enough.
    for a in range(call.first, call.last):
        number = call.arguments[a].number
        if number < from_number or (number - from_number) % step != 0:
            continue
        start, end = value_of(call, a)
        if end <= start:
            continue
        place = pc + 5 if number == last else pc + 3
        separator, length = np.int64(code[place]), np.int64(code[place + 1])
        if o + length + (end - start) > call.room:
            return -1
        if not is_first:
            o = copy(call.tables.pool, separator, separator + length, out, o)
        o = copy(out, start, end, out, o)
        is_first = False
    return o


@inlined_kernel
def put_age(call, pc, o):
    """OP_AGE: writes the full years between two dates; nothing if one of the years is missing.

    -1 for what is not a date, such as a day in the place of the year.
    """
    code = call.tables.code
    settings = call.tables.settings
    year = read_argument(call, code[pc + 1])
    month = read_argument(call, code[pc + 2])
    day = read_argument(call, code[pc + 3])
    to_year = settings[codes.SETTING_YEAR]
    to_month = settings[codes.SETTING_MONTH]
    to_day = settings[codes.SETTING_DAY]
    if code[pc + 4] != 0:
        to_year = read_argument(call, code[pc + 4])
        to_month = read_argument(call, code[pc + 5])
        to_day = read_argument(call, code[pc + 6])
    if max(month, to_month) > MOST_MONTHS or max(day, to_day) > MOST_DAYS:
        return -1
    if year < 0 or to_year < year:
        return o
    age = to_year - year
    if month > 0 and to_month > 0 and (to_month < month or (to_month == month and to_day < day)):
        age -= 1
    if age < 0:
        return o
    return -1 if o + LONGEST_AGE > call.room else put_integer(call.out, o, age)


@lean_kernel
def result_of(call, table, value, unit, target):
    """Return (value in the other unit, digits after the point that it has, whether it is known); each pair is a range
    of out.

    table: of the units.
    """
    out = call.out
    number, decimals, zeros, known = read_decimal(out, value[0], value[1])
    kind, size, zero, _ = read_unit(call.tables, table, out, unit[0], unit[1])
    to_kind, to_size, to_zero, precise = read_unit(call.tables, table, out, target[0], target[1])
    if not known or kind == 0 or kind != to_kind:
        return 0.0, 0, False
    result = (number * size + zero - to_zero) / to_size
    return result, default_precision(number, decimals, zeros, abs(result), kind, size, zero, precise), True


@lean_kernel
def put_name(call, table, singular, out, o, start, end, number):
    """Write a space and what a table names the unit out[start:end], after the number that starts at `number`."""
    row = find_in_table(call.tables, table, out, start, end)
    if singular > 0 and o - number == 1 and out[number] == ascii.ONE:
        row = find_in_table(call.tables, singular, out, start, end)
        if row < 0:
            return -1
    glued = row >= 0 and call.tables.pool[call.tables.words[row].value] == ascii.SLASH
    if not glued:
        o = put_byte(out, o, ascii.SPACE)
    return put_word(call.tables, row, out, o) if row >= 0 else copy(out, start, end, out, o)


@lean_kernel
def put_quantity(call, pc, o, target):
    """Write the value of OP_CONVERTED at pc in one unit, whose name is the range `target` of out; return -1 if it
    cannot.
    """
    code = call.tables.code
    unit = find_argument(call, code[pc + 4])
    factors = np.int64(code[pc + 7])
    value = find_argument(call, code[pc + 2])
    result, precision, known = result_of(call, factors, value, unit, target)
    if not known:
        return -1
    if code[pc + 3] != 0:
        _, other, known = result_of(call, factors, find_argument(call, code[pc + 3]), unit, target)
        if not known:
            return -1
        precision = max(precision, other)
    asked, _, _, is_asked = asked_precision(call, pc)
    if is_asked:
        precision = np.int64(asked)
    if result < 0 and not rounds_to_zero(result, precision):
        o = put_code_point(call.out, o, np.int64(MINUS))
    raw = o
    o = put_decimal(call.out, o, abs(result), precision)
    if o < 0:
        return -1
    after = put_number(call.tables, call.out, o, call.room, raw, o)
    if after < 0:
        return -1
    o = copy(call.out, o, after, call.out, raw)
    if code[pc + 9] == 0:
        return o
    return put_name(call, np.int64(code[pc + 9]), np.int64(code[pc + 10]), call.out, o, target[0], target[1], raw)


@lean_kernel
def asked_precision(call, pc):
    """Return what read_decimal gives for the precision that a call of {{convert}} names, before or instead of the
    unit.
    """
    code = call.tables.code
    start, end = find_argument(call, code[pc + 5])
    asked = read_decimal(call.out, start, end)
    if asked[3]:
        return asked
    start, end = find_argument(call, code[pc + 6])
    return read_decimal(call.out, start, end)


@lean_kernel
def put_converted(call, pc, o):
    """OP_CONVERTED: writes a value in one or several other units, with `; ` between them; -1 if it cannot."""
    code = call.tables.code
    out, tables = call.out, call.tables
    if o + 2 * LONGEST_QUANTITIES > call.room:
        return -1
    first, last = find_argument(call, code[pc + 5])
    if last <= first or read_decimal(out, first, last)[3]:
        start, end = find_argument(call, code[pc + 4])
        row = find_in_table(tables, np.int64(code[pc + 8]), out, start, end)
        if row < 0:
            return -1
        first, last = o, put_word(tables, row, out, o)
    if last - first > LONGEST_UNITS:
        return -1
    # What is written goes after the names of the units, and is moved then.
    w = begin = max(o, last)
    while first < last:
        stop = find_any(out, first, last, SPACE)
        if w > begin:
            w = put_byte(out, put_byte(out, w, ascii.SEMICOLON), ascii.SPACE)
        w = put_quantity(call, pc, w, (np.int64(first), np.int64(stop)))
        if w < 0:
            return -1
        first = skip_any(out, stop, last, SPACE)
    return copy(out, begin, w, out, o)


@inlined_kernel
def is_equal(call, start, end, offset, length):
    """Return True if the argument out[start:end] is a string of the pool, in any case."""
    if end - start != length:
        return False
    for k in range(length):
        if call.tables.fold[call.out[start + k]] != call.tables.pool[offset + k]:
            return False
    return True


@inlined_kernel
def after_test(call, op, pc):
    """Return where the program goes on after a test or a jump at `pc`."""
    code = call.tables.code
    holds = False
    size = np.int64(3)
    if op == codes.OP_TEST or op == codes.OP_SHOWN:
        start, end = first_given(call, pc + 2)
        holds = end > start or (op == codes.OP_SHOWN and call.last == call.first)
        size = 3 + np.int64(code[pc + 2])
    elif op == codes.OP_FLAG:
        holds = (call.flags & code[pc + 2] != 0) == (code[pc + 3] != 0)
        size = np.int64(4)
    elif op == codes.OP_KNOWN:
        holds = last_number(call) <= code[pc + 2]
    elif op != codes.OP_JUMP:
        start, end = find_argument(call, code[pc + 2])
        if op == codes.OP_ABSENT:
            holds = end <= start
        elif op == codes.OP_WORD:
            holds = end <= start or not ascii.PLUS <= call.out[start] <= ascii.NINE or call.out[start] == ascii.SLASH
        elif op == codes.OP_IN_TABLE:
            holds = end > start and find_in_table(call.tables, np.int64(code[pc + 3]), call.out, start, end) >= 0
            size = np.int64(4)
        elif op == codes.OP_STARTS:
            holds = starts_with_key(call, np.int64(code[pc + 3]), start, end)
            size = np.int64(4)
        else:  # OP_EQUAL
            holds = is_equal(call, start, end, code[pc + 3], code[pc + 4])
            size = np.int64(5)
    return pc + size if holds else np.int64(code[pc + 1])


@inlined_kernel
def evaluate(call, program, o):
    """Run a rule's program, which starts at `program` in the code."""
    code = call.tables.code
    pc = program
    while o >= 0 and pc >= 0:
        op = code[pc]
        if op == codes.OP_END:
            return o
        if op == codes.OP_UNKNOWN:
            return -1
        if op == codes.OP_LITERAL:
            o = put_literal(call, np.int64(code[pc + 1]), np.int64(code[pc + 2]), o)
            pc += 3
        elif op == codes.OP_VALUE:
            o = put_value(call, pc, o)
            pc += 3 + code[pc + 2]
        elif op == codes.OP_JOIN:
            o = put_joined(call, pc, o)
            pc += 7
        elif op == codes.OP_AGE:
            o = put_age(call, pc, o)
            pc += 7
        elif op == codes.OP_CONVERTED:
            o = put_converted(call, pc, o)
            pc += 11
        elif op == codes.OP_CONVERTIBLE:
            pc = pc + 11 if put_converted(call, pc, o) >= 0 else np.int64(code[pc + 1])
        elif op == codes.OP_TITLE:
            o = -1 if o + len(call.title) > call.room else copy(call.title, np.int64(0), len(call.title), call.out, o)
            pc += 1
        else:
            pc = after_test(call, op, pc)
    return o


@inlined_kernel
def open_argument(arguments, a, o):
    """Start argument `a` at output position o."""
    arguments[a].start = o
    arguments[a].end = o
    arguments[a].name_start = -1
    arguments[a].name_end = -1
    arguments[a].number = -1


@lean_kernel
def close_argument(arguments, a, out, o, position):
    """End argument `a` at output position o. `position` is the number it has if it is unnamed; returns the next."""
    arguments[a].end = o
    if arguments[a].name_start < 0:
        arguments[a].number = position
        return position + 1
    start, end = trim(out, np.int64(arguments[a].name_start), np.int64(arguments[a].name_end))
    arguments[a].name_start = start
    arguments[a].name_end = end
    arguments[a].number = read_integer(out, start, end)
    return position


@inlined_kernel
def ends_with_word(out, start, end):
    """Return True if a slash, an ASCII letter or digit, a letter of two bytes or an arrow ends out[start:end]."""
    if end <= start:
        return False
    last = out[end - 1]
    if last >= ascii.NOT_ASCII:
        is_arrow = end - start > 2 and FIRST_ARROW <= three_bytes(out, end - 3) <= LAST_ARROW
        return is_arrow or (end - start > 1 and FIRST_LETTERS <= out[end - 2] <= LAST_LETTERS)
    return last == ascii.SLASH or is_alphanumeric(last)


@lean_kernel
def where_called(out, line_start, start, blank):
    """Return FLAG_* of a template whose text goes to `start`, its line's text starting at line_start.

    blank: whether nothing but white space and marks stands between the two.
    """
    flags = codes.FLAG_START if blank else 0
    if ends_with_word(out, line_start, skip_back(out, start, line_start, ascii.SPACE)):
        flags |= codes.FLAG_AFTER_WORD
    closed = 0
    i = start - 1
    stop = max(line_start, start - BRACKET_DISTANCE)
    while i >= stop and out[i] != ascii.NEWLINE:
        c = three_bytes(out, i - 2) if out[i] >= ascii.NOT_ASCII and i >= 2 else np.int64(out[i])
        if c == ascii.CLOSE_PAREN or c == FULLWIDTH_CLOSE_PAREN:
            closed += 1
        elif c == ascii.OPEN_PAREN or c == FULLWIDTH_OPEN_PAREN:
            if closed == 0:
                flags |= codes.FLAG_BRACKET
                break
            closed -= 1
        i -= 1
    return flags


@inlined_kernel
def find_name(tables, text, start, end):
    """Return the row of `words` of the template with the name text[start:end]; -1 if there is none."""
    if end - start in EXACT_LENGTHS and is_capital(text[end - 1]):
        row = find(tables, codes.DOMAIN_EXACT_TEMPLATE, text, start, end)
        if row >= 0:
            return row
    return find(tables, codes.DOMAIN_TEMPLATE, text, start, end)


@lean_kernel
def find_template(text, start, end, tables):
    """Return (program, where its arguments start, its name's first byte, one past its last) of the call
    text[start:end].

    text[start:end] is what stands between the braces. The program is -1 if there is no rule. It is found under the
    name up to the first `|`, or for a parser function up to the first `:`. A namespace prefix and `subst:` are passed
    over.
    """
    words = tables.words
    start = skip_any(text, start, end, BEFORE_NAMES)
    while start < end and text[start] == ascii.LESS_THAN and skip_comment(text, start, end) > start + 1:
        start = skip_any(text, skip_comment(text, start, end), end, BEFORE_NAMES)
    j = start
    colons = 0
    stop = min(end, start + codes.MAX_TARGET)
    while j < stop:
        c = text[j]
        if NAME_ENDS[c]:
            break
        if c == ascii.COLON and colons < MAX_COLONS:
            colons += 1
            row = find(tables, codes.DOMAIN_FUNCTION, text, start, j)
            if row >= 0:
                return np.int64(words[row].value), j, start, j
            row = find(tables, codes.DOMAIN_NAMESPACE, text, start, j)
            if row >= 0 and words[row].value == codes.NAMESPACE_TEMPLATE:
                start = j + 1
        j += 1
    if j >= stop and j < end:
        return -1, j, start, start
    name_end = j
    while name_end > start and (is_blank(text[name_end - 1]) or text[name_end - 1] == ascii.UNDERSCORE):
        name_end -= 1
    while start < name_end and is_blank(text[start]):
        start += 1
    row = find_name(tables, text, start, name_end)
    if row < 0:
        return -1, j, start, name_end
    return np.int64(words[row].value), j, start, name_end
