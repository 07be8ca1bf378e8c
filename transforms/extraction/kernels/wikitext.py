"""Wikitext to plain text, compiled: three linear passes over one page's bytes.

`structure` finds every construct that has a closing mark (templates, links, tables, comments, extension tags) and
pairs openers with closers on a stack, so that the next pass knows at an opener whether and where it is closed.
`render` walks the text once from left to right, copies what is prose, jumps over what is dropped, and evaluates
the template rules. `clean` collapses white space and repairs punctuation next to what was dropped.

Arrays
- text: uint8[n + PADDING], the page's UTF-8, then zeros, so that looking a few bytes ahead needs no bounds check.
- events: int32[m, 6], one row a possible construct, in order of position: first byte, one past its last byte (-1
  when it is never closed), kind (EVENT_*), first byte of its content, one past the content, kind of tag.
- Tables.words: int32[capacity, 6], one open-addressing hash table for every set of names: hash, domain (DOMAIN_*, 0
  for an empty row), key offset and length in the pool, value, value length. Tables.pool: uint8, all strings.
- Tables.code: int32, the programs of the template rules (transforms.template_rules compiles them, OP_*).
- frames: int32[MAX_FRAMES, 8], the constructs being rendered: kind, end of content, where to go on, start in the
  output, rule, first argument, current argument, spare.
- arguments: int32[MAX_ARGUMENTS, 5]: value start and end in the output, name start and end (or -1), number (or -1).

Bounds: every byte read makes at most two bytes of output outside template rules, a rule gives at most its arguments'
bytes plus RULE_SLACK, and rules nest at most MAX_RULE_DEPTH deep, so time and memory grow linearly with the page.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transforms.kernels import kernel

PADDING = 64
MAX_FRAMES = 256
MAX_ARGUMENTS = 4096
MAX_RULE_DEPTH = 24
RULE_SLACK = 512
ROOM = 65536  # bytes of output beyond two a byte of the page: room for what rules add
MAX_RUN = 8  # braces or brackets of one run that can open something; more are literal
MAX_FORMULA = 2000  # bytes of TeX that are turned into text
MAX_GROUPS = 32  # nested groups in a formula
MAX_VARIANTS = 8  # `-{` open at once
MAX_COLONS = 4  # prefixes tried in a template's name
MAX_TARGET = 512  # bytes looked at for a link's target or a template's name

# What was dropped leaves this byte in the output until `clean` has repaired the punctuation around it.
MARK = 1

DOMAIN_TAG = 1
DOMAIN_TEMPLATE = 2
DOMAIN_FUNCTION = 3
DOMAIN_NAMESPACE = 4
DOMAIN_ENTITY = 5  # keys are case-sensitive
DOMAIN_SECTION = 6
DOMAIN_SWITCH = 7
DOMAIN_VARIANT = 8
DOMAIN_DISAMBIGUATION = 9
DOMAIN_TEX = 10  # case-sensitive, too
DOMAIN_HIDDEN = 11
DOMAIN_TABLES = 16  # table i of the rules is domain DOMAIN_TABLES + i

EVENT_TEMPLATE = 1
EVENT_PARAMETER = 2
EVENT_LINK = 3
EVENT_EXTERNAL = 4
EVENT_TABLE = 5
EVENT_RAW = 6
EVENT_COMMENT = 7
EVENT_VARIANT = 8

TAG_HIDDEN = 1  # extension tag whose content is dropped
TAG_LITERAL = 2  # nowiki
TAG_REFERENCE = 3
TAG_TABLE = 4
TAG_INLINE = 5
TAG_BLOCK = 6
TAG_BREAK = 7
TAG_SUPERSCRIPT = 8
TAG_MATH = 9

# What a TeX command does, when it does not stand for a text.
TEX_IGNORED = -1
TEX_GROUP = -2  # its argument shows
TEX_FRACTION = -3
TEX_DELIMITER = -4  # \left and \right: the dot that stands for no delimiter does not show
TEX_TEXT = -5  # its argument is text, spaces included

GROUP_PLAIN = 0
GROUP_BRACKET = 1  # what opened it wrote a bracket
GROUP_NUMERATOR = 2
GROUP_NUMERATOR_BRACKET = 3
GROUP_TEXT = 4

NAMESPACE_FILE = 1
NAMESPACE_CATEGORY = 2
NAMESPACE_LANGUAGE = 3
NAMESPACE_OTHER = 4
NAMESPACE_TEMPLATE = 5
NAMESPACE_SITE = 6  # another wiki: its prefix does not show

STACK_BRACE = 1
STACK_BRACKET = 2
STACK_EXTERNAL = 3
STACK_TABLE = 4
STACK_VARIANT = 5
STACK_TABLE_TAG = 6  # the kinds from here on are elements
STACK_HIDDEN = 7
STACK_NESTED = 8  # an element of the same tag inside a hidden one
STACK_KINDS = 9

FRAME_RANGE = 1
FRAME_TEMPLATE = 2

LINE_PROSE = 0
LINE_BLANK = 1
LINE_ALONE = 2  # a line that is never joined with its neighbours
LINE_LIST = 3
LINE_HEADING = 4
LINE_DROPPED = 5
LINE_INDENTED = 6  # starts with a space: preformatted, so mostly code and tables drawn with characters

SHORTEST_SENTENCE = 20  # bytes that an item of a list must have to be taken for a sentence

LISTS_DROP = 0
LISTS_KEEP = 1
LISTS_SENTENCES = 2

SETTING_VARIANTS = 0
SETTING_KEEP_HEADINGS = 1
SETTING_LISTS = 2
SETTING_KEEP_APPENDICES = 3
SETTING_YEAR = 4
SETTING_MONTH = 5
SETTING_DAY = 6
SETTING_GROUP_OFFSET = 7  # the thousands separator in the pool
SETTING_GROUP_LENGTH = 8
SETTING_GROUP_FROM = 9  # digits from which numbers are grouped
SETTING_DECIMAL_OFFSET = 10
SETTING_DECIMAL_LENGTH = 11
SETTING_KEYWORDS = 12  # where `display`, `none` and `class` stand in the pool
SETTINGS = 15

OP_END = 0
OP_LITERAL = 1  # offset, length
OP_VALUE = 2  # format, count, selectors...: the first argument that is not empty
OP_TEST = 3  # jump, count, selectors...: goes on if one is not empty
OP_ABSENT = 4  # jump, selector
OP_EQUAL = 5  # jump, selector, offset, length
OP_IN_TABLE = 6  # jump, selector, domain
OP_JUMP = 7  # target
OP_JOIN = 8  # first number, step, offset and length of the separator, offset and length of the last separator
OP_AGE = 9  # selectors of year, month, day, and of the end's year, month, day (0: the dump's date)
OP_TITLE = 10
OP_FLAG = 11  # jump, bits, wanted: goes on if one of the bits of FLAG_* is set (1) or none is (0)

FLAG_START = 1  # nothing stands before the template on its line
FLAG_BRACKET = 2  # a bracket is open before it

FORMAT_PLAIN = 0
FORMAT_NUMBER = 1
FORMAT_LOWER = 2
FORMAT_UPPER = 3
FORMAT_FIRST_UPPER = 4
FORMAT_FIRST_LOWER = 5
FORMAT_SUPERSCRIPT = 6
FORMAT_INTEGER = 7  # without leading zeros
FORMAT_TABLES = 16  # + i: through table i, the value itself where the table has no such key

_NEWLINE = 10
_SPACE = 32


class Tables(NamedTuple):
    """What the kernels need to know about a site, its language and the rules; see the module's comment."""

    structure_class: NDArray[np.uint8]  # [256], 0 for bytes `structure` passes over
    render_class: NDArray[np.uint8]  # [256], 0 for bytes `render` copies
    fold: NDArray[np.uint8]  # [256], what names are compared under
    words: NDArray[np.int32]
    pool: NDArray[np.uint8]
    code: NDArray[np.int32]
    upper: NDArray[np.uint16]  # [0x600] simple case mappings
    lower: NDArray[np.uint16]  # [0x600]
    settings: NDArray[np.int64]


