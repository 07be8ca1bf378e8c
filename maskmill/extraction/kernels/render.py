"""Second pass: writes the text of a page.

`render` walks the page once from left to right, copies what is prose and jumps over what is dropped. Where a construct
shows a part of itself (a link its label, a template its arguments) that part is rendered in place: a frame says where
it ends and where to go on then. Arguments of templates are written to the output like all else; when the call ends,
its rule is evaluated after them and the result is moved to where they started.

Every byte read makes at most two bytes of output outside template rules, a rule gives at most its arguments' bytes plus
RULE_SLACK, and rules nest at most MAX_RULE_DEPTH deep, so time and memory grow linearly with the page.

A function that reads and writes takes where it reads, p, and the output's end, o, and returns both anew.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.chemistry import put_chemistry
from maskmill.extraction.kernels.formula import put_formula
from maskmill.extraction.kernels.items import (
    count_words,
    is_citation,
    is_sentence,
    says_something,
    says_something_uncased,
)
from maskmill.extraction.kernels.lines import classify_line, is_list_mark, stray_bold
from maskmill.extraction.kernels.links import (
    OPENING_PARENS,
    external_shows,
    is_symbol,
    link_shows,
    names_category,
    namespace_of,
    variant_shows,
)
from maskmill.extraction.kernels.prose import (
    ends_as_sentence,
    has_small_words,
    is_paragraph,
    is_row_of_names,
    reads_as_prose,
)
from maskmill.extraction.kernels.rules import (
    ARGUMENT,
    MAX_ARGUMENTS,
    Call,
    close_argument,
    evaluate,
    find_template,
    open_argument,
    where_called,
)
from maskmill.extraction.kernels.tables import find, record
from maskmill.extraction.kernels.tags import put_tag
from maskmill.extraction.kernels.text import (
    BRACKET_MARK,
    HOLE,
    HOLES,
    MARK,
    NEWLINES,
    SPACES,
    byte_set,
    copy,
    find_any,
    has_word,
    is_blank,
    is_capital,
    is_digit,
    put_byte,
    put_entity,
    put_hole,
    put_mark,
    skip,
    skip_any,
    skip_back,
    trim,
)
from maskmill.extraction.kernels.unknown_calls import (
    PLACE_BEHIND_STOP,
    PLACE_ELSEWHERE,
    PLACE_SENTENCE,
    ends_line,
    is_footnote,
    is_glued,
    is_on_one_line,
    link_is_word,
    may_name_template,
    may_name_text,
    may_quote,
    names_code,
    only_argument,
    place_of,
    quoted,
    reads_as_text,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

MAX_FRAMES = 256  # constructs rendered within one another
MAX_RULE_DEPTH = 24  # template calls among them
OUTPUT_MARGIN = 64  # bytes at the end of the output that no rule writes to
DEEPEST_APPENDIX = 2  # level of the headings that can start a section of sources and links
LONGEST_SWITCH = 80  # bytes of a behaviour switch
LONGEST_LEAD = 60  # bytes beside links to categories that do not make a sentence of a line
LONGEST_PREFIX = 60  # bytes looked at for the namespace of a link that is never closed

BLOCKQUOTE = np.frombuffer(b"blockquote", np.uint8)
COLON_OR_END = byte_set(b":\n")
SPACED_LIST_MARKS = byte_set(b"*#:; ")
BEHIND_FORMULA = byte_set(b" ,.:;")  # what may stand between a formula and the end of its line

# What is being rendered inside a construct: up to `end` in the page, then on from `resume`. A template's frame also has
# where its text starts in the output, its program, its first argument, the argument that is being written (-1 before
# the first `|`), the number that the next argument without a name gets, its row in `calls` (-1: it is not there), and
# where the call starts in the page.
FRAME = record(np.int64, "kind end resume output program first_argument argument position call start")

# What stands for the program of a template without a rule.
PROGRAM_NONE = -1  # it is dropped
PROGRAM_TEXT = -2  # its argument may show
PROGRAM_CODE = -3  # its argument may show, but no number: the name looks like a catalogue's
PROGRAM_QUOTATION = -4  # an argument of several sentences may show

CALL_UNCOUNTED = -2  # FRAME.call of a call that has its line to itself, and counts only if it shows something

FRAME_RANGE = 1
FRAME_TEMPLATE = 2

STATE_DEPTH = 0  # frames
STATE_LIMIT = 1  # where the innermost frame ends, or the page
STATE_RULES = 2  # template frames
STATE_ARGUMENTS = 3  # rows of `arguments` in use
STATE_EVENT = 4  # the first event that does not lie after us
STATE_QUOTES_END = 5  # up to where in the page apostrophes are counted
STATE_STRAY_BOLD = 6  # see stray_bold
STATE_SKIP_LEVEL = 7  # > 0: inside a section that is dropped, whose heading has this level
STATE_LINE_KIND = 8  # LINE_* of the page's line
STATE_LEVEL = 9  # of the heading that the line is
STATE_LINE_START = 10  # where the line's text starts in the output
STATE_BLANK_TO = 11  # up to where the line's text is known to be blank
STATE_LINE_UNKNOWN = 12  # calls of unknown templates on the line, and of these those that gave their argument
STATE_LINE_KEPT = 13
STATE_LINE_CALLS = 14  # rows of `calls` before the line
STATE_CATEGORIES = 15  # bytes of the line's links to categories and files
STATE_QUOTATION = 16  # 1 inside <blockquote>
STATE_UNDECIDED = 17  # 1 where the next line tells whether the section is dropped
STATE_LINE_KNOWN = 18  # calls of templates with a rule on the line
STATE_WORKS_LEVEL = 19  # > 0: inside a section that lists works, whose heading has this level
STATE_LINE_SOURCE = 20  # where the content of the line starts in the page
STATE_LINE_EVENT = 21  # an event that does not lie after the line
STATES = 22


class Page(NamedTuple):
    """A page as the second pass works on it."""

    text: NDArray[np.uint8]
    n: int
    events: NDArray[np.void]  # EVENT
    used: int  # rows of `events`
    out: NDArray[np.uint8]
    frames: NDArray[np.void]  # FRAME[MAX_FRAMES]
    arguments: NDArray[np.void]  # ARGUMENT[MAX_ARGUMENTS]
    state: NDArray[np.int64]  # [STATES]
    counts: NDArray[np.int64]  # [COUNTS]
    calls: NDArray[np.void]  # CALL


@lean_kernel
def line_is_blank(page, o):
    """Return True if the line's text up to o is blank. Each byte of it is looked at once."""
    blank_to = page.state[STATE_BLANK_TO]
    while blank_to < o and is_blank(page.out[blank_to]):
        blank_to += 1
    page.state[STATE_BLANK_TO] = blank_to
    return blank_to >= o


