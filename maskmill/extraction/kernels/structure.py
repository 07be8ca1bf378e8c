"""First pass: finds every construct of a page that has a closing mark, and where it ends.

Openers wait on a stack until their closing mark comes; each also has a row of `events` from the start, so that the
rows stand in the order of their first bytes, which is how the second pass meets them. An opener that is never closed
keeps `end` -1.

The pass takes linear time: each byte is looked at once, and each opener is put on the stack and taken off it once. The
searches for the end of a comment or an extension tag look ahead; one that fails is not made again for the same tag.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.links import ADDRESS_ENDS, namespace_of
from maskmill.extraction.kernels.tables import find, record
from maskmill.extraction.kernels.tags import (
    TEXT,
    attribute_value,
    closing_tag,
    comment_end,
    extension_tag_end,
    gloss_end,
    is_hidden,
    is_inline_code,
    starts_comment,
    tag_end,
    tag_name_end,
)
from maskmill.extraction.kernels.text import (
    byte_set,
    find_any,
    has_word,
    is_letter,
    separator_at,
    skip,
    stands_at,
    trim,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

MAX_RUN = 8  # braces or brackets of one run that can open something; more are literal
MAX_VARIANTS = 8  # `-{` open at once
MOST_BREAKS = 8  # blank lines and items in the caption of a file
LONGEST_NAMESPACE = 60  # bytes looked at for the namespace of a link
TAG_NUMBERS = 256
COLON_OR_END = byte_set(b":\n")

# One possible construct: [start, end) are its bytes, with its marks; `end` is -1 while it is not closed. What it
# contains is [inner_start, inner_end); comments and tables have none. `tag` is TAG_*, of tables and raw elements.
EVENT = record(np.int32, "start end kind inner_start inner_end tag")

# An opener on the stack: STACK_*, its first byte, how many marks of its run are left, the last row of `events` that
# belongs to it. Of brackets also how many blank lines and items came since. Of elements also the number of their tag,
# and of those that hide their content (and of those of the same tag inside them) STATE_HIDDEN as it was before.
OPENER = record(np.int32, "kind start run event tag hidden_before breaks")

STACK_BRACE, STACK_BRACKET, STACK_EXTERNAL, STACK_TABLE, STACK_VARIANT = range(5)
STACK_TABLE_TAG = 5  # the kinds from here on are elements
STACK_HIDDEN = 6
STACK_NESTED = 7  # an element of the same tag inside a hidden one
STACK_KINDS = 8

# What a newline ends, beside a line.
BREAK_NONE = 0
BREAK_PARAGRAPH = 1  # a blank line follows, or an item of a list
BREAK_SECTION = 2

STATE_USED = 0  # rows of `events`
STATE_DEPTH = 1  # openers on the stack
STATE_HIDDEN = 2  # one more than the place on the stack of the innermost STACK_HIDDEN or STACK_NESTED; 0: none
STATE_LINE = 3  # the position of the last newline
STATE_NO_COMMENT_END = 4  # 1 once no `-->` was found
STATES = 5

# What an external link can start with, one a row, zeros after it: those of MediaWiki's $wgUrlProtocols.
_PROTOCOLS = (
    *(b"//", b"http://", b"https://", b"ftp://", b"ftps://", b"mailto:", b"irc://", b"ircs://", b"news:", b"nntp://"),
    *(b"bitcoin:", b"geo:", b"git://", b"gopher://", b"magnet:", b"matrix:", b"mms://", b"redis://", b"sftp://"),
    *(b"sip:", b"sips:", b"sms:", b"ssh://", b"svn://", b"tel:", b"telnet://", b"urn:", b"xmpp:"),
)
PROTOCOLS = np.array([list(name.ljust(9, b"\0")) for name in _PROTOCOLS], np.uint8)
PROTOCOL_LENGTHS = (PROTOCOLS != 0).sum(axis=1)
BAR_CALL = np.frombuffer(b"{{!}}", np.uint8)  # which gives a bar


class Scan(NamedTuple):
    """A page as the first pass works on it."""

    text: NDArray[np.uint8]
    n: int
    events: NDArray[np.void]  # EVENT[room]
    stack: NDArray[np.void]  # OPENER[room]
    counts: NDArray[np.int64]  # [STACK_KINDS], openers on the stack by kind
    unclosed: NDArray[np.bool_]  # [TAG_NUMBERS], by number of the tag: no closing tag further on
    state: NDArray[np.int64]  # [STATES]


class Tag(NamedTuple):
    """A tag: its first byte, its name's bytes, TAG_* and its number."""

    start: int
    name: int
    name_end: int
    kind: int
    number: int