@kernel
def hash_bytes(fold, domain, source, start, end):  # type: ignore[no-untyped-def]
    """31-bit FNV-1a of source[start:end] under the domain's case folding."""
    value = 2166136261 ^ domain
    if domain in (DOMAIN_ENTITY, DOMAIN_TEX):
        for i in range(start, end):
            value = ((value ^ int(source[i])) * 16777619) & 0x7FFFFFFF
    else:
        for i in range(start, end):
            value = ((value ^ int(fold[source[i]])) * 16777619) & 0x7FFFFFFF
    return value


@kernel
def find(tables, domain, source, start, end):  # type: ignore[no-untyped-def]
    """The row of `words` whose key in `domain` is source[start:end], or -1."""
    words = tables.words
    pool = tables.pool
    fold = tables.fold
    capacity = words.shape[0]
    value = hash_bytes(fold, domain, source, start, end)
    length = end - start
    row = value & (capacity - 1)
    while words[row, 1] != 0:
        if words[row, 0] == value and words[row, 1] == domain and words[row, 3] == length:
            offset = words[row, 2]
            same = True
            for i in range(length):
                c = source[start + i]
                if domain != DOMAIN_ENTITY and domain != DOMAIN_TEX:
                    c = fold[c]
                if pool[offset + i] != c:
                    same = False
                    break
            if same:
                return row
        row = (row + 1) & (capacity - 1)
    return -1


@kernel
def is_letter(c):  # type: ignore[no-untyped-def]
    return (97 <= c <= 122) or (65 <= c <= 90)


@kernel
def is_digit(c):  # type: ignore[no-untyped-def]
    return 48 <= c <= 57


@kernel
def is_blank(c):  # type: ignore[no-untyped-def]
    """White space or the mark of something dropped."""
    return c == 32 or c == 10 or c == 9 or c == MARK or c == 13


@kernel
def trim(source, start, end):  # type: ignore[no-untyped-def]
    while start < end and is_blank(source[start]):
        start += 1
    while end > start and is_blank(source[end - 1]):
        end -= 1
    return start, end


@kernel
def starts_line(text, i):  # type: ignore[no-untyped-def]
    """True if only indentation stands between position i and the start of its line."""
    i -= 1
    while i >= 0 and (text[i] == 32 or text[i] == 58 or text[i] == 42 or text[i] == 35 or text[i] == 9):
        i -= 1
    return i < 0 or text[i] == _NEWLINE


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
def starts_url(text, i):  # type: ignore[no-untyped-def]
    """True if a protocol that MediaWiki links stands at i."""
    c = text[i] | 32
    if text[i] == 47:
        return text[i + 1] == 47
    if c == 104:  # http
        if (text[i + 1] | 32) == 116 and (text[i + 2] | 32) == 116 and (text[i + 3] | 32) == 112:
            j = i + 4
            if (text[j] | 32) == 115:
                j += 1
            return text[j] == 58 and text[j + 1] == 47 and text[j + 2] == 47
        return False
    if c == 102:  # ftp
        if (text[i + 1] | 32) == 116 and (text[i + 2] | 32) == 112:
            j = i + 3
            if (text[j] | 32) == 115:
                j += 1
            return text[j] == 58 and text[j + 1] == 47 and text[j + 2] == 47
        return False
    if c == 109:  # mailto
        return (
            (text[i + 1] | 32) == 97
            and (text[i + 2] | 32) == 105
            and (text[i + 3] | 32) == 108
            and (text[i + 4] | 32) == 116
            and (text[i + 5] | 32) == 111
            and text[i + 6] == 58
        )
    if c == 105:  # irc
        return (text[i + 1] | 32) == 114 and (text[i + 2] | 32) == 99 and text[i + 3] == 58
    if c == 110:  # news
        return (
            (text[i + 1] | 32) == 101 and (text[i + 2] | 32) == 119 and (text[i + 3] | 32) == 115 and text[i + 4] == 58
        )
    return False


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
def count_openers(text, n, classes):  # type: ignore[no-untyped-def]
    """One more than the constructs that can start in text[:n], as `structure` counts them."""
    room = 1
    i = 0
    while i < n:
        c = text[i]
        if classes[c] == 0:
            i += 1
        elif c == 123 or c == 91:
            j = i
            while text[j] == c:
                j += 1
            if j - i > 1:
                room += min(j - i, MAX_RUN) // 2
            elif text[j] != _SPACE and text[j] != _NEWLINE:
                room += 1
            i = j
        elif c == 60:
            if is_letter(text[i + 1]) or text[i + 1] == 33:
                room += 1
            i += 1
        elif c == 45:
            if text[i + 1] == 123:
                room += 1
            i += 1
        else:
            i += 1
    return room


@kernel
def push(stack, counts, depth, start, row):  # type: ignore[no-untyped-def]
    """Puts an opener on the stack of `structure`, its kind and its run being written there; the new depth."""
    stack[depth, 1] = start
    stack[depth, 3] = row
    counts[stack[depth, 0]] += 1
    return depth + 1


@kernel
def unwind(stack, counts, depth, to):  # type: ignore[no-untyped-def]
    """Takes openers off the stack of `structure` until `to` are left; returns `to`."""
    while depth > to:
        depth -= 1
        kind = stack[depth, 0]
        counts[kind] -= 1
        if kind in (STACK_HIDDEN, STACK_NESTED):
            counts[0] = stack[depth, 1]
    return to


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