@inlined_kernel
def enter_range(page, end, resume):
    """Render up to `end` next, and then go on from `resume`."""
    depth = page.state[STATE_DEPTH]
    page.frames[depth].kind = FRAME_RANGE
    page.frames[depth].end = end
    page.frames[depth].resume = resume
    page.state[STATE_DEPTH] = depth + 1
    page.state[STATE_LIMIT] = end


@lean_kernel
def in_template(page):
    """Return True if the innermost frame is a template's."""
    depth = page.state[STATE_DEPTH]
    return depth > 0 and page.frames[depth - 1].kind == FRAME_TEMPLATE


@lean_kernel
def heading_end(page, q):
    """Return the end of the line that starts with the `=` at q. Templates, comments and references in it may hold
    newlines.
    """
    text, events = page.text, page.events
    e = page.state[STATE_EVENT]
    while e < page.used and events[e].start < q:
        e += 1
    page.state[STATE_EVENT] = e
    i = q
    while i < page.n and text[i] != ascii.NEWLINE:
        while e < page.used and events[e].start < i:
            e += 1
        closed = e < page.used and events[e].start == i and events[e].end > i
        i = np.int64(events[e].end) if closed else i + 1
    return i


@inlined_kernel
def start_line(page, q):
    """Begin the line of the page that starts at q; return the first byte of its content."""
    end = heading_end(page, q) if page.text[q] == ascii.EQUALS else q
    kind, p, level, content_end, line_end = classify_line(page.text, q, page.n, end)
    if kind == codes.LINE_INDENTED and page.state[STATE_QUOTATION] != 0:
        kind = codes.LINE_ALONE  # a space does not make preformatted text there
    page.state[STATE_LINE_KIND] = kind
    page.state[STATE_LEVEL] = level
    page.state[STATE_LINE_SOURCE] = p
    page.state[STATE_LINE_EVENT] = page.state[STATE_EVENT]
    if kind == codes.LINE_HEADING:
        page.state[STATE_QUOTATION] = 0  # which somebody forgot to close
        enter_range(page, content_end, line_end)
    return p


@inlined_kernel
def enter_section(page, o, tables):
    """Note at the end of a heading whether its section is dropped, or lists works."""
    state = page.state
    level = state[STATE_LEVEL]
    if level <= state[STATE_SKIP_LEVEL]:
        state[STATE_SKIP_LEVEL] = 0
    if level <= state[STATE_WORKS_LEVEL]:
        state[STATE_WORKS_LEVEL] = 0
    start, end = trim(page.out, state[STATE_LINE_START], o)
    row = find(tables, codes.DOMAIN_SECTION, page.out, start, end)
    if row < 0:
        # "Works (selection)" lists works, too, but "Notes (music)" may be prose.
        _, end = trim(page.out, start, find_any(page.out, start, end, OPENING_PARENS))
        row = find(tables, codes.DOMAIN_SECTION, page.out, start, end)
        if row < 0 or tables.words[row].value != codes.SECTION_OF_WORKS:
            return
    if tables.words[row].value == codes.SECTION_OF_WORKS or level > DEEPEST_APPENDIX:
        if state[STATE_WORKS_LEVEL] == 0:
            state[STATE_WORKS_LEVEL] = level
    elif state[STATE_SKIP_LEVEL] == 0:
        state[STATE_SKIP_LEVEL] = level
        state[STATE_UNDECIDED] = tables.words[row].value == codes.SECTION_OR_TOPIC


@lean_kernel
def decide_section(page, o, tables):
    """Keep the section after all whose first line ends at o if that line is a paragraph of prose."""
    state = page.state
    if state[STATE_LINE_KIND] != codes.LINE_HEADING:
        state[STATE_UNDECIDED] = 0
        if state[STATE_LINE_KIND] == codes.LINE_PROSE and is_paragraph(page.out, state[STATE_LINE_START], o, tables):
            state[STATE_SKIP_LEVEL] = 0