@lean_kernel
def starts_line(text, i):
    """Return True if only indentation stands between position i and the start of its line."""
    i -= 1
    while i >= 0:
        c = text[i]
        if not (c == ascii.SPACE or c == ascii.COLON or c == ascii.ASTERISK or c == ascii.HASH or c == ascii.TAB):
            break
        i -= 1
    return i < 0 or text[i] == ascii.NEWLINE


@lean_kernel
def starts_url(text, i):
    """Return True if a protocol that MediaWiki links stands at i, and some of an address after it."""
    if text[i] != ascii.SLASH and not is_letter(text[i]):
        return False
    for row in range(len(PROTOCOL_LENGTHS)):
        after = i + PROTOCOL_LENGTHS[row]
        if has_word(text, i, PROTOCOLS[row, : PROTOCOL_LENGTHS[row]]):
            return not ADDRESS_ENDS[text[after]] and separator_at(text, after) == 0
    return False


@lean_kernel
def bar_before(text, i):
    """Return where the bar that ends before i starts, which can be `{{!}}`; -1 if none does."""
    if i > 0 and text[i - 1] == ascii.PIPE:
        return i - 1
    return i - len(BAR_CALL) if i >= len(BAR_CALL) and stands_at(text, i - len(BAR_CALL), BAR_CALL) else -1


@lean_kernel
def count_openers(text, n, classes):
    """Return one more than the constructs that can start in text[:n], as `structure` counts them."""
    room = 1
    i = 0
    while i < n:
        c = text[i]
        if not classes[c]:
            i += 1
        elif c == ascii.OPEN_BRACE or c == ascii.OPEN_BRACKET:
            j = skip(text, i, n, c)
            if j - i > 1:
                room += min(j - i, MAX_RUN) // 2
            elif text[j] != ascii.SPACE and text[j] != ascii.NEWLINE:
                room += 1
            i = j
        else:
            if c == ascii.LESS_THAN:
                room += is_letter(text[i + 1]) or text[i + 1] == ascii.EXCLAMATION
            elif c == ascii.HYPHEN:
                room += text[i + 1] == ascii.OPEN_BRACE
            i += 1
    return room


@inlined_kernel
def add_event(scan, start, kind):
    """Add a construct that is not closed yet; return its row."""
    row = scan.state[STATE_USED]
    scan.events[row].start = start
    scan.events[row].end = -1
    scan.events[row].kind = kind
    scan.state[STATE_USED] = row + 1
    return row


@inlined_kernel
def close_event(scan, row, end, inner_start, inner_end):
    """Close a construct."""
    scan.events[row].end = end
    scan.events[row].inner_start = inner_start
    scan.events[row].inner_end = inner_end


@inlined_kernel
def push(scan, kind, start, row):
    """Put an opener on the stack; return its place there."""
    top = scan.state[STATE_DEPTH]
    scan.stack[top].kind = kind
    scan.stack[top].start = start
    scan.stack[top].event = row
    scan.counts[kind] += 1
    scan.state[STATE_DEPTH] = top + 1
    return top


@lean_kernel
def unwind(scan, to):
    """Take openers off the stack until `to` are left."""
    depth = scan.state[STATE_DEPTH]
    while depth > to:
        depth -= 1
        kind = scan.stack[depth].kind
        scan.counts[kind] -= 1
        if kind == STACK_HIDDEN or kind == STACK_NESTED:
            scan.state[STATE_HIDDEN] = scan.stack[depth].hidden_before
    scan.state[STATE_DEPTH] = to