@kernel
def structure(text, n, tables):  # type: ignore[no-untyped-def]
    """(events, number of rows used): the constructs of text[:n]; see the module's comment."""
    classes = tables.structure_class
    words = tables.words
    variants = tables.settings[SETTING_VARIANTS] != 0
    room = count_openers(text, n, classes)
    events = np.empty((room, 6), np.int32)
    # kind, first byte, openers left in the run or tag, last free event of the run; for hidden elements and those of
    # the same tag inside them the first byte's place holds one more than the next such element's place, or 0.
    stack = np.empty((room, 4), np.int32)
    counts = np.zeros(STACK_KINDS, np.int64)  # openers on the stack by kind; [0]: as above, of the innermost
    used = 0
    depth = 0
    last_newline = -1
    no_comment_end = False
    unclosed = np.zeros(256, np.bool_)  # by number of the tag: no closing tag further on
    i = 0
    while i < n:
        c = text[i]
        if classes[c] == 0:
            i += 1
            continue
        if c == _NEWLINE:
            last_newline = i
            i += 1
        elif c == 123:  # {
            j = i
            while text[j] == 123:
                j += 1
            run = j - i
            if run == 1:
                if text[i + 1] == 124 and text[i + 2] != 125 and starts_line(text, i):
                    events[used, 0] = i
                    events[used, 1] = -1
                    events[used, 2] = EVENT_TABLE
                    events[used, 5] = TAG_TABLE
                    stack[depth, 0] = STACK_TABLE
                    stack[depth, 2] = 0
                    depth = push(stack, counts, depth, i, used)
                    used += 1
                    i += 2
                else:
                    i += 1
                continue
            run = min(run, MAX_RUN)
            start = j - run
            for k in range(run // 2):
                events[used, 0] = start + 2 * k
                events[used, 1] = -1
                used += 1
            stack[depth, 0] = STACK_BRACE
            stack[depth, 2] = run
            depth = push(stack, counts, depth, start, used - 1)
            i = j
        elif c == 125:  # }
            j = i
            while text[j] == 125:
                j += 1
            run = j - i
            if (
                counts[STACK_TABLE] > 0
                and i > 0
                and text[i - 1] == 124
                and (run == 1 or run == 3 or counts[STACK_BRACE] == 0)
                and starts_line(text, i - 1)
            ):
                top = depth
                while top > 0 and stack[top - 1, 0] != STACK_TABLE:
                    kind = stack[top - 1, 0]
                    if kind == STACK_TABLE_TAG or (kind == STACK_BRACE and run != 1):
                        break
                    top -= 1
                if top > 0 and stack[top - 1, 0] == STACK_TABLE:
                    events[stack[top - 1, 3], 1] = i + 1
                    depth = unwind(stack, counts, depth, top - 1)
                    i += 1
                    run -= 1
            while run >= 2 and counts[STACK_BRACE] > 0:
                top = depth - 1
                while stack[top, 0] != STACK_BRACE:
                    top -= 1
                depth = unwind(stack, counts, depth, top + 1)
                count = 3 if stack[top, 2] >= 3 and run >= 3 else 2
                row = stack[top, 3]
                start = stack[top, 1] + stack[top, 2] - count
                events[row, 0] = start
                events[row, 1] = i + count
                events[row, 2] = EVENT_PARAMETER if count == 3 else EVENT_TEMPLATE
                events[row, 3] = start + count
                events[row, 4] = i
                stack[top, 2] -= count
                stack[top, 3] -= 1
                i += count
                run -= count
                if stack[top, 2] < 2:
                    depth = unwind(stack, counts, depth, top)
            if run >= 1 and counts[STACK_VARIANT] > 0 and text[j] == 45:
                top = depth
                while top > 0 and (stack[top - 1, 0] == STACK_BRACKET or stack[top - 1, 0] == STACK_EXTERNAL):
                    top -= 1
                if top > 0 and stack[top - 1, 0] == STACK_VARIANT:
                    depth = unwind(stack, counts, depth, top - 1)
                    row = stack[depth, 3]
                    events[row, 1] = j + 1
                    events[row, 4] = j - 1
                    j += 1
            i = j
        elif c == 91:  # [
            j = i
            while text[j] == 91:
                j += 1
            run = j - i
            if run == 1:
                if starts_url(text, j):
                    if depth > 0 and stack[depth - 1, 0] == STACK_EXTERNAL:
                        depth = unwind(stack, counts, depth, depth - 1)
                    events[used, 0] = i
                    events[used, 1] = -1
                    events[used, 2] = EVENT_EXTERNAL
                    stack[depth, 0] = STACK_EXTERNAL
                    stack[depth, 2] = 0
                    depth = push(stack, counts, depth, i, used)
                    used += 1
            else:
                run = min(run, MAX_RUN)
                start = j - run
                for k in range(run // 2):
                    events[used, 0] = start + 2 * k
                    events[used, 1] = -1
                    used += 1
                stack[depth, 0] = STACK_BRACKET
                stack[depth, 2] = run
                depth = push(stack, counts, depth, start, used - 1)
            i = j
        elif c == 93:  # ]
            j = i
            while text[j] == 93:
                j += 1
            run = j - i
            while run > 0 and depth > 0:
                top = depth - 1
                if stack[top, 0] == STACK_EXTERNAL and run == 2 and top > 0 and stack[top - 1, 0] == STACK_BRACKET:
                    depth = unwind(stack, counts, depth, top)
                    top -= 1
                if stack[top, 0] == STACK_EXTERNAL:
                    row = stack[top, 3]
                    if stack[top, 1] > last_newline:
                        events[row, 1] = i + 1
                        events[row, 3] = stack[top, 1] + 1
                        events[row, 4] = i
                        i += 1
                        run -= 1
                    depth = unwind(stack, counts, depth, top)
                elif stack[top, 0] == STACK_BRACKET and run >= 2:
                    row = stack[top, 3]
                    start = stack[top, 1] + stack[top, 2] - 2
                    events[row, 0] = start
                    events[row, 1] = i + 2
                    events[row, 2] = EVENT_LINK
                    events[row, 3] = start + 2
                    events[row, 4] = i
                    stack[top, 2] -= 2
                    stack[top, 3] -= 1
                    i += 2
                    run -= 2
                    if stack[top, 2] < 2:
                        depth = unwind(stack, counts, depth, top)
                else:
                    break
            i = j
        elif c == 60:  # <
            if text[i + 1] == 33 and text[i + 2] == 45 and text[i + 3] == 45:  # <!--
                end = -1
                if not no_comment_end:
                    j = i + 4
                    while j < n:
                        if text[j] == 62 and text[j - 1] == 45 and text[j - 2] == 45 and j - 2 >= i + 4:
                            end = j + 1
                            break
                        j += 1
                    if end < 0:
                        no_comment_end = True
                if end < 0:
                    i += 4
                else:
                    events[used, 0] = i
                    events[used, 1] = end
                    events[used, 2] = EVENT_COMMENT
                    used += 1
                    i = end
                continue
            closing = text[i + 1] == 47
            name = i + 2 if closing else i + 1
            name_end = tag_name_end(text, name)
            if name_end == name:
                i += 1
                continue
            found = find(tables, np.int64(DOMAIN_TAG), text, name, name_end)
            if found < 0:
                i = name_end
                continue
            tag = words[found, 4]
            number = words[found, 5] & 255
            start = i
            i = name_end
            if tag in (TAG_HIDDEN, TAG_LITERAL, TAG_REFERENCE, TAG_MATH):
                if closing or unclosed[number]:
                    continue
                end = tag_end(text, name_end - 1, n)
                if end < 0 or text[end - 1] == 47:
                    continue
                close = closing_tag(text, end + 1, n, name, name_end - name, tag == TAG_REFERENCE)
                if close >= 0:
                    close_end = tag_end(text, close, n)
                    events[used, 0] = start
                    events[used, 1] = close_end + 1 if close_end >= 0 else close + 2 + name_end - name
                    events[used, 2] = EVENT_RAW
                    events[used, 3] = end + 1
                    events[used, 4] = close
                    events[used, 5] = tag
                    i = events[used, 1]
                    used += 1
                elif close == -1:
                    unclosed[number] = True
                continue
            # Elements that are dropped with their content: tables, and what a style or a class hides.
            if closing:
                wanted = counts[0] > 0 and stack[counts[0] - 1, 2] == number
                if tag == TAG_TABLE and counts[STACK_TABLE_TAG] > 0:
                    wanted = True
                if not wanted:
                    continue
                top = depth
                while top > 0 and (stack[top - 1, 0] == STACK_BRACKET or stack[top - 1, 0] == STACK_EXTERNAL):
                    top -= 1
                if top > 0 and stack[top - 1, 0] >= STACK_TABLE_TAG and stack[top - 1, 2] == number:
                    top -= 1
                    if stack[top, 0] != STACK_NESTED:
                        end = tag_end(text, start, n)
                        events[stack[top, 3], 1] = end + 1 if end >= 0 else name_end
                    depth = unwind(stack, counts, depth, top)
                continue
            nested = counts[0] > 0 and stack[counts[0] - 1, 2] == number
            if not (tag == TAG_TABLE or nested or text[name_end] == _SPACE or text[name_end] == _NEWLINE):
                continue
            end = tag_end(text, name_end - 1, n)
            if end < 0 or text[end - 1] == 47:
                continue
            if tag == TAG_TABLE:
                kind = STACK_TABLE_TAG
            elif is_hidden(text, name_end, end, tables):
                kind = STACK_HIDDEN
            elif nested:
                kind = STACK_NESTED
            else:
                continue
            row = -1
            if kind != STACK_NESTED:
                row = used
                events[used, 0] = start
                events[used, 1] = -1
                events[used, 2] = EVENT_TABLE
                events[used, 5] = tag
                used += 1
            previous = start
            if kind != STACK_TABLE_TAG:
                previous = counts[0]
                counts[0] = depth + 1
            stack[depth, 0] = kind
            stack[depth, 2] = number
            depth = push(stack, counts, depth, previous, row)
        elif c == 45:  # -
            if variants and text[i + 1] == 123 and text[i + 2] != 123:
                if counts[STACK_VARIANT] >= MAX_VARIANTS and stack[depth - 1, 0] == STACK_VARIANT:
                    depth = unwind(stack, counts, depth, depth - 1)
                events[used, 0] = i
                events[used, 1] = -1
                events[used, 2] = EVENT_VARIANT
                events[used, 3] = i + 2
                stack[depth, 0] = STACK_VARIANT
                stack[depth, 2] = 0
                depth = push(stack, counts, depth, i, used)
                used += 1
                i += 2
            else:
                i += 1
        else:
            i += 1
    return events, used


@kernel
def put_code_point(out, o, code):  # type: ignore[no-untyped-def]
    """Writes a code point as UTF-8; the new end of the output."""
    if code < 0x80:
        out[o] = code
        return o + 1
    if code < 0x800:
        out[o] = 0xC0 | (code >> 6)
        out[o + 1] = 0x80 | (code & 0x3F)
        return o + 2
    if code < 0x10000:
        out[o] = 0xE0 | (code >> 12)
        out[o + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[o + 2] = 0x80 | (code & 0x3F)
        return o + 3
    out[o] = 0xF0 | (code >> 18)
    out[o + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[o + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[o + 3] = 0x80 | (code & 0x3F)
    return o + 4


@kernel
def put_entity(text, p, limit, out, o, tables):  # type: ignore[no-untyped-def]
    """Writes what the `&` at p stands for; (where to go on, new end of the output)."""
    j = p + 1
    code = j - j
    if text[j] == 35:  # numeric
        j += 1
        if (text[j] | 32) == 120:
            j += 1
            first = j
            while j < limit and j < first + 8:
                c = text[j]
                if is_digit(c):
                    code = code * 16 + (c - 48)
                elif 97 <= (c | 32) <= 102:
                    code = code * 16 + ((c | 32) - 87)
                else:
                    break
                j += 1
        else:
            first = j
            while j < limit and j < first + 8 and is_digit(text[j]):
                code = code * 10 + (text[j] - 48)
                j += 1
        if j > first and j < limit and text[j] == 59:
            if code < 32 or 0x7F <= code < 0xA0 or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
                out[o] = _SPACE
                return j + 1, o + 1
            return j + 1, put_code_point(out, o, code)
        out[o] = 38
        return p + 1, o + 1
    while j < limit and j < p + 40 and (is_letter(text[j]) or is_digit(text[j])):
        j += 1
    if j < limit and text[j] == 59 and j > p + 1:
        row = find(tables, np.int64(DOMAIN_ENTITY), text, p + 1, j)
        if row >= 0:
            offset = tables.words[row, 4]
            for k in range(tables.words[row, 5]):
                out[o + k] = tables.pool[offset + k]
            return j + 1, o + tables.words[row, 5]
    out[o] = 38
    return p + 1, o + 1


@kernel
def reads_as_prose(out, start, end):  # type: ignore[no-untyped-def]
    """True if an indented line is a paragraph somebody indented by accident: long, and letters nearly all of it."""
    start, end = trim(out, start, end)
    if end - start < 60:
        return False
    letters = 0
    for i in range(start, end):
        c = out[i]
        if is_letter(c) or c >= 0x80:
            letters += 1
        elif c == _SPACE:
            if out[i - 1] == _SPACE:
                return False
            letters += 1
    return letters * 100 >= (end - start) * 88


@kernel
def ends_as_sentence(out, start, end):  # type: ignore[no-untyped-def]
    """True if a line ends with a mark that ends sentences in its script, quotes and brackets after it aside."""
    start, end = trim(out, start, end)
    if end - start < SHORTEST_SENTENCE:
        return False
    while True:
        a, b, c = out[end - 3], out[end - 2], out[end - 1]
        if is_blank(c) or c == 34 or c == 39 or c == 41 or c == 93:
            end -= 1
        elif (
            (a == 0xE2 and b == 0x80 and (c == 0x99 or c == 0x9D))  # ’ ”
            or (a == 0xE3 and b == 0x80 and (c == 0x8D or c == 0x8F))  # 」 』
            or (a == 0xEF and b == 0xBC and c == 0x89)  # ）
        ):
            end -= 3
        elif b == 0xC2 and c == 0xBB:  # »
            end -= 2
        else:
            break
        if end - start < 3:
            return False
    return (
        c == 46
        or c == 33
        or c == 63
        or (a == 0xE2 and b == 0x80 and c == 0xA6)  # …
        or (a == 0xE3 and b == 0x80 and c == 0x82)  # 。
        or (a == 0xEF and b == 0xBC and (c == 0x81 or c == 0x9F))  # ！ ？
        or (a == 0xE0 and b == 0xA5 and (c == 0xA4 or c == 0xA5))  # । ॥
        or (b == 0xD6 and c == 0x89)  # ։
        or (b == 0xDB and c == 0x94)  # ۔
        or (b == 0xD8 and c == 0x9F)  # ؟
    )


@kernel
def classify_line(text, q, n):  # type: ignore[no-untyped-def]
    """(kind, first byte of content, level, end of content, end of line) of the line that starts at q.

    The last three are given for headings only.
    """
    if q >= n:
        return LINE_BLANK, q, 0, 0, 0
    c = text[q]
    if c == _NEWLINE:
        return LINE_BLANK, q, 0, 0, 0
    if c == _SPACE or c == 9:
        j = q
        while text[j] == _SPACE or text[j] == 9:
            j += 1
        if j >= n or text[j] == _NEWLINE:
            return LINE_BLANK, j, 0, 0, 0
        return LINE_INDENTED, j, 0, 0, 0
    if c == 42 or c == 35 or c == 58 or c == 59:
        j = q
        while text[j] == 42 or text[j] == 35 or text[j] == 58 or text[j] == 59:
            j += 1
        # Indentation alone marks a quotation or a formula, which is prose.
        kind = LINE_LIST
        if text[j - 1] == 58 and c == 58:
            kind = LINE_ALONE
        while text[j] == _SPACE:
            j += 1
        return kind, j, 0, 0, 0
    if c == 61:
        end = q
        while end < n and text[end] != _NEWLINE:
            end += 1
        last = end
        while True:
            while last > q and (text[last - 1] == _SPACE or text[last - 1] == 9):
                last -= 1
            # A comment may follow the closing signs.
            if last - q > 7 and text[last - 1] == 62 and text[last - 2] == 45 and text[last - 3] == 45:
                k = last - 4
                while k > q and not (text[k] == 60 and text[k + 1] == 33 and text[k + 2] == 45):
                    k -= 1
                if k > q:
                    last = k
                    continue
            break
        if last - q >= 3 and text[last - 1] == 61:
            level = 0
            while level < 6 and text[q + level] == 61:
                level += 1
            closing = 0
            while closing < 6 and text[last - 1 - closing] == 61:
                closing += 1
            level = min(level, closing, (last - q - 1) // 2)
            return LINE_HEADING, q + level, level, last - level, end
        return LINE_ALONE, q, 0, 0, 0
    if c == 124:
        return LINE_DROPPED, q, 0, 0, 0
    if c == 33:
        # A heading cell of a table that lost its start, if cells are divided on the line.
        end = q
        while end < n and text[end] != _NEWLINE and text[end] != 124 and not (text[end] == 33 and text[end + 1] == 33):
            end += 1
        if end < n and text[end] != _NEWLINE:
            return LINE_DROPPED, q, 0, 0, 0
    if c == 45 and text[q + 1] == 45 and text[q + 2] == 45 and text[q + 3] == 45:
        j = q
        while text[j] == 45:
            j += 1
        return LINE_ALONE, j, 0, 0, 0
    if c == 123 and text[q + 1] == 124:
        return LINE_ALONE, q, 0, 0, 0
    return LINE_PROSE, q, 0, 0, 0


@kernel
def stray_bold(text, p, n):  # type: ignore[no-untyped-def]
    """(end of line, position of the bold mark that reads as an apostrophe and an italic mark, or -1).

    MediaWiki's rule for lines in which both bold and italic marks are odd in number.
    """
    bold = 0
    italic = 0
    first_space = -1
    first_single = -1
    first_word = -1
    i = p
    while i < n and text[i] != _NEWLINE:
        if text[i] != 39:
            i += 1
            continue
        j = i
        while text[j] == 39:
            j += 1
        run = j - i
        if run == 2:
            italic += 1
        elif run == 3 or run == 4:
            bold += 1
            mark = j - 3
            before = text[mark - 1] if mark > 0 else 0
            before2 = text[mark - 2] if mark > 1 else 0
            if before == _SPACE:
                if first_space < 0:
                    first_space = mark
            elif before2 in (_SPACE, _NEWLINE):
                if first_single < 0:
                    first_single = mark
            elif first_word < 0:
                first_word = mark
        elif run >= 5:
            bold += 1
            italic += 1
        i = j
    if bold % 2 == 1 and italic % 2 == 1:
        if first_single >= 0:
            return i, first_single
        if first_word >= 0:
            return i, first_word
        return i, first_space
    return i, -1


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
def read_integer(out, start, end):  # type: ignore[no-untyped-def]
    """The integer written in out[start:end]; -1 if it is not one of at most nine digits."""
    if end <= start or end - start > 9:
        return -1
    value = 0
    for i in range(start, end):
        if not is_digit(out[i]):
            return -1
        value = value * 10 + (out[i] - 48)
    return value


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
def put_superscript(out, o, c):  # type: ignore[no-untyped-def]
    """Writes a digit or a sign as its superscript character, another byte as it is; the new end of the output."""
    if c == 43:
        code = 0x207A
    elif c == 45:
        code = 0x207B
    elif c == 49:
        code = 0xB9
    elif c == 50 or c == 51:
        code = 0xB0 + c - 48
    elif is_digit(c):
        code = 0x2070 + c - 48
    else:
        code = c
    return put_code_point(out, o, np.int64(code))


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
def put_integer(out, o, value):  # type: ignore[no-untyped-def]
    """Writes a non-negative integer in decimal."""
    divisor = 1
    while value // divisor >= 10:
        divisor *= 10
    while divisor > 0:
        out[o] = 48 + (value // divisor) % 10
        o += 1
        divisor //= 10
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


@kernel
def find_variant(text, start, end, tables):  # type: ignore[no-untyped-def]
    """(first byte, one past the last) of what `-{...}-` shows, its content being text[start:end].

    Of `code:text;` pairs it is the pair whose code ranks first for the language; a rule that shows nothing (flags
    H, T, -) gives an empty range.
    """
    j = start
    while j < end and j < start + 20 and text[j] != 124 and text[j] != 58 and text[j] != 123:
        j += 1
    if j < end and text[j] == 124:
        for k in range(start, j):
            c = text[k]
            if c == 72 or c == 84 or (c == 45 and not is_letter(text[k - 1]) and not is_letter(text[k + 1])):
                return end, end
            if c == 82:
                return j + 1, end
        start = j + 1
    best = -1
    best_start = start
    best_end = end
    i = start
    while i < end:
        # One `code:text` piece.
        piece = i
        while i < end and text[i] != 59:
            i += 1
        colon = piece
        while colon < i and colon < piece + 20 and text[colon] != 58:
            colon += 1
        if colon < i and text[colon] == 58:
            a, b = trim(text, piece, colon)
            row = find(tables, np.int64(DOMAIN_VARIANT), text, a, b)
            if row >= 0:
                rank = tables.words[row, 4]
                if best < 0 or rank < best:
                    best = rank
                    best_start = colon + 1
                    best_end = i
        i += 1
    return best_start, best_end


@kernel
def render(text, n, events, used, title, tables, out):  # type: ignore[no-untyped-def]
    """Writes the text of a page to `out`, uint8[at least 2 n + ROOM]; the number of bytes written.

    Lines end with a newline, MARK stands where something was dropped, white space is not yet collapsed.
    """
    classes = tables.render_class
    words = tables.words
    settings = tables.settings
    keep_headings = settings[SETTING_KEEP_HEADINGS] != 0
    lists = settings[SETTING_LISTS]
    keep_appendices = settings[SETTING_KEEP_APPENDICES] != 0
    # Not a literal, which would make numba compile what is called with it a second time.
    zero = n - n
    frames = np.empty((MAX_FRAMES, 8), np.int32)
    arguments = np.empty((MAX_ARGUMENTS, 5), np.int32)
    depth = zero
    rules = 0  # template frames among them
    next_argument = zero
    o = zero
    e = zero
    limit = n
    quotes_end = 0
    bold_as_italic = -1
    skip_level = 0  # > 0: inside a section that is dropped
    line_kind, p, level, heading_end, heading_line_end = classify_line(text, zero, n)
    line_start = zero  # in the output
    blank_to = zero  # up to where the line in the output is known to be blank
    if line_kind == LINE_HEADING:
        frames[0, 0] = FRAME_RANGE
        frames[0, 1] = heading_end
        frames[0, 2] = heading_line_end
        depth = 1
        limit = heading_end
    while True:
        if p >= limit and depth > 0:
            depth -= 1
            p = int(frames[depth, 2])
            if frames[depth, 0] == FRAME_TEMPLATE:
                start = int(frames[depth, 3])
                first = int(frames[depth, 5])
                if frames[depth, 6] >= 0:
                    close_argument(arguments, frames[depth, 6], out, o, frames[depth, 7])
                    last = next_argument
                else:
                    o = start
                    last = first
                room = min(len(out) - 64 - 2 * (n - p), o + (o - start) + RULE_SLACK)
                blank_to = min(blank_to, start)
                while blank_to < start and is_blank(out[blank_to]):
                    blank_to += 1
                flags = where_called(out, line_start, start, blank_to >= start)
                end = evaluate(tables, frames[depth, 4], arguments, first, last, out, o, room, title, flags)
                if end > o:
                    for k in range(end - o):
                        out[start + k] = out[o + k]
                    o = start + (end - o)
                else:
                    out[start] = MARK
                    o = start + 1
                blank_to = min(blank_to, start)
                next_argument = first
                rules -= 1
            limit = int(frames[depth - 1, 1]) if depth > 0 else n
            continue
        if p >= n or (depth == 0 and text[p] == _NEWLINE):
            # End of a line of the page itself.
            while blank_to < o and is_blank(out[blank_to]):
                blank_to += 1
            content = blank_to < o
            if line_kind == LINE_HEADING:
                if level <= skip_level:
                    skip_level = 0
                if skip_level == 0 and level <= 2 and not keep_appendices:
                    a, b = trim(out, line_start, o)
                    if find(tables, np.int64(DOMAIN_SECTION), out, a, b) >= 0:
                        skip_level = level
                if not keep_headings:
                    content = False
            if skip_level > 0 or line_kind == LINE_DROPPED:
                content = False
            if line_kind == LINE_LIST and content and lists != LISTS_KEEP:
                content = lists == LISTS_SENTENCES and ends_as_sentence(out, line_start, o)
            if line_kind == LINE_INDENTED and content and not reads_as_prose(out, line_start, o):
                content = False
            kind_before = line_kind
            at_end = p >= n
            line_kind, p, level, heading_end, heading_line_end = classify_line(text, p + 1, n)
            if content:
                out[o] = _SPACE if kind_before == LINE_PROSE and line_kind == LINE_PROSE else _NEWLINE
                o += 1
            else:
                # Nothing is left of this line: the line before it ends a paragraph, unless a comment was all.
                o = line_start
                if o > 0:
                    out[o - 1] = _NEWLINE
            if at_end:
                return o
            line_start = o
            blank_to = o
            if line_kind == LINE_HEADING:
                frames[0, 0] = FRAME_RANGE
                frames[0, 1] = heading_end
                frames[0, 2] = heading_line_end
                depth = 1
                limit = heading_end
            continue
        c = text[p]
        if classes[c] == 0:
            out[o] = c
            o += 1
            p += 1
            while p < limit and classes[text[p]] == 0:
                out[o] = text[p]
                o += 1
                p += 1
            continue
        if c == _NEWLINE:
            # Inside a template's argument or a link.
            p += 1
            if frames[depth - 1, 0] == FRAME_TEMPLATE:
                d = text[p]
                if d == _NEWLINE or d == 42 or d == 35 or d == 58 or d == 59:
                    while p < limit and (
                        text[p] == 42 or text[p] == 35 or text[p] == 58 or text[p] == 59 or text[p] == _SPACE
                    ):
                        p += 1
                    out[o] = _NEWLINE
                else:
                    out[o] = _SPACE
            else:
                out[o] = _SPACE
            o += 1
            continue
        if c == 39:  # apostrophes
            j = p
            while j < limit and text[j] == 39:
                j += 1
            run = j - p
            if run == 1:
                out[o] = 39
                o += 1
            else:
                if p >= quotes_end:
                    quotes_end, bold_as_italic = stray_bold(text, p, n)
                literal = 0
                if run == 4:
                    literal = 1
                elif run > 5:
                    literal = run - 5
                if run >= 3 and j - 3 == bold_as_italic:
                    literal += 1
                for _ in range(literal):
                    out[o] = 39
                    o += 1
            p = j
            continue
        if c == 38:
            p, o = put_entity(text, p, limit, out, o, tables)
            continue
        if c == 124:  # |
            if depth > 0 and frames[depth - 1, 0] == FRAME_TEMPLATE:
                top = depth - 1
                if frames[top, 6] >= 0:
                    frames[top, 7] = close_argument(arguments, frames[top, 6], out, o, frames[top, 7])
                else:
                    o = frames[top, 3]
                if next_argument < MAX_ARGUMENTS:
                    arguments[next_argument, 0] = o
                    arguments[next_argument, 1] = o
                    arguments[next_argument, 2] = -1
                    arguments[next_argument, 3] = -1
                    arguments[next_argument, 4] = -1
                    frames[top, 6] = next_argument
                    next_argument += 1
            else:
                out[o] = 124
                o += 1
            p += 1
            continue
        if c == 61:  # =
            if depth > 0 and frames[depth - 1, 0] == FRAME_TEMPLATE and frames[depth - 1, 6] >= 0:
                a = frames[depth - 1, 6]
                if arguments[a, 2] < 0:
                    arguments[a, 2] = arguments[a, 0]
                    arguments[a, 3] = o
                    arguments[a, 0] = o
                    p += 1
                    continue
            out[o] = 61
            o += 1
            p += 1
            continue
        if c == 93 or c == 125:  # stray closers
            j = p
            while j < limit and text[j] == c:
                j += 1
            if j - p == 1:
                out[o] = c
                o += 1
            p = j
            continue
        if c == 95:  # _
            j = switch_end(text, p, limit)
            if j > 0:
                p = j
                continue
            out[o] = 95
            o += 1
            p += 1
            continue
        if c == MARK or c == 13:
            p += 1
            continue
        # What is left may start a construct.
        while e < used and events[e, 0] < p:
            e += 1
        event = 0
        if e < used and events[e, 0] == p and events[e, 1] >= 0 and events[e, 1] <= limit:
            event = events[e, 2]
        if event == 0 or depth >= MAX_FRAMES - 1:
            if event != 0:
                p = events[e, 1]
                out[o] = MARK
                o += 1
            elif c == 60:
                p, o = put_tag(text, p, limit, out, o, depth, tables)
            elif c == 123 or c == 91:
                # Up to what starts a construct inside this run.
                j = p
                k = e
                while j < limit and text[j] == c:
                    while k < used and (events[k, 0] < j or (events[k, 0] == j and events[k, 1] < 0)):
                        k += 1
                    if j > p and k < used and events[k, 0] == j:
                        break
                    j += 1
                if c == 123 and text[p + 1] == 124 and depth == 0:
                    while blank_to < o and is_blank(out[blank_to]):
                        blank_to += 1
                    if blank_to >= o:
                        # A table that is never closed.
                        line_kind = LINE_DROPPED
                if j - p == 1:
                    out[o] = c
                    o += 1
                    p = j
                elif c == 91:
                    p = j
                    # An unclosed file link: what follows on the line is its options and its caption.
                    a = p
                    while a < limit and a < p + 60 and text[a] != 58 and text[a] != _NEWLINE:
                        a += 1
                    if depth == 0 and text[a] == 58:
                        row = find(tables, np.int64(DOMAIN_NAMESPACE), text, p, a)
                        if row >= 0 and words[row, 4] == NAMESPACE_FILE:
                            line_kind = LINE_DROPPED
                else:
                    while blank_to < o and is_blank(out[blank_to]):
                        blank_to += 1
                    if depth == 0 and blank_to >= o:
                        line_kind = LINE_DROPPED
                    p = j
            else:
                out[o] = c
                o += 1
                p += 1
            continue
        end = int(events[e, 1])
        inner = int(events[e, 3])
        inner_end = int(events[e, 4])
        if event == EVENT_TEMPLATE:
            program, j = find_template(text, inner, inner_end, tables)
            if program < 0 or rules >= MAX_RULE_DEPTH:
                out[o] = MARK
                o += 1
                p = end
                continue
            frames[depth, 0] = FRAME_TEMPLATE
            frames[depth, 1] = inner_end
            frames[depth, 2] = end
            frames[depth, 3] = o
            frames[depth, 4] = program
            frames[depth, 5] = next_argument
            frames[depth, 6] = -1
            frames[depth, 7] = 1
            if text[j] == 58 and j < inner_end:
                # A parser function's first argument follows its colon.
                if next_argument < MAX_ARGUMENTS:
                    arguments[next_argument, 0] = o
                    arguments[next_argument, 1] = o
                    arguments[next_argument, 2] = -1
                    arguments[next_argument, 3] = -1
                    arguments[next_argument, 4] = -1
                    frames[depth, 6] = next_argument
                    next_argument += 1
                j += 1
            depth += 1
            rules += 1
            limit = inner_end
            p = j
        elif event == EVENT_LINK:
            p, o, push, push_end = open_link(text, inner, inner_end, end, out, o, tables)
            if push:
                frames[depth, 0] = FRAME_RANGE
                frames[depth, 1] = push_end
                frames[depth, 2] = end
                depth += 1
                limit = push_end
        elif event == EVENT_EXTERNAL:
            j = inner
            while j < inner_end and text[j] != _SPACE and text[j] != 60 and text[j] != 91 and text[j] != 123:
                j += 1
            while j < inner_end and text[j] == _SPACE:
                j += 1
            if j >= inner_end:
                out[o] = MARK
                o += 1
                p = end
            else:
                frames[depth, 0] = FRAME_RANGE
                frames[depth, 1] = inner_end
                frames[depth, 2] = end
                depth += 1
                limit = inner_end
                p = j
        elif event == EVENT_TABLE:
            if events[e, 5] == TAG_INLINE:
                out[o] = MARK
            else:
                out[o] = _NEWLINE if depth == 0 else _SPACE
            o += 1
            p = end
        elif event == EVENT_RAW:
            if events[e, 5] == TAG_LITERAL:
                j = inner
                while j < inner_end:
                    if text[j] == 38:
                        j, o = put_entity(text, j, inner_end, out, o, tables)
                    else:
                        out[o] = _SPACE if text[j] == _NEWLINE else text[j]
                        o += 1
                        j += 1
            elif events[e, 5] == TAG_MATH:
                j = end
                while text[j] == _SPACE or text[j] in (44, 46, 58, 59):
                    j += 1
                while blank_to < o and is_blank(out[blank_to]):
                    blank_to += 1
                if depth == 0 and (text[j] == _NEWLINE or j >= n) and blank_to >= o:
                    # A formula displayed on a line of its own is no sentence.
                    out[o] = MARK
                    o += 1
                    end = j
                else:
                    start = o
                    o = put_formula(text, inner, inner_end, out, o, tables)
                    if o <= start:
                        o = start
                        out[o] = MARK
                        o += 1
            else:
                out[o] = MARK
                o += 1
            p = end
        elif event == EVENT_COMMENT:
            p = end
            # A comment that has its lines to itself leaves none.
            if depth == 0 and o == line_start:
                j = p
                while text[j] == _SPACE or text[j] == 9:
                    j += 1
                if text[j] == _NEWLINE and j < n:
                    kind_before = line_kind
                    line_kind, p, level, heading_end, heading_line_end = classify_line(text, j + 1, n)
                    if line_kind != LINE_PROSE and o > 0:
                        out[o - 1] = _NEWLINE
                    if line_kind == LINE_HEADING:
                        frames[0, 0] = FRAME_RANGE
                        frames[0, 1] = heading_end
                        frames[0, 2] = heading_line_end
                        depth = 1
                        limit = heading_end
                    continue
            out[o] = MARK
            o += 1
        elif event == EVENT_VARIANT:
            a, b = find_variant(text, inner, inner_end, tables)
            if a >= b:
                out[o] = MARK
                o += 1
                p = end
            else:
                frames[depth, 0] = FRAME_RANGE
                frames[depth, 1] = b
                frames[depth, 2] = end
                depth += 1
                limit = b
                p = a
        else:  # EVENT_PARAMETER
            out[o] = MARK
            o += 1
            p = end


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


@kernel
def switch_end(text, p, limit):  # type: ignore[no-untyped-def]
    """One past the behaviour switch `__NAME__` that starts at p; 0 if there is none.

    Its name is in capitals, or in a script that MediaWiki's translations write their switches in.
    """
    if text[p + 1] != 95:
        return 0
    j = p + 2
    stop = min(limit - 1, p + 80)
    while j < stop:
        c = text[j]
        if c == 95 and text[j + 1] == 95:
            return j + 2 if j - p >= 5 else 0
        if not (65 <= c <= 90 or c >= 0x80 or c == 95):
            return 0
        j += 1
    return 0


@kernel
def open_link(text, inner, inner_end, end, out, o, tables):  # type: ignore[no-untyped-def]
    """Decides on the internal link whose content is text[inner:inner_end].

    (where to go on, new end of the output, whether a range is to be rendered, its end).
    """
    while inner < inner_end and text[inner] == _SPACE:
        inner += 1
    colon = -1
    start = inner
    if text[start] == 58:
        start += 1
    j = start
    stop = min(inner_end, inner + MAX_TARGET)
    while j < stop:
        c = text[j]
        if c == 124 or c == 123 or c == 91 or c == 60 or c == _NEWLINE:
            break
        if c == 58 and colon < 0:
            colon = j
        j += 1
    kind = 0
    if colon >= 0:
        a, b = trim(text, start, colon)
        row = find(tables, np.int64(DOMAIN_NAMESPACE), text, a, b)
        if row >= 0:
            kind = tables.words[row, 4]
    if start == inner and (
        kind in (NAMESPACE_FILE, NAMESPACE_CATEGORY) or (kind == NAMESPACE_LANGUAGE and j >= inner_end)
    ):
        out[o] = MARK
        return end, o + 1, False, 0
    if j < inner_end and text[j] == 124:
        a, b = trim(text, j + 1, inner_end)
        if kind == NAMESPACE_LANGUAGE and b - a == colon - start and same_name(text, a, start, b - a):
            # `[[:de:Haus|de]]` points to a page in another language after a name.
            out[o] = MARK
            return end, o + 1, False, 0
        if a < b:
            return j + 1, o, True, inner_end
        inner_end = j
        j = inner_end
        # `[[Name (what)|]]` shows the name alone.
        if kind != 0:
            start = colon + 1
        k = start
        while k < inner_end and text[k] != 40:
            k += 1
        if k > start:
            inner_end = k
        return start, o, True, inner_end
    if j < inner_end:
        # No target MediaWiki would take: the content shows.
        return inner, o, True, inner_end
    if kind == NAMESPACE_SITE and start == inner:
        return colon + 1, o, True, inner_end
    if text[start] == 35:
        start += 1
    return start, o, True, inner_end


@kernel
def put_superscript_tag(text, p, limit, out, o):  # type: ignore[no-untyped-def]
    """Writes the content of `<sup>` that starts at p if it is short; (where to go on, new end of the output).

    Digits and signs become superscript characters; what else is an exponent follows a `^`; ordinals stay as they are.
    """
    while p < limit and text[p] in (39, _SPACE):
        p += 1
    start = o
    j = p
    while j < limit and j < p + 12:
        c = text[j]
        if is_digit(c) or c == 43 or c == 45:
            o = put_superscript(out, o, c)
            j += 1
        elif c == 0xE2 and text[j + 1] == 0x88 and text[j + 2] == 0x92:  # U+2212
            o = put_code_point(out, o, np.int64(0x207B))
            j += 3
        else:
            break
    k = j
    while k < limit and text[k] in (39, _SPACE):
        k += 1
    if j > p and k < limit and text[k] == 60 and text[k + 1] == 47:
        return k, o
    o = start
    c = text[p]
    k = p + 1
    while k < limit and text[k] in (39, _SPACE):
        k += 1
    alone = k < limit and text[k] == 60 and text[k + 1] == 47
    before = out[o - 1] if o > 0 else 0
    if c == 110 and alone:
        return k, put_code_point(out, o, np.int64(0x207F))
    if (
        j > p
        or (
            alone
            and c in (105, 106, 107, 109, 112, 113, 116, 120, 121, 122)
            and (is_digit(before) or is_letter(before))
        )
        or (is_letter(c) and k < limit and text[k] in (43, 45))
    ):
        out[o] = 94
        o += 1
    return p, o


@kernel
def put_tag(text, p, limit, out, o, depth, tables):  # type: ignore[no-untyped-def]
    """Writes what the `<` at p stands for, if it starts no paired construct.

    (where to go on, new end of the output).
    """
    if text[p + 1] == 33 and text[p + 2] == 45 and text[p + 3] == 45:
        # A comment that is never closed hides the rest of its line.
        j = p + 4
        while j < limit and text[j] != _NEWLINE:
            j += 1
        out[o] = MARK
        return j, o + 1
    closing = text[p + 1] == 47
    name = p + 2 if closing else p + 1
    name_end = tag_name_end(text, name)
    if name_end == name:
        out[o] = 60
        return p + 1, o + 1
    row = find(tables, np.int64(DOMAIN_TAG), text, name, name_end)
    if row < 0:
        out[o] = 60
        return p + 1, o + 1
    kind = tables.words[row, 4]
    end = tag_end(text, name_end - 1, limit)
    if end < 0:
        if kind in (TAG_REFERENCE, TAG_HIDDEN) or closing:
            out[o] = MARK
            return min(name_end, limit), o + 1
        out[o] = 60
        return p + 1, o + 1
    end += 1
    if kind in (TAG_BLOCK, TAG_BREAK, TAG_TABLE):
        out[o] = _NEWLINE if depth == 0 else _SPACE
        return end, o + 1
    if kind == TAG_SUPERSCRIPT and not closing:
        return put_superscript_tag(text, end, limit, out, o)
    if kind in (TAG_REFERENCE, TAG_HIDDEN, TAG_MATH):
        out[o] = MARK
        return end, o + 1
    return end, o


@kernel
def clean(out, n):  # type: ignore[no-untyped-def]
    """Collapses white space and repairs punctuation beside MARKs, in place; the number of bytes left.

    Lines keep no space at their ends; blank lines, and lines without a letter or a digit, are removed.
    """
    w = n - n
    line = w  # where the current line starts in what is written
    mark = False  # something was dropped since the last character
    letters = False
    i = 0
    while i <= n:
        c = out[i] if i < n else _NEWLINE
        if c == _NEWLINE:
            while w > line and out[w - 1] == _SPACE:
                w -= 1
            if letters and w > line:
                out[w] = _NEWLINE
                w += 1
                line = w
            else:
                w = line
            mark = False
            letters = False
            i += 1
            continue
        if c == MARK:
            mark = True
            i += 1
            continue
        if c == 0xC2 and i + 1 < n and (out[i + 1] == 0xA0 or out[i + 1] == 0xAD):
            if out[i + 1] == 0xAD:  # soft hyphen
                i += 2
                continue
            c = _SPACE
            i += 1
        elif c == 0xE2 and i + 2 < n and out[i + 1] == 0x80:
            d = out[i + 2]
            if d == 0x8B or d == 0x8E or d == 0x8F:  # zero-width space, direction marks
                i += 3
                continue
            if d <= 0x8A or d == 0xA8 or d == 0xA9 or d == 0xAF:  # spaces and separators
                c = _SPACE
                i += 2
        elif c == 0xEF and i + 2 < n and out[i + 1] == 0xBB and out[i + 2] == 0xBF:  # byte order mark
            i += 3
            continue
        if c <= _SPACE or c == 127:
            if w > line and out[w - 1] != _SPACE and not (mark and opens(out, w, line)):
                out[w] = _SPACE
                w += 1
            i += 1
            continue
        if mark and w > line:
            closer = 0
            if c == 41 or c == 93:
                closer = 1
            elif c == 0xEF and i + 2 < n and out[i + 1] == 0xBC and out[i + 2] == 0x89:
                closer = 3
            if closer > 0:
                # What stands before the bracket may be punctuation that led to what was dropped.
                k = w
                while k > line and (out[k - 1] == _SPACE or out[k - 1] == 44 or out[k - 1] == 59 or out[k - 1] == 58):
                    k -= 1
                if opens(out, k, line):
                    w = k - (3 if out[k - 1] >= 0x80 else 1)
                    i += closer
                    continue
                w = k
                mark = False
            elif c == 44 or c == 59 or c == 58 or c == 46 or c == 33 or c == 63:
                k = w
                while k > line and out[k - 1] == _SPACE:
                    k -= 1
                if opens(out, k, line):
                    if c != 46:
                        w = k
                        i += 1
                        continue
                elif k > line:
                    before = out[k - 1]
                    if before == c or ((c == 46 or c == 59 or c == 58) and before == 44):
                        # Two separators with nothing left between them.
                        k -= 1
                    elif c == 44 and before in (59, 58) and k < w:
                        i += 1
                        continue
                    if not (c == 58 and k < w):
                        w = k
        elif c == 44 and w - line > 1 and out[w - 1] == _SPACE and (i + 1 >= n or is_blank(out[i + 1])):
            # No language sets a space before a comma.
            w -= 1
        elif c == 46 and w - line > 1 and out[w - 1] == _SPACE and out[w - 2] == 46 and not (
            i + 1 < n and (is_letter(out[i + 1]) or is_digit(out[i + 1]))
        ):  # fmt: skip
            # A spaced ellipsis is one, or each of its dots would be a sentence; ".NET" after an abbreviation is not.
            w -= 1
        mark = False
        if is_letter(c) or is_digit(c) or c >= 0x80:
            letters = True
        out[w] = c
        w += 1
        i += 1
    if w > 0:
        w -= 1
    return w


@kernel
def opens(out, w, line):  # type: ignore[no-untyped-def]
    """True if what is written, from `line` up to w, ends in an opening bracket."""
    if w <= line:
        return False
    c = out[w - 1]
    if c == 40 or c == 91:
        return True
    return w - line >= 3 and c == 0x88 and out[w - 2] == 0xBC and out[w - 3] == 0xEF


@kernel
def extract(text, n, title, tables, out):  # type: ignore[no-untyped-def]
    """The three passes; the number of bytes of plain text in `out`, uint8[at least 2 n + ROOM]."""
    events, used = structure(text, n, tables)
    length = render(text, n, events, used, title, tables, out)
    return clean(out, length)


@kernel
def is_disambiguation(text, n, tables):  # type: ignore[no-untyped-def]
    """True if a template of the DISAMBIGUATION domain is called in text[:n], or a switch of that domain is set."""
    i = 0
    while i < n:
        c = text[i]
        if c == 123 and text[i + 1] == 123:
            i += 2
            start = i
            while i < n and i < start + 100:
                c = text[i]
                if c == 124 or c == 125 or c == 123 or c == 60 or c == _NEWLINE:
                    break
                i += 1
            a, b = trim(text, start, i)
            if find(tables, np.int64(DOMAIN_DISAMBIGUATION), text, a, b) >= 0:
                return True
        elif c == 95 and text[i + 1] == 95:
            start = i
            i += 2
            while i < n and i < start + 60 and (is_letter(text[i]) or text[i] >= 0x80 or text[i] == 95):
                i += 1
            if find(tables, np.int64(DOMAIN_DISAMBIGUATION), text, start, i) >= 0:
                return True
        else:
            i += 1
    return False


def warm_up() -> None:
    """Compiles the entry kernels."""
    tables = Tables(
        structure_class=np.zeros(256, np.uint8),
        render_class=np.zeros(256, np.uint8),
        fold=np.zeros(256, np.uint8),
        words=np.zeros((16, 6), np.int32),
        pool=np.zeros(1, np.uint8),
        code=np.zeros(1, np.int32),
        upper=np.zeros(0x600, np.uint16),
        lower=np.zeros(0x600, np.uint16),
        settings=np.zeros(SETTINGS, np.int64),
    )
    text = np.zeros(PADDING, np.uint8)
    extract(text, 0, np.zeros(1, np.uint8), tables, np.zeros(ROOM, np.uint8))
    is_disambiguation(text, 0, tables)
    hash_bytes(tables.fold, 1, text, 0, 1)