@lean_kernel
def lists_categories(page, start, o):
    """Return True if the line is little more than links to categories ("See also Category:Rivers"), not a sentence."""
    if start > 0 and page.out[start - 1] == ascii.SPACE:  # it goes on with the line before
        return False
    rest = o - start - page.state[STATE_CATEGORIES]
    return rest < LONGEST_LEAD and not ends_as_sentence(page.out, start, o)


@lean_kernel
def item_is_kept(page, p, o, tables):
    """Return True if the item of a list that ends before p is kept, its text ending at o."""
    state = page.state
    start = state[STATE_LINE_START]
    lists = tables.settings[codes.SETTING_LISTS]
    if lists != codes.LISTS_SENTENCES:
        return lists == codes.LISTS_KEEP
    in_works = state[STATE_WORKS_LEVEL] > 0
    first = state[STATE_LINE_EVENT]
    if is_sentence(page.out, start, o, in_works, tables):
        return not is_citation(page.text, state[STATE_LINE_SOURCE], p, page.events[: page.used], first, tables)
    if in_works:
        return False
    outside = count_words(page.text, state[STATE_LINE_SOURCE], p, page.events[: page.used], first, True, tables)
    if says_something_uncased(outside):
        return True
    if outside.small == 0 and outside.long_behind == 0:
        return False  # as most lists of names end here, their text need not be counted
    return says_something(count_words(page.out, start, o, page.events[:0], 0, False, tables), outside)


@inlined_kernel
def line_is_kept(page, p, o, tables):
    """Return True if the text of the line that ends at o, and in the page before p, is kept."""
    kind = page.state[STATE_LINE_KIND]
    if line_is_blank(page, o) or kind == codes.LINE_DROPPED:
        return False
    if page.state[STATE_SKIP_LEVEL] > 0 and page.state[STATE_UNDECIDED] != 0:
        decide_section(page, o, tables)
    if page.state[STATE_SKIP_LEVEL] > 0:
        return False
    start = page.state[STATE_LINE_START]
    if kind == codes.LINE_HEADING:
        return tables.settings[codes.SETTING_KEEP_HEADINGS] != 0
    if kind == codes.LINE_LIST:
        return item_is_kept(page, p, o, tables)
    if kind == codes.LINE_QUOTED and tables.settings[codes.SETTING_LISTS] != codes.LISTS_KEEP:
        if not (ends_as_sentence(page.out, start, o) or has_small_words(page.out, start, o, tables)):
            return False
    if page.state[STATE_CATEGORIES] > 0 and lists_categories(page, start, o):
        return False
    if is_row_of_names(page.out, start, o):
        return False
    return kind != codes.LINE_INDENTED or reads_as_prose(page.out, start, o)


@inlined_kernel
def count_line(page, kept):
    """Count the calls of the line that ends, or forget them where the line is not kept."""
    state, counts = page.state, page.counts
    if kept:
        counts[codes.COUNT_KNOWN] += state[STATE_LINE_KNOWN]
        counts[codes.COUNT_UNKNOWN] += state[STATE_LINE_UNKNOWN]
        counts[codes.COUNT_KEPT] += state[STATE_LINE_KEPT]
    else:
        counts[codes.COUNT_LOGGED] = state[STATE_LINE_CALLS]
    state[STATE_LINE_KNOWN] = 0
    state[STATE_LINE_UNKNOWN] = 0
    state[STATE_LINE_KEPT] = 0
    state[STATE_LINE_CALLS] = counts[codes.COUNT_LOGGED]


@lean_kernel
def finish_line(page, p, o, tables):
    """End the line of the page whose newline is at p, and begin the next one."""
    state = page.state
    kind = state[STATE_LINE_KIND]
    if kind == codes.LINE_HEADING:
        enter_section(page, o, tables)
    kept = line_is_kept(page, p, o, tables)
    listed = page.counts[codes.COUNT_LOGGED] - state[STATE_LINE_CALLS]
    if state[STATE_LINE_KNOWN] + state[STATE_LINE_UNKNOWN] + listed > 0:
        count_line(page, kept)
    p = start_line(page, p + 1)
    if kept:
        joined = kind == codes.LINE_PROSE and state[STATE_LINE_KIND] == codes.LINE_PROSE
        o = put_byte(page.out, o, ascii.SPACE if joined else ascii.NEWLINE)
    else:
        # Nothing is left of this line: the line before it ends a paragraph, unless a comment was all.
        o = state[STATE_LINE_START]
        if o > 0:
            page.out[o - 1] = ascii.NEWLINE
    state[STATE_LINE_START] = o
    state[STATE_BLANK_TO] = o
    state[STATE_CATEGORIES] = 0
    return p, o


@inlined_kernel
def list_call(page, start, end, kept):
    """List the call text[start:end]; return its row in `calls`, -1 if there is no room."""
    row = page.counts[codes.COUNT_LOGGED]
    if row >= len(page.calls):
        return -1
    page.calls[row].start = start
    page.calls[row].end = end
    page.calls[row].kept = kept
    page.counts[codes.COUNT_LOGGED] = row + 1
    return row


@inlined_kernel
def count_call(page, start, end):
    """Count the call text[start:end] of a template without a rule; return its row in `calls`, -1 if there is no
    room.
    """
    page.state[STATE_LINE_UNKNOWN] += 1
    return list_call(page, start, end, codes.CALL_DROPPED)