@lean_kernel
def below_brackets(scan):
    """Return how many openers lie below the brackets on top of the stack: those never keep another construct from
    closing.
    """
    depth = scan.state[STATE_DEPTH]
    while depth > 0:
        kind = scan.stack[depth - 1].kind
        if kind != STACK_BRACKET and kind != STACK_EXTERNAL:
            break
        depth -= 1
    return depth


@inlined_kernel
def open_run(scan, i, j, kind):
    """Open what the braces or brackets text[i:j] can open: each two of them one construct."""
    run = min(j - i, MAX_RUN)
    start = j - run
    for k in range(run // 2):
        add_event(scan, start + 2 * k, codes.EVENT_OPEN)
    top = push(scan, kind, start, scan.state[STATE_USED] - 1)
    scan.stack[top].run = run
    scan.stack[top].breaks = 0


@inlined_kernel
def close_run(scan, top, i, count, kind):
    """Close the innermost construct of a run on the stack, which took `count` marks, with as many marks at i."""
    stack = scan.stack
    row = stack[top].event
    start = stack[top].start + stack[top].run - count
    scan.events[row].start = start
    scan.events[row].kind = kind
    close_event(scan, row, i + count, start + count, i)
    stack[top].run -= count
    stack[top].event -= 1
    if stack[top].run < 2:
        unwind(scan, top)


@inlined_kernel
def open_braces(scan, i):
    """Open what starts with the `{` at i: a table, templates, parameters; return where to go on."""
    text = scan.text
    j = skip(text, i, scan.n, ascii.OPEN_BRACE)
    is_call = j - i == 3 and stands_at(text, i + 1, BAR_CALL) and starts_line(text, i)
    if j - i > 1 and not is_call:
        open_run(scan, i, j, STACK_BRACE)
        return j
    is_bar = text[i + 1] == ascii.PIPE and text[i + 2] != ascii.CLOSE_BRACE and starts_line(text, i)
    if not (is_call or is_bar):
        return j
    row = add_event(scan, i, codes.EVENT_TABLE)
    scan.events[row].tag = codes.TAG_TABLE
    push(scan, STACK_TABLE, i, row)
    return i + 1 + len(BAR_CALL) if is_call else i + 2


@inlined_kernel
def close_table(scan, i, run):
    """Close a table with the `|}` whose brace, one of a run, is at i; return True if it closes one.

    Templates and table elements that are open inside the table keep it open, but a template does not that this run is
    too short to close.
    """
    bar = bar_before(scan.text, i) if scan.counts[STACK_TABLE] > 0 else -1
    if bar < 0:
        return False
    if not (run == 1 or run == 3 or scan.counts[STACK_BRACE] == 0) or not starts_line(scan.text, bar):
        return False
    top = scan.state[STATE_DEPTH]
    while top > 0 and scan.stack[top - 1].kind != STACK_TABLE:
        kind = scan.stack[top - 1].kind
        if kind == STACK_TABLE_TAG or (kind == STACK_BRACE and run != 1):
            return False
        top -= 1
    if top == 0:
        return False
    scan.events[scan.stack[top - 1].event].end = i + 1
    unwind(scan, top - 1)
    return True


@inlined_kernel
def close_variant(scan, j):
    """Close a variant with the `}-` whose hyphen is at j; return True if it closes one."""
    top = below_brackets(scan) - 1
    if top < 0 or scan.stack[top].kind != STACK_VARIANT:
        return False
    row = scan.stack[top].event
    unwind(scan, top)
    scan.events[row].end = j + 1
    scan.events[row].inner_end = j - 1
    return True


@inlined_kernel
def close_braces(scan, i):
    """Close what the run of `}` at i closes; return where to go on."""
    j = skip(scan.text, i, scan.n, ascii.CLOSE_BRACE)
    run = j - i
    if close_table(scan, i, run):
        i += 1
        run -= 1
    while run >= 2 and scan.counts[STACK_BRACE] > 0:
        top = scan.state[STATE_DEPTH] - 1
        while scan.stack[top].kind != STACK_BRACE:
            top -= 1
        unwind(scan, top + 1)
        count = 3 if scan.stack[top].run >= 3 and run >= 3 else 2
        close_run(scan, top, i, count, codes.EVENT_PARAMETER if count == 3 else codes.EVENT_TEMPLATE)
        i += count
        run -= count
    if run == 1 and close_table(scan, i, run):
        return j
    if run >= 1 and scan.counts[STACK_VARIANT] > 0 and scan.text[j] == ascii.HYPHEN and close_variant(scan, j):
        return j + 1
    return j


@inlined_kernel
def open_brackets(scan, i):
    """Open what starts with the `[` at i: links, or an external link; return where to go on."""
    j = skip(scan.text, i, scan.n, ascii.OPEN_BRACKET)
    if j - i > 1:
        open_run(scan, i, j, STACK_BRACKET)
    elif starts_url(scan.text, j):
        depth = scan.state[STATE_DEPTH]
        # External links do not nest: the one before is not closed any more.
        if depth > 0 and scan.stack[depth - 1].kind == STACK_EXTERNAL:
            unwind(scan, depth - 1)
        push(scan, STACK_EXTERNAL, i, add_event(scan, i, codes.EVENT_EXTERNAL))
    return j


@inlined_kernel
def ends_line(text, i, n):
    """Return True if nothing but spaces follows on the line."""
    i = skip(text, i, n, ascii.SPACE)
    return i >= n or text[i] == ascii.NEWLINE


@inlined_kernel
def close_brackets(scan, i):
    """Close what the run of `]` at i closes; return where to go on."""
    stack = scan.stack
    j = skip(scan.text, i, scan.n, ascii.CLOSE_BRACKET)
    run = j - i
    while run > 0 and scan.state[STATE_DEPTH] > 0:
        top = scan.state[STATE_DEPTH] - 1
        if stack[top].kind == STACK_EXTERNAL and run == 2 and top > 0 and stack[top - 1].kind == STACK_BRACKET:
            # `]]` closes the link around an external link that is not closed.
            unwind(scan, top)
            top -= 1
        if stack[top].kind == STACK_EXTERNAL:
            # It ends on its line, or not at all.
            if stack[top].start > scan.state[STATE_LINE]:
                close_event(scan, stack[top].event, i + 1, stack[top].start + 1, i)
                i += 1
                run -= 1
            unwind(scan, top)
        elif stack[top].kind == STACK_BRACKET and stack[top].breaks > 1 and not ends_line(scan.text, j, scan.n):
            unwind(scan, top)
        elif stack[top].kind == STACK_BRACKET and run >= 2:
            close_run(scan, top, i, 2, codes.EVENT_LINK)
            i += 2
            run -= 2
        else:
            break
    return j


@inlined_kernel
def break_at(text, i, n):
    """Return BREAK_* for what the newline at i ends: what kind of line follows it."""
    j = skip(text, i + 1, n, ascii.SPACE)
    if j >= n or text[j] == ascii.NEWLINE:
        return BREAK_PARAGRAPH
    if j > i + 1:
        return BREAK_NONE
    if text[j] == ascii.EQUALS and text[j + 1] == ascii.EQUALS:
        return BREAK_SECTION
    return BREAK_PARAGRAPH if text[j] == ascii.ASTERISK or text[j] == ascii.HASH else BREAK_NONE


@lean_kernel
def opens_file(scan, top, tables):
    """Return True if the brackets at `top` of the stack open a link of the file namespace."""
    start = scan.stack[top].start + scan.stack[top].run
    colon = find_any(scan.text, start, start + LONGEST_NAMESPACE, COLON_OR_END)
    if colon >= scan.n or scan.text[colon] != ascii.COLON:
        return False
    a, b = trim(scan.text, start, colon)
    return namespace_of(scan.text, a, b, tables) == codes.NAMESPACE_FILE


@lean_kernel
def leave_open_links(scan, i, tables):
    """Take the links off the stack that the newline at i keeps from being closed: a `]]` further on is not theirs.

    A link holds neither a blank line, an item of a list nor a heading. The caption of a file may hold
    one of the first two, and some more if the marks that close it end their line.
    """
    kind = break_at(scan.text, i, scan.n)
    if kind == BREAK_NONE:
        return
    depth = scan.state[STATE_DEPTH]
    left = depth
    while depth > 0:
        opener = scan.stack[depth - 1]
        if opener.kind != STACK_BRACKET and opener.kind != STACK_EXTERNAL:
            break
        depth -= 1
        opener.breaks += 1  # each opener is looked at so many times at most, so that time stays linear
        closable = opener.kind == STACK_BRACKET and kind != BREAK_SECTION and opener.breaks <= MOST_BREAKS
        if not closable or not opens_file(scan, depth, tables):
            left = depth
    unwind(scan, left)


@inlined_kernel
def open_variant(scan, i):
    """Open a variant, if one starts with the `-` at i; return where to go on."""
    if scan.text[i + 1] != ascii.OPEN_BRACE or scan.text[i + 2] == ascii.OPEN_BRACE:
        return i + 1
    depth = scan.state[STATE_DEPTH]
    if scan.counts[STACK_VARIANT] >= MAX_VARIANTS and scan.stack[depth - 1].kind == STACK_VARIANT:
        unwind(scan, depth - 1)
    row = add_event(scan, i, codes.EVENT_VARIANT)
    scan.events[row].inner_start = i + 2
    push(scan, STACK_VARIANT, i, row)
    return i + 2


@inlined_kernel
def add_comment(scan, i):
    """Add the comment that starts at i, if it is closed; return where to go on."""
    if scan.state[STATE_NO_COMMENT_END] == 0:
        end = comment_end(scan.text, i, scan.n)
        if end >= 0:
            row = add_event(scan, i, codes.EVENT_COMMENT)
            scan.events[row].end = end
            return end
        scan.state[STATE_NO_COMMENT_END] = 1
    return i + 4


@inlined_kernel
def add_shown_attribute(scan, tag, end, after):
    """Add a map, whose opening tag ends at `end` and which ends before `after`: an attribute of it shows."""
    row = add_event(scan, tag.start, codes.EVENT_RAW)
    scan.events[row].tag = tag.kind
    value, value_end = attribute_value(scan.text, tag.name_end, end, TEXT)
    close_event(scan, row, after, value, value_end)


@inlined_kernel
def add_raw_element(scan, tag):
    """Add the extension tag whose opening tag this is, with its content, if it is closed; return where to go on."""
    text, n = scan.text, scan.n
    if scan.unclosed[tag.number]:
        return tag.name_end
    end = extension_tag_end(text, tag.name_end - 1, n)
    if end < 0:
        return tag.name_end
    if text[end - 1] == ascii.SLASH:
        if tag.kind == codes.TAG_MAP:
            add_shown_attribute(scan, tag, end - 1, end + 1)
        return tag.name_end
    length = tag.name_end - tag.name
    if tag.kind == codes.TAG_GLOSS:
        close, after = gloss_end(text, end + 1, n)
        if close < 0:
            return tag.name_end
    else:
        close, is_cut = closing_tag(text, end + 1, n, tag.name, length, tag.kind == codes.TAG_REFERENCE)
        if close < 0:
            scan.unclosed[tag.number] = not is_cut
            return tag.name_end
        close_end = tag_end(text, close, n)
        after = close_end + 1 if close_end >= 0 else close + 2 + length
    if tag.kind == codes.TAG_MAP:
        add_shown_attribute(scan, tag, end, after)
        return after
    kind = tag.kind
    if kind == codes.TAG_CODE and not is_inline_code(text, tag.name_end, end):
        kind = codes.TAG_HIDDEN
    row = add_event(scan, tag.start, codes.EVENT_RAW)
    scan.events[row].tag = kind
    close_event(scan, row, after, end + 1, close)
    return after


@inlined_kernel
def is_in_hidden(scan, number):
    """Return True if the innermost element that hides its content, or counts as one, is of the tag of this number."""
    hidden = scan.state[STATE_HIDDEN]
    return hidden > 0 and scan.stack[hidden - 1].tag == number


@inlined_kernel
def close_element(scan, tag):
    """Close the element that is dropped with its content and whose closing tag this is, if there is one."""
    if not (is_in_hidden(scan, tag.number) or (tag.kind == codes.TAG_TABLE and scan.counts[STACK_TABLE_TAG] > 0)):
        return
    stack = scan.stack
    top = below_brackets(scan) - 1
    if top >= 0 and stack[top].kind >= STACK_TABLE_TAG and stack[top].tag == tag.number:
        if stack[top].kind != STACK_NESTED:
            end = tag_end(scan.text, tag.start, scan.n)
            scan.events[stack[top].event].end = end + 1 if end >= 0 else tag.name_end
        unwind(scan, top)


@inlined_kernel
def open_element(scan, tag, tables):
    """Open the element of this opening tag, if it is a table or its attributes hide its content."""
    text = scan.text
    nested = is_in_hidden(scan, tag.number)
    after = text[tag.name_end]
    # Without attributes nothing is hidden.
    if not (tag.kind == codes.TAG_TABLE or nested or after == ascii.SPACE or after == ascii.NEWLINE):
        return
    end = tag_end(text, tag.name_end - 1, scan.n)
    if end < 0 or text[end - 1] == ascii.SLASH:
        return
    if tag.kind == codes.TAG_TABLE:
        kind = STACK_TABLE_TAG
    elif is_hidden(text, tag.name_end, end, tables):
        kind = STACK_HIDDEN
    elif nested:
        kind = STACK_NESTED
    else:
        return
    row = -1
    if kind != STACK_NESTED:
        row = add_event(scan, tag.start, codes.EVENT_TABLE)
        scan.events[row].tag = tag.kind
    top = push(scan, kind, tag.start, row)
    scan.stack[top].tag = tag.number
    if kind != STACK_TABLE_TAG:
        scan.stack[top].hidden_before = scan.state[STATE_HIDDEN]
        scan.state[STATE_HIDDEN] = top + 1


@lean_kernel
def add_tag(scan, i, tables):
    """Open or close the element whose tag starts with the `<` at i; return where to go on."""
    closing = scan.text[i + 1] == ascii.SLASH
    name = i + 2 if closing else i + 1
    name_end = tag_name_end(scan.text, name)
    if name_end == name:
        return i + 1
    row = find(tables, codes.DOMAIN_TAG, scan.text, name, name_end)
    if row < 0:
        return name_end
    number = tables.words[row].second & (TAG_NUMBERS - 1)
    tag = Tag(i, name, name_end, tables.words[row].value, number)
    if tag.kind <= codes.LAST_RAW_TAG:
        return name_end if closing else add_raw_element(scan, tag)
    if closing:
        close_element(scan, tag)
    else:
        open_element(scan, tag, tables)
    return name_end


@lean_kernel
def find_constructs(scan, tables):
    """Go through the page, and open and close constructs."""
    text, n, state = scan.text, scan.n, scan.state
    classes = tables.structure_class
    i = n - n  # a literal would make numba compile what is called with it twice
    while i < n:
        c = text[i]
        if not classes[c]:
            i += 1
        elif c == ascii.NEWLINE:
            state[STATE_LINE] = i
            if scan.counts[STACK_BRACKET] > 0:
                leave_open_links(scan, i, tables)
            i += 1
        elif c == ascii.OPEN_BRACE:
            i = open_braces(scan, i)
        elif c == ascii.CLOSE_BRACE:
            i = close_braces(scan, i)
        elif c == ascii.OPEN_BRACKET:
            i = open_brackets(scan, i)
        elif c == ascii.CLOSE_BRACKET:
            i = close_brackets(scan, i)
        elif c == ascii.LESS_THAN:
            i = add_comment(scan, i) if starts_comment(text, i) else add_tag(scan, i, tables)
        elif c == ascii.HYPHEN:
            i = open_variant(scan, i)
        else:
            i += 1


@inlined_kernel
def structure(text, n, tables):
    """Return (events: EVENT[m], number of rows used): the constructs of text[:n], in the order of their first bytes.

    text: uint8[n + PADDING], zeros from n on.
    """
    room = count_openers(text, n, tables.structure_class)
    events = np.empty(room, EVENT)
    stack = np.empty(room, OPENER)
    counts = np.zeros(STACK_KINDS, np.int64)
    unclosed = np.zeros(TAG_NUMBERS, np.bool_)
    state = np.zeros(STATES, np.int64)
    state[STATE_LINE] = -1
    find_constructs(Scan(text, n, events, stack, counts, unclosed, state), tables)
    return events, state[STATE_USED]
