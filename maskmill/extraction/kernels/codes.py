"""Numbers that the wikitext kernels share with the code that fills their tables."""

PADDING = 64  # zeros after a page: looking a few bytes ahead needs no bounds check
ROOM = 65536  # bytes of output beyond two a byte of the page: room for what rules add
RULE_SLACK = 512  # bytes that a rule can write beyond those of its arguments
MAX_TARGET = 512  # bytes looked at for a link's target or a template's name

# The values of each domain's words: (value, second); `second` is 0 if only one is named.
DOMAIN_TAG = 1  # TAG_*, the number of the tag
DOMAIN_TEMPLATE = 2  # where its program starts in Tables.code
DOMAIN_FUNCTION = 3  # where its program starts
DOMAIN_NAMESPACE = 4  # NAMESPACE_*
DOMAIN_ENTITY = 5  # a text; keys are case-sensitive
DOMAIN_SECTION = 6  # titles of sections that list sources, links or works: SECTION_*
DOMAIN_VARIANT = 7  # the rank of the code of a variant: the lowest shows
DOMAIN_DISAMBIGUATION = 8  # templates and switches of pages that list meanings
DOMAIN_TEX = 9  # a text, or (0, TEX_*); keys are case-sensitive
DOMAIN_HIDDEN = 10  # classes of elements that are not prose
DOMAIN_UNREAD = 11  # names of arguments that no text depends on
DOMAIN_EXACT_TEMPLATE = 12  # as DOMAIN_TEMPLATE, of names of two or three capitals; keys are case-sensitive
DOMAIN_LOOKED_UP = 13  # words in names of templates that show what a database holds under their argument
DOMAIN_COMPUTED = 14  # words in names of templates that show what they make of a number
DOMAIN_QUOTED = 15  # names of arguments that hold a quotation
DOMAIN_SWITCH = 16  # names of behaviour switches in ASCII, without the underscores around them
DOMAIN_TABLES = 17  # a text; table i of the rules is domain DOMAIN_TABLES + i
DOMAIN_EXACT_TABLES = 1 << 16  # + i: keys of table i that differ from another one in their case alone; case-sensitive

SECTION_OF_SOURCES = 1
SECTION_OR_TOPIC = 2  # a title that may also be that of a section of prose, such as "Literature"
SECTION_OF_WORKS = 3  # books, records, films, or the cast of one

TAG_HIDDEN = 1  # extension tag whose content is dropped
TAG_LITERAL = 2  # nowiki
TAG_REFERENCE = 3
TAG_MATH = 4
TAG_CHEMISTRY = 5
TAG_CODE = 6  # dropped with its content, unless an attribute says that it stands in a line
TAG_GLOSS = 7  # how the characters before it are read; often without its closing tag
TAG_MAP = 8  # its attribute `text` shows
LAST_RAW_TAG = TAG_MAP  # the content of those up to here is not wikitext
TAG_TABLE, TAG_INLINE, TAG_BLOCK, TAG_BREAK, TAG_SUPERSCRIPT = range(9, 14)

# What a TeX command does, when it does not stand for a text.
TEX_IGNORED = -1
TEX_GROUP = -2  # its argument shows
TEX_FRACTION = -3
TEX_LEFT, TEX_RIGHT, TEX_MIDDLE = -4, -5, -6  # delimiters: the dot that stands for none does not show
TEX_TEXT = -7  # its argument is text, spaces included
TEX_OVER, TEX_CHOOSE = -8, -9  # stand between their arguments, which their group holds
TEX_BINOMIAL = -10
TEX_ROOT = -11
TEX_NOT = -12  # negates the sign that follows
TEX_ABOVE, TEX_BELOW = -13, -14  # the first argument is a label of the second
TEX_OPERATOR = -15  # its argument is the name of a function
TEX_ARROW = -16  # to the right, the argument is its label
TEX_HIDDEN = -17  # its argument does not show
TEX_BEGIN, TEX_END = -18, -19
TEX_NEWLINE = -20
TEX_CHEMISTRY = -21
# Environments, whose names stand in braces.
TEX_LINES = -22
TEX_CASES = -23
TEX_MATRIX = -24
TEX_ARRAY = -25  # a matrix whose name is followed by what its columns are

NAMESPACE_FILE, NAMESPACE_CATEGORY, NAMESPACE_LANGUAGE, NAMESPACE_OTHER, NAMESPACE_TEMPLATE = range(1, 6)
NAMESPACE_SITE = 6  # another wiki: its prefix does not show

LISTS_DROP, LISTS_KEEP, LISTS_SENTENCES = range(3)

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
SETTING_LISTED = 10  # LISTED_*
SETTING_HOLES = 11  # whether holes are marked
SETTINGS = 12