@lean_kernel
def count_known(page, frame, shows, tables):
    """Count the call whose frame was left, which its rule describes; show: whether that gives text.

    A call that gives none can hold another that a definition gives text for.
    """
    page.state[STATE_LINE_KNOWN] += 1
    last = page.counts[codes.COUNT_LOGGED] - 1
    if last >= 0 and page.calls[last].start > frame.start:
        shows = True
    if shows and tables.settings[codes.SETTING_LISTED] == codes.LISTED_ALL:
        if page.state[STATE_LINE_KIND] != codes.LINE_HEADING:
            is_line = line_is_blank(page, frame.output) and ends_line(page.text, frame.resume, page.n)
            if not is_line:
                list_call(page, frame.start, frame.resume, codes.CALL_KNOWN)


@inlined_kernel
def set_apart(page):
    """Keep the present line apart from both of its neighbours."""
    page.state[STATE_LINE_KIND] = codes.LINE_ALONE
    line_start = page.state[STATE_LINE_START]
    if line_start > 0:
        page.out[line_start - 1] = ascii.NEWLINE


@lean_kernel
def begins_argument(page, o):
    """Return True if nothing but white space is written before o of the argument that is being rendered."""
    if not in_template(page):
        return False
    a = page.frames[page.state[STATE_DEPTH] - 1].argument
    return a >= 0 and skip_back(page.out, o, np.int64(page.arguments[a].start), ascii.SPACE) == page.arguments[a].start


@lean_kernel
def put_call_hole(page, start, end, call, o, tables):
    """Write the mark of the call text[start:end], which gave nothing: of a hole, unless it stands as a footnote does.

    call: its row in `calls`, -1 if it is not there.
    """
    if is_footnote(page.text, np.int64(start), np.int64(end), page.n, begins_argument(page, o), tables):
        return put_mark(page.out, o)
    if call >= 0:
        page.calls[call].kept = codes.CALL_HOLE
    return put_hole(tables, page.out, o)


@lean_kernel
def put_argument(page, call, frame, o):
    """Write at o the argument of the unknown call whose frame was left, if it reads as text; the output's end."""
    start, end = only_argument(call)
    is_text = start < end and frame.program != PROGRAM_QUOTATION
    if not is_text or not reads_as_text(call.out, start, end, frame.program == PROGRAM_CODE):
        start, end = quoted(call)
        if start >= end:
            return put_call_hole(page, frame.start, frame.resume, frame.call, o, call.tables)
    page.state[STATE_LINE_KEPT] += 1
    row = frame.call
    if row == CALL_UNCOUNTED:
        row = count_call(page, frame.start, frame.resume)
        set_apart(page)
    if row >= 0:
        page.calls[row].kept = codes.CALL_KEPT
    return copy(call.out, start, end, call.out, o)


@lean_kernel
def count_misread(page, frame):
    """Count the call whose frame was left, which its rule does not describe, as one without a rule.

    Its row in `calls`, -1 if it is not there.
    """
    kind = page.state[STATE_LINE_KIND]
    if kind != codes.LINE_HEADING and kind != codes.LINE_DROPPED and page.state[STATE_SKIP_LEVEL] == 0:
        return np.int64(count_call(page, frame.start, frame.resume))
    return np.int64(-1)


@inlined_kernel
def flags_of(page, frame):
    """Return FLAG_* of the call whose frame was left."""
    out, start, line_start = page.out, frame.output, page.state[STATE_LINE_START]
    flags = where_called(out, line_start, start, line_is_blank(page, start))
    if is_glued(page.text, frame.start, frame.resume, page.n):
        flags |= codes.FLAG_GLUED
    if start > line_start and is_digit(out[start - 1]):
        flags |= codes.FLAG_DIGIT
    return flags


@lean_kernel
def finish_template(page, p, o, title, tables):
    """Evaluate the template whose frame was left and put its text in the place of its arguments; the output's end.

    p: where the page goes on, which tells how much of the output the rest of it may need.
    """
    out, state = page.out, page.state
    frame = page.frames[state[STATE_DEPTH]]
    start = frame.output
    first = frame.first_argument
    last = first
    if frame.argument >= 0:
        close_argument(page.arguments, frame.argument, out, o, frame.position)
        last = state[STATE_ARGUMENTS]
    else:
        o = start
    room = min(len(out) - OUTPUT_MARGIN - 2 * (page.n - p), o + (o - start) + codes.RULE_SLACK)
    state[STATE_BLANK_TO] = min(state[STATE_BLANK_TO], start)
    flags = 0 if frame.program < 0 else flags_of(page, frame)
    call = Call(tables, page.arguments, first, last, out, room, title, flags, page.counts)
    if frame.program < 0:
        o = put_argument(page, call, frame, start)
    else:
        missing = page.counts[codes.COUNT_MISSING]
        end = evaluate(call, frame.program, o)
        if end < 0:
            o = put_call_hole(page, frame.start, frame.resume, count_misread(page, frame), start, tables)
        else:
            count_known(page, frame, end > o, tables)
            if page.counts[codes.COUNT_MISSING] > missing:
                o = put_hole(tables, out, start)  # so has one of the values that it shows or asks for
            elif end > o:
                o = copy(out, o, end, out, start)
            elif tables.code[frame.program] != codes.OP_END and find_any(out, start, o, HOLES) < o:
                o = put_hole(tables, out, start)  # what it would show has a hole
            else:
                o = put_mark(out, start)
    state[STATE_BLANK_TO] = min(state[STATE_BLANK_TO], start)
    state[STATE_ARGUMENTS] = first
    state[STATE_RULES] -= 1
    return o


