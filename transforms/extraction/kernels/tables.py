"""The tables of the wikitext kernels: names, programs and settings that are made once for a site and its options.

transforms.extraction.wikitext and transforms.extraction.template_rules fill them, the kernels only read them.

- Tables.words: WORD[capacity], one open-addressing hash table for every set of names (DOMAIN_*). The capacity is a
  power of two, at most half of the rows are used, and a row's place follows from `hash_bytes`.
- Tables.pool: uint8, all strings: the keys, the texts that names stand for, the literals of the programs.
- Tables.code: int32, the programs of the template rules, one behind another: OP_*, each followed by its operands.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.kernels import inlined_kernel, kernel, lean_kernel

PADDING = 64  # zeros behind a page: looking a few bytes ahead needs no bounds check
ROOM = 65536  # bytes of output beyond two a byte of the page: room for what rules add
RULE_SLACK = 512  # bytes that a rule can write beyond those of its arguments
MAX_TARGET = 512  # bytes looked at for a link's target or a template's name

# A row of Tables.words. `domain` is 0 in an empty row. The key lies in the pool. What the two values are depends on the
# domain; a name that stands for a text has the text's place in the pool and its length.
WORD = np.dtype(
    [
        ("hash", np.int32),
        ("domain", np.int32),
        ("key", np.int32),
        ("key_length", np.int32),
        ("value", np.int32),
        ("second", np.int32),
    ]
)

# The values of each domain's words: (value, second); `second` is 0 where only one is named.
DOMAIN_TAG = 1  # TAG_*, the number of the tag
DOMAIN_TEMPLATE = 2  # where its program starts in Tables.code
DOMAIN_FUNCTION = 3  # where its program starts
DOMAIN_NAMESPACE = 4  # NAMESPACE_*
DOMAIN_ENTITY = 5  # a text; keys are case-sensitive
DOMAIN_SECTION = 6  # titles of sections that list sources and links: 1, or SECTION_OR_TOPIC
DOMAIN_VARIANT = 7  # the rank of the code of a variant: the lowest shows
DOMAIN_DISAMBIGUATION = 8  # templates and switches of pages that list meanings
DOMAIN_TEX = 9  # a text, or (0, TEX_*); keys are case-sensitive
DOMAIN_HIDDEN = 10  # classes of elements that are no prose
DOMAIN_UNREAD = 11  # names of arguments that no text depends on
DOMAIN_EXACT_TEMPLATE = 12  # as DOMAIN_TEMPLATE, of names of two or three capitals; keys are case-sensitive
DOMAIN_LOOKED_UP = 13  # words in names of templates that show what a database holds under their argument
DOMAIN_COMPUTED = 14  # words in names of templates that show what they make of a number
DOMAIN_TABLES = 16  # a text; table i of the rules is domain DOMAIN_TABLES + i
DOMAIN_EXACT_TABLES = 1 << 16  # + i: keys of table i that differ from another one in their case alone; case-sensitive

SECTION_OR_TOPIC = 2  # a title that may also be that of a section of prose, such as "Literature"

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

SETTING_KEEP_HEADINGS = 0
SETTING_LISTS = 1  # LISTS_*
SETTING_YEAR = 2  # the dump's date
SETTING_MONTH = 3
SETTING_DAY = 4
SETTING_GROUP_OFFSET = 5  # the thousands separator in the pool
SETTING_GROUP_LENGTH = 6
SETTING_GROUP_FROM = 7  # digits from which numbers are grouped
SETTING_DECIMAL_OFFSET = 8  # the decimal separator in the pool
SETTING_DECIMAL_LENGTH = 9
SETTINGS = 10

# What the kernels count, int64 [COUNTS].
COUNT_UNKNOWN = 0  # calls within lines that are kept, of templates without a rule
COUNT_KEPT = 1  # of these, those that gave their argument
COUNT_BRACKETS = 2  # pairs of brackets and of quotation marks that went with all they held
COUNT_LOGGED = 3  # rows of CALL that are used
COUNT_DATED = 4  # times that a rule looked at the dump's date
COUNT_KNOWN = 5  # calls within lines that are kept, of templates with a rule that describes them
COUNTS = 6

# A call of a template without a rule: its bytes in the page, braces and all, and whether it gave its argument.
CALL = np.dtype([("start", np.int32), ("end", np.int32), ("kept", np.int32)])

# Programs of rules. A selector names an argument: see rules.find_argument. A jump is a place in Tables.code, taken
# where a test fails.
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
OP_DATED = 13  # what follows is made of the dump's date
OP_SHOWN = 12  # jump, count, selectors...: jumps if the call has arguments and all of these are empty
OP_KNOWN = 14  # jump, number: goes on if no argument with a higher number is given
OP_WORD = 15  # jump, selector: goes on unless the argument starts like a number
OP_UNKNOWN = 16  # ends: the rule does not say what such a call shows
OP_FLAG = 11  # jump, bits, wanted: goes on if one of the bits of FLAG_* is set (1) or none is (0)

FLAG_START = 1  # nothing stands before the template on its line
FLAG_BRACKET = 2  # a bracket is open before it
FLAG_DIGIT = 8  # a digit stands before it
FLAG_GLUED = 4  # it follows a word or punctuation without a space, and no word follows it so: a footnote does

FORMAT_PLAIN = 0
FORMAT_NUMBER = 1
FORMAT_LOWER = 2
FORMAT_UPPER = 3
FORMAT_FIRST_UPPER = 4
FORMAT_FIRST_LOWER = 5
FORMAT_SUPERSCRIPT = 6
FORMAT_INTEGER = 7  # without leading zeros
FORMAT_CHEMISTRY = 8  # a formula as {{chem2}} takes it
FORMAT_SURE_NUMBER = 9  # FORMAT_NUMBER, if there is a digit
FORMAT_NUMERAL = 10  # without its sign, if there is a digit, and no bracket as that of the last digits' error
FORMAT_EXPONENT = 11  # FORMAT_SUPERSCRIPT, if there is a digit
FORMAT_TABLES = 16  # + i: through table i, the value itself where the table has no such key

CASED = 0x600  # code points from here on have no case that rules change: Latin, Greek, Cyrillic and Armenian are below

FNV_OFFSET = 2166136261
FNV_PRIME = 16777619
HASH_BITS = 0x7FFFFFFF


class Tables(NamedTuple):
    """What the kernels need to know about a site, its language and the rules; see the module's comment."""

    structure_class: NDArray[np.uint8]  # [256], 0 for bytes `structure` passes over
    render_class: NDArray[np.uint8]  # [256], 0 for bytes `render` copies
    fold: NDArray[np.uint8]  # [256], what names are compared under: ASCII in lower case, `_` as a space
    words: NDArray[np.void]  # WORD[capacity]
    pool: NDArray[np.uint8]
    code: NDArray[np.int32]
    upper: NDArray[np.uint16]  # [CASED], the upper-case form of each of the first code points
    lower: NDArray[np.uint16]  # [CASED]
    settings: NDArray[np.int64]  # [SETTINGS], SETTING_*