# Which calls are listed as rows of tables.CALL.
LISTED_UNKNOWN = 0  # those of templates without a rule
LISTED_FUNCTIONS = 1  # and those of parser functions without a rule
LISTED_ALL = 2  # and those that a rule gives text for

# CALL.kept
CALL_DROPPED, CALL_KEPT = 0, 1  # of a template without a rule, which did not give its argument, or did
CALL_FUNCTION, CALL_KNOWN = 2, 3
CALL_HOLE = 4  # of a template without a rule, which gave nothing where a sentence may need it

# What the kernels count, int64 [COUNTS].
COUNT_UNKNOWN = 0  # calls within lines that are kept, of templates without a rule
COUNT_KEPT = 1  # of these, those that gave their argument
COUNT_BRACKETS = 2  # pairs of brackets and of quotation marks that went with all they held
COUNT_LOGGED = 3  # rows of CALL that are used
COUNT_KNOWN = 4  # calls within lines that are kept, of templates with a rule that describes them
COUNT_EXPANDED = 5  # calls that the dump's own definitions gave text for
COUNT_EMPTY = 6  # calls for which they gave something that is no text
COUNT_FAILED = 7  # calls whose definition needs a module that failed
COUNT_MISSING = 8  # times that a rule read an argument that is nothing but a hole
COUNTS = 9

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
OP_SHOWN = 12  # jump, count, selectors...: jumps if the call has arguments and all of these are empty
OP_KNOWN = 14  # jump, number: goes on if no argument with a higher number is given
OP_WORD = 15  # jump, selector: goes on unless the argument starts like a number
OP_STARTS = 17  # jump, selector, domain: goes on if the argument starts with a key of the table
# jump, selectors of a value, of a range's other end (or 0), of its unit, of the wanted units, of the precision, domains
# of the units' sizes, of what is wanted else, of names (0: none), of names for a value of one (0: as others)
OP_CONVERTED = 18
OP_CONVERTIBLE = 19  # as OP_CONVERTED, writes nothing: goes on if the value can be converted
OP_UNKNOWN = 16  # ends: the rule does not say what such a call shows
OP_FLAG = 11  # jump, bits, wanted: goes on if one of the bits of FLAG_* is set (1) or none is (0)

FLAG_START = 1  # nothing stands before the template on its line
FLAG_BRACKET = 2  # a bracket is open before it
FLAG_DIGIT = 8  # a digit stands before it
FLAG_AFTER_WORD = 16  # a letter, a digit, a slash or an arrow stands before it, with or without a space
FLAG_GLUED = 4  # it follows a word or punctuation without a space, and no word follows it so: a footnote does

FORMAT_PLAIN, FORMAT_NUMBER, FORMAT_LOWER, FORMAT_UPPER, FORMAT_FIRST_UPPER, FORMAT_FIRST_LOWER = range(6)
FORMAT_SUPERSCRIPT = 6
FORMAT_INTEGER = 7  # without leading zeros
FORMAT_CHEMISTRY = 8  # a formula as {{chem2}} takes it
FORMAT_SURE_NUMBER = 9  # FORMAT_NUMBER, if there is a digit
FORMAT_NUMERAL = 10  # without its sign, if there is a digit, and no bracket as that of the last digits' error
FORMAT_EXPONENT = 11  # FORMAT_SUPERSCRIPT, if there is a digit
FORMAT_FORMULA = 12  # TeX
FORMAT_TITLE = 13  # what a link to a page shows: without a bracket or a hyphen at its end
FORMAT_TABLES = 16  # + i: through table i, the value itself if the table has no such key

CASED = 0x600  # code points from here on have no case that rules change: Latin, Greek, Cyrillic and Armenian are below

# What a line of a page is.
LINE_PROSE, LINE_BLANK = 0, 1
LINE_ALONE = 2  # a line that is never joined with its neighbours
LINE_LIST, LINE_HEADING, LINE_DROPPED = 3, 4, 5
LINE_QUOTED = 7  # starts with a colon: a quotation, a poem, a formula, or a list of results
LINE_INDENTED = 6  # starts with a space: preformatted, so mostly code and tables drawn with characters

# EVENT.kind. Braces and brackets of a run get theirs when they are closed.
EVENT_OPEN, EVENT_TEMPLATE, EVENT_PARAMETER, EVENT_LINK, EVENT_EXTERNAL = range(5)
EVENT_TABLE = 5  # a table, or another element that is dropped with its content
EVENT_RAW = 6  # an extension tag, whose content is not wikitext
EVENT_COMMENT, EVENT_VARIANT = 7, 8