@inlined_kernel
def leave_frame(page, o, title, tables):
    """Leave the innermost frame, all of which is rendered."""
    depth = page.state[STATE_DEPTH] - 1
    page.state[STATE_DEPTH] = depth
    p = page.frames[depth].resume
    if page.frames[depth].kind == FRAME_TEMPLATE:
        o = finish_template(page, p, o, title, tables)
    page.state[STATE_LIMIT] = page.frames[depth - 1].end if depth > 0 else page.n
    return p, o


@inlined_kernel
def put_inner_newline(page, p, o):
    """Write the newline at p, which stands inside a construct: as a space, but in a template before a list's item."""
    text = page.text
    p += 1
    if in_template(page) and (text[p] == ascii.NEWLINE or is_list_mark(text[p])):
        return skip_any(text, p, page.state[STATE_LIMIT], SPACED_LIST_MARKS), put_byte(page.out, o, ascii.NEWLINE)
    return p, put_byte(page.out, o, ascii.SPACE)


@inlined_kernel
def put_apostrophes(page, p, o):
    """Write those of the run of apostrophes at p that mark neither bold nor italic text."""
    state = page.state
    j = skip(page.text, p, state[STATE_LIMIT], ascii.APOSTROPHE)
    run = j - p
    if run == 1:
        return j, put_byte(page.out, o, ascii.APOSTROPHE)
    if p >= state[STATE_QUOTES_END]:
        state[STATE_QUOTES_END], state[STATE_STRAY_BOLD] = stray_bold(page.text, p, page.n)
    literal = 0
    if run == 4:
        literal = 1
    elif run > 5:
        literal = run - 5
    if run >= 3 and j - 3 == state[STATE_STRAY_BOLD]:
        literal += 1
    for _ in range(literal):
        o = put_byte(page.out, o, ascii.APOSTROPHE)
    return j, o


@inlined_kernel
def begin_argument(page, depth, o):
    """Begin the next argument of the template in frame `depth`, unless there are too many: then it is not kept."""
    a = page.state[STATE_ARGUMENTS]
    if a < MAX_ARGUMENTS:
        open_argument(page.arguments, a, o)
        page.frames[depth].argument = a
        page.state[STATE_ARGUMENTS] = a + 1


@inlined_kernel
def put_pipe(page, o):
    """End a template's argument and begin the next, or write a `|`; return the new end of the output."""
    if not in_template(page):
        return put_byte(page.out, o, ascii.PIPE)
    top = page.state[STATE_DEPTH] - 1
    frame = page.frames[top]
    if frame.argument >= 0:
        page.frames[top].position = close_argument(page.arguments, frame.argument, page.out, o, frame.position)
    else:
        # What stands between the name and the first argument is a comment's mark.
        o = frame.output
    begin_argument(page, top, o)
    return o


@inlined_kernel
def put_equals(page, o):
    """End the name of a template's argument, or write a `=`; return the new end of the output."""
    if in_template(page):
        a = page.frames[page.state[STATE_DEPTH] - 1].argument
        if a >= 0 and page.arguments[a].name_start < 0:
            page.arguments[a].name_start = page.arguments[a].start
            page.arguments[a].name_end = o
            page.arguments[a].start = o
            return o
    return put_byte(page.out, o, ascii.EQUALS)


@inlined_kernel
def put_stray_closer(page, p, o, c):
    """Write a single closing bracket or brace at p; drop a run of them, which is what is left of broken markup."""
    j = skip(page.text, p, page.state[STATE_LIMIT], c)
    return j, put_byte(page.out, o, c) if j - p == 1 else o


@inlined_kernel
def switch_end(text, p, limit):
    """Return (one past the name in capitals between two underscores on either side that starts at p, whether it is
    ASCII); 0 if there is none."""
    is_ascii = True
    j = p + 2
    stop = min(limit - 1, p + LONGEST_SWITCH)
    while j < stop and text[p + 1] == ascii.UNDERSCORE:
        c = text[j]
        if c == ascii.UNDERSCORE and text[j + 1] == ascii.UNDERSCORE:
            return j + 2 if j > p + 2 else 0, is_ascii
        if not (is_capital(c) or c >= ascii.NOT_ASCII or c == ascii.UNDERSCORE):
            break
        is_ascii = is_ascii and c < ascii.NOT_ASCII
        j += 1
    return 0, is_ascii


@inlined_kernel
def put_underscore(page, p, o, tables):
    """Write the `_` at p, unless it starts a behaviour switch.

    That is one that MediaWiki knows, one that has its line to itself, or one in a script that MediaWiki's translations
    write their switches in. Others are text, as `__FILE__`.
    """
    j, is_ascii = switch_end(page.text, p, page.state[STATE_LIMIT])
    if j > 0:
        is_line = page.state[STATE_DEPTH] == 0 and line_is_blank(page, o) and ends_line(page.text, j, page.n)
        if not is_ascii or is_line or find(tables, codes.DOMAIN_SWITCH, page.text, p + 2, j - 2) >= 0:
            return j, o
    return p + 1, put_byte(page.out, o, ascii.UNDERSCORE)


@lean_kernel
def run_end(page, p, e):
    """Return the end of the run of braces or brackets at p, or where in it a construct starts.

    e: the first event that does not start before p.
    """
    text, events = page.text, page.events
    limit = page.state[STATE_LIMIT]
    j = p
    while j < limit and text[j] == text[p]:
        while e < page.used and (events[e].start < j or (events[e].start == j and events[e].end < 0)):
            e += 1
        if j > p and e < page.used and events[e].start == j:
            break
        j += 1
    return j


