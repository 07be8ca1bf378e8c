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
MAX_ARGUMENTS = 4096
RULE_SLACK = 512
ROOM = 65536  # bytes of output beyond two a byte of the page: room for what rules add
MAX_TARGET = 512  # bytes looked at for a link's target or a template's name

DOMAIN_TAG = 1
DOMAIN_TEMPLATE = 2
DOMAIN_FUNCTION = 3
DOMAIN_NAMESPACE = 4
DOMAIN_ENTITY = 5  # keys are case-sensitive
DOMAIN_SECTION = 6
DOMAIN_VARIANT = 8
DOMAIN_DISAMBIGUATION = 9
DOMAIN_TEX = 10  # case-sensitive, too
DOMAIN_HIDDEN = 11
DOMAIN_TABLES = 16  # table i of the rules is domain DOMAIN_TABLES + i

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

NAMESPACE_FILE = 1
NAMESPACE_CATEGORY = 2
NAMESPACE_LANGUAGE = 3
NAMESPACE_OTHER = 4
NAMESPACE_TEMPLATE = 5
NAMESPACE_SITE = 6  # another wiki: its prefix does not show

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