def has_exact_names(domain: int) -> bool:
    """True if the names of a domain are case-sensitive."""
    return (
        domain == DOMAIN_ENTITY
        or domain == DOMAIN_TEX
        or domain == DOMAIN_EXACT_TEMPLATE
        or domain >= DOMAIN_EXACT_TABLES
    )


# Only kernels call this one: each caller in Python would compile it for its own type of number.
is_exact = lean_kernel(has_exact_names)


@kernel
def hash_bytes(fold, domain, source, start, end):
    """31-bit FNV-1a of source[start:end] under the domain's case folding."""
    value = FNV_OFFSET ^ domain
    if is_exact(domain):
        for i in range(start, end):
            value = ((value ^ np.int64(source[i])) * FNV_PRIME) & HASH_BITS
    else:
        for i in range(start, end):
            value = ((value ^ np.int64(fold[source[i]])) * FNV_PRIME) & HASH_BITS
    return value


@inlined_kernel
def has_key(tables, row, domain, source, start):
    """True if the key in a row of `words` is the text from `start` on, under the domain's case folding."""
    word = tables.words[row]
    exact = is_exact(domain)
    for i in range(word.key_length):
        c = source[start + i]
        if not exact:
            c = tables.fold[c]
        if tables.pool[word.key + i] != c:
            return False
    return True


@lean_kernel
def find(tables, domain, source, start, end):
    """The row of `words` whose key in `domain` is source[start:end], or -1."""
    words = tables.words
    last = words.shape[0] - 1  # the capacity is a power of two
    value = hash_bytes(tables.fold, domain, source, start, end)
    row = value & last
    while words[row].domain != 0:
        word = words[row]
        if word.hash == value and word.domain == domain and word.key_length == end - start:
            if has_key(tables, row, domain, source, start):
                return row
        row = (row + 1) & last
    return -1


@lean_kernel
def find_in_table(tables, table, source, start, end):
    """The row of `words` for the key source[start:end] of a table of the rules, given as its domain; -1 if none.

    A key that has its case in common is preferred: MW and mW are two.
    """
    row = find(tables, np.int64(DOMAIN_EXACT_TABLES + table - DOMAIN_TABLES), source, start, end)
    return row if row >= 0 else find(tables, np.int64(table), source, start, end)