@inlined_kernel
def put_unclosed_brackets(page, p, o, j, tables):
    """Pass over the brackets text[p:j], which open nothing; a link to a file drops the rest of its line."""
    text = page.text
    if j - p == 1:
        return j, put_byte(page.out, o, ascii.OPEN_BRACKET)
    if page.state[STATE_DEPTH] == 0:
        colon = find_any(text, j, min(page.state[STATE_LIMIT], j + LONGEST_PREFIX), COLON_OR_END)
        kind = namespace_of(text, j, colon, tables) if text[colon] == ascii.COLON else 0
        blank = line_is_blank(page, o)
        if blank and (kind == codes.NAMESPACE_FILE or kind == codes.NAMESPACE_CATEGORY):
            page.state[STATE_LINE_KIND] = codes.LINE_DROPPED
        elif kind == codes.NAMESPACE_FILE:
            if page.state[STATE_LINE_KIND] == codes.LINE_PROSE:
                page.state[STATE_LINE_KIND] = codes.LINE_ALONE  # what follows is no part of its sentence
            return find_any(text, j, page.n, NEWLINES), put_mark(page.out, o)
    return j, o


@inlined_kernel
def put_unclosed_braces(page, p, o, j):
    """Pass over the braces text[p:j], which open nothing; at the start of a line they drop it.

    They are what is left of a template or of a table that is never closed.
    """
    single = j - p == 1
    if not single or page.text[p + 1] == ascii.PIPE:
        if page.state[STATE_DEPTH] == 0 and line_is_blank(page, o):
            page.state[STATE_LINE_KIND] = codes.LINE_DROPPED
    return j, put_byte(page.out, o, ascii.OPEN_BRACE) if single else o


@inlined_kernel
def note_quotation(page, p):
    """Note whether the tag at p begins or end a quotation; a line in which one begins is kept."""
    state = page.state
    closing = page.text[p + 1] == ascii.SLASH
    if not has_word(page.text, p + 1 + closing, BLOCKQUOTE):
        return
    state[STATE_QUOTATION] = not closing
    kind = state[STATE_LINE_KIND]
    if (
        not closing
        and state[STATE_DEPTH] == 0
        and (kind == codes.LINE_LIST or kind == codes.LINE_INDENTED or kind == codes.LINE_QUOTED)
    ):
        state[STATE_LINE_KIND] = codes.LINE_ALONE


@lean_kernel
def put_unpaired(page, p, o, e, tables):
    """Write what the byte at p stands for, which may start a construct but does not; e: the first event from p on."""
    c = page.text[p]
    if c == ascii.LESS_THAN:
        note_quotation(page, p)
        return put_tag(page.text, p, page.state[STATE_LIMIT], page.out, o, page.state[STATE_DEPTH], tables)
    if c == ascii.OPEN_BRACKET:
        return put_unclosed_brackets(page, p, o, run_end(page, p, e), tables)
    if c == ascii.OPEN_BRACE:
        return put_unclosed_braces(page, p, o, run_end(page, p, e))
    return p + 1, put_byte(page.out, o, c)


@lean_kernel
def enter_unknown(page, o, e, p, name, name_end, tables):
    """Return (PROGRAM_*, row in `calls`) of the call that event e is, of a template without a rule.

    p: where its arguments start. name, name_end: where its name stands.
    """
    text, state = page.text, page.state
    start, end = np.int64(page.events[e].start), np.int64(page.events[e].end)
    kind = state[STATE_LINE_KIND]
    if kind == codes.LINE_HEADING or kind == codes.LINE_DROPPED or state[STATE_SKIP_LEVEL] > 0:
        return PROGRAM_NONE, -1
    blank = line_is_blank(page, o)
    may_hold = kind != codes.LINE_LIST and kind != codes.LINE_INDENTED and text[p] == ascii.PIPE
    if blank and ends_line(text, end, page.n):
        if may_hold and may_name_template(text, name, name_end) and may_quote(text, p, end - 2, tables):
            return PROGRAM_QUOTATION, CALL_UNCOUNTED
        return PROGRAM_NONE, -1
    if not may_name_template(text, name, name_end):
        if tables.settings[codes.SETTING_LISTED] >= codes.LISTED_FUNCTIONS:
            list_call(page, start, end, codes.CALL_FUNCTION)
        return PROGRAM_NONE, -1
    call = count_call(page, start, end)
    if not may_name_text(text, name, name_end, tables):
        return PROGRAM_NONE, call
    quotes = may_hold and not is_glued(text, start, end, page.n) and may_quote(text, p, end - 2, tables)
    otherwise = PROGRAM_QUOTATION if quotes else PROGRAM_NONE
    if blank or kind == codes.LINE_INDENTED or text[p] != ascii.PIPE or not is_on_one_line(text, start, end):
        return otherwise, call
    place = place_of(text, start, end, page.n)
    if place == PLACE_BEHIND_STOP:
        flags = where_called(page.out, state[STATE_LINE_START], o, False)
        place = PLACE_SENTENCE if flags & codes.FLAG_BRACKET else PLACE_ELSEWHERE
    if place != PLACE_SENTENCE:
        return otherwise, call
    return PROGRAM_CODE if names_code(text, name, name_end, tables) else PROGRAM_TEXT, call


@inlined_kernel
def put_template(page, o, e, tables):
    """Enter the template call that event e is, if it shows something; else drops it."""
    state, frames = page.state, page.frames
    event = page.events[e]
    inner, inner_end = np.int64(event.inner_start), np.int64(event.inner_end)
    program, p, name, name_end = find_template(page.text, inner, inner_end, tables)
    call = np.int64(-1)
    if program < 0:
        program, call = enter_unknown(page, o, e, p, name, name_end, tables)
    if program == PROGRAM_NONE or state[STATE_RULES] >= MAX_RULE_DEPTH:
        return np.int64(event.end), put_call_hole(page, event.start, event.end, call, o, tables)
    depth = state[STATE_DEPTH]
    enter_range(page, inner_end, np.int64(event.end))
    frames[depth].kind = FRAME_TEMPLATE
    frames[depth].output = o
    frames[depth].program = program
    frames[depth].first_argument = state[STATE_ARGUMENTS]
    frames[depth].argument = -1
    frames[depth].position = 1
    frames[depth].call = call
    frames[depth].start = event.start
    state[STATE_RULES] += 1
    if page.text[p] == ascii.COLON and p < event.inner_end:
        # A parser function's first argument follows its colon.
        begin_argument(page, depth, o)
        p += 1
    return p, o


@inlined_kernel
def put_link(page, o, e, tables):
    """Enter what the internal link that event e is shows."""
    event = page.events[e]
    start, end = link_shows(page.text, np.int64(event.inner_start), np.int64(event.inner_end), tables)
    if start < 0:
        is_word = is_symbol(page.text, np.int64(event.start), np.int64(event.end))
        return np.int64(event.end), put_hole(tables, page.out, o) if is_word else put_mark(page.out, o)
    if names_category(page.text, np.int64(event.inner_start), np.int64(event.inner_end), tables):
        page.state[STATE_CATEGORIES] += end - start
    enter_range(page, end, np.int64(event.end))
    return start, o


@inlined_kernel
def put_shown(page, o, e, start, end):
    """Enter the range of the page that the construct that event e is shows, unless it is empty."""
    if start >= end:
        return np.int64(page.events[e].end), put_mark(page.out, o)
    enter_range(page, end, np.int64(page.events[e].end))
    return start, o


@inlined_kernel
def put_external(page, o, e, tables):
    """Enter what the external link that event e is shows; without a label the wiki shows a number."""
    event = page.events[e]
    end = np.int64(event.inner_end)
    start = external_shows(page.text, np.int64(event.inner_start), end)
    if start >= end and link_is_word(page.text, np.int64(event.start), np.int64(event.end), page.n):
        return np.int64(event.end), put_hole(tables, page.out, o)
    return put_shown(page, o, e, start, end)


@inlined_kernel
def put_table(page, o, e):
    """Drop the table or the hidden element that event e is. Only elements that stand within a line leave it whole."""
    if page.events[e].tag == codes.TAG_INLINE:
        o = put_mark(page.out, o)
    else:
        o = put_byte(page.out, o, ascii.NEWLINE if page.state[STATE_DEPTH] == 0 else ascii.SPACE)
    return np.int64(page.events[e].end), o


@inlined_kernel
def put_literal_text(text, p, end, out, o, tables):
    """Write the content text[p:end] of `<nowiki>`, in which only entities mean something; the output's end."""
    while p < end:
        if text[p] == ascii.AMPERSAND:
            p, o = put_entity(text, p, end, out, o, tables)
        else:
            o = put_byte(out, o, ascii.SPACE if text[p] == ascii.NEWLINE else text[p])
            p += 1
    return o


@inlined_kernel
def put_math(page, o, e, tables):
    """Write the formula that event e is, unless it has a line to itself: then it is not a part of a sentence."""
    text, event = page.text, page.events[e]
    end = np.int64(event.end)
    j = skip_any(text, end, page.n, BEHIND_FORMULA)
    blank = line_is_blank(page, o)
    if blank and page.state[STATE_DEPTH] == 0 and (text[j] == ascii.NEWLINE or j >= page.n):
        return j, put_mark(page.out, o)
    inner, inner_end = np.int64(event.inner_start), np.int64(event.inner_end)
    if event.tag == codes.TAG_MATH:
        after = put_formula(text, inner, inner_end, page.out, o, tables)
    else:
        after = put_chemistry(text, inner, inner_end, page.out, o, o + 2 * (end - event.start))
    return end, after if after > o else put_hole(tables, page.out, o)


@inlined_kernel
def put_raw(page, o, e, tables):
    """Write or enter what the extension tag that event e is shows."""
    event = page.events[e]
    start, end = np.int64(event.inner_start), np.int64(event.inner_end)
    if event.tag == codes.TAG_MATH or event.tag == codes.TAG_CHEMISTRY:
        return put_math(page, o, e, tables)
    if event.tag == codes.TAG_LITERAL:
        return np.int64(event.end), put_literal_text(page.text, start, end, page.out, o, tables)
    if event.tag == codes.TAG_CODE:
        return np.int64(event.end), copy(page.text, start, end, page.out, o)
    if event.tag == codes.TAG_MAP:
        return put_shown(page, o, e, start, end)
    if event.tag == codes.TAG_HIDDEN:
        return np.int64(event.end), put_hole(tables, page.out, o)
    return np.int64(event.end), put_mark(page.out, o)


@inlined_kernel
def put_comment(page, o, e):
    """Drop the comment that event e is; one that has its lines to itself leaves none."""
    text, state = page.text, page.state
    p = np.int64(page.events[e].end)
    if state[STATE_DEPTH] == 0 and o == state[STATE_LINE_START]:
        j = skip_any(text, p, page.n, SPACES)
        if text[j] == ascii.NEWLINE and j < page.n:
            p = start_line(page, j + 1)
            if state[STATE_LINE_KIND] != codes.LINE_PROSE and o > 0:
                page.out[o - 1] = ascii.NEWLINE
            return p, o
    return p, put_mark(page.out, o)


@lean_kernel
def put_construct(page, o, e, tables):
    """Write or enter the construct that event e is."""
    event = page.events[e]
    start, end = np.int64(event.inner_start), np.int64(event.inner_end)
    if event.kind == codes.EVENT_TEMPLATE:
        return put_template(page, o, e, tables)
    if event.kind == codes.EVENT_LINK:
        return put_link(page, o, e, tables)
    if event.kind == codes.EVENT_EXTERNAL:
        return put_external(page, o, e, tables)
    if event.kind == codes.EVENT_TABLE:
        return put_table(page, o, e)
    if event.kind == codes.EVENT_RAW:
        return put_raw(page, o, e, tables)
    if event.kind == codes.EVENT_COMMENT:
        return put_comment(page, o, e)
    if event.kind == codes.EVENT_VARIANT:
        start, end = variant_shows(page.text, start, end, tables)
        return put_shown(page, o, e, start, end)
    # EVENT_PARAMETER
    return np.int64(event.end), put_mark(page.out, o)


@inlined_kernel
def put_possible_construct(page, p, o, tables):
    """Write or enter the construct that starts at p, if the first pass found one; else writes the byte."""
    events, state = page.events, page.state
    e = state[STATE_EVENT]
    while e < page.used and events[e].start < p:
        e += 1
    state[STATE_EVENT] = e
    if e >= page.used or events[e].start != p or events[e].end < 0 or events[e].end > state[STATE_LIMIT]:
        return put_unpaired(page, p, o, e, tables)
    if state[STATE_DEPTH] >= MAX_FRAMES - 1:
        return np.int64(events[e].end), put_mark(page.out, o)
    return put_construct(page, o, e, tables)


@inlined_kernel
def put_markup(page, p, o, tables):
    """Write what stands for the byte at p, which is one that means something in wikitext."""
    c = page.text[p]
    if c == ascii.NEWLINE:
        return put_inner_newline(page, p, o)
    if c == ascii.APOSTROPHE:
        return put_apostrophes(page, p, o)
    if c == ascii.AMPERSAND:
        return put_entity(page.text, p, page.state[STATE_LIMIT], page.out, o, tables)
    if c == ascii.PIPE:
        return p + 1, put_pipe(page, o)
    if c == ascii.EQUALS:
        return p + 1, put_equals(page, o)
    if c == ascii.CLOSE_BRACKET or c == ascii.CLOSE_BRACE:
        return put_stray_closer(page, p, o, c)
    if c == ascii.UNDERSCORE:
        return put_underscore(page, p, o, tables)
    if c == HOLE:
        return p + 1, put_hole(tables, page.out, o)
    if c == MARK or c == BRACKET_MARK:
        return p + 1, o
    if c == ascii.CARRIAGE_RETURN:  # of a template's definition: those of pages are line ends by now
        page.out[o] = ascii.SPACE
        return p + 1, o + 1
    return put_possible_construct(page, p, o, tables)


@lean_kernel
def put_page(page, title, tables):
    """Write the text of a page; return the number of bytes written."""
    text, n, out, state = page.text, page.n, page.out, page.state
    classes = tables.render_class
    o = n - n
    p = start_line(page, o)
    while True:
        limit = state[STATE_LIMIT]
        if p >= limit and state[STATE_DEPTH] > 0:
            p, o = leave_frame(page, o, title, tables)
        elif p >= n or (text[p] == ascii.NEWLINE and state[STATE_DEPTH] == 0):
            at_end = p >= n
            p, o = finish_line(page, p, o, tables)
            if at_end:
                return o
        elif not classes[text[p]]:
            while p < limit and not classes[text[p]]:
                out[o] = text[p]
                o += 1
                p += 1
        else:
            p, o = put_markup(page, p, o, tables)


@inlined_kernel
def render(text, n, events, used, title, tables, out, counts, calls):
    """Write the text of a page to `out`, uint8[at least 2 n + ROOM]; return the number of bytes written.

    text: uint8[n + PADDING]. events, used: what `structure` gives. title: uint8, of the page. counts: int64[COUNTS],
    added to. calls: CALL[any], filled with calls of lines that are kept (LISTED_*). In what is written lines end with
    a newline, MARK or HOLE stands where something was dropped, and white space is not yet collapsed.
    """
    frames = np.empty(MAX_FRAMES, FRAME)
    arguments = np.empty(MAX_ARGUMENTS, ARGUMENT)
    state = np.zeros(STATES, np.int64)
    state[STATE_STRAY_BOLD] = -1
    state[STATE_LIMIT] = n
    state[STATE_LINE_CALLS] = counts[codes.COUNT_LOGGED]
    return put_page(Page(text, n, events, used, out, frames, arguments, state, counts, calls), title, tables)
