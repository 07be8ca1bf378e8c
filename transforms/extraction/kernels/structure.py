"""First pass: where each construct of a page starts and ends."""

import numpy as np

from transforms.extraction.kernels.tables import (
    _NEWLINE,
    _SPACE,
    DOMAIN_TAG,
    SETTING_VARIANTS,
    TAG_HIDDEN,
    TAG_LITERAL,
    TAG_MATH,
    TAG_REFERENCE,
    TAG_TABLE,
    find,
)
from transforms.extraction.kernels.tags import closing_tag, is_hidden, tag_end, tag_name_end
from transforms.extraction.kernels.text import is_letter
from transforms.kernels import kernel

MAX_RUN = 8  # braces or brackets of one run that can open something; more are literal
MAX_VARIANTS = 8  # `-{` open at once

EVENT_TEMPLATE = 1
EVENT_PARAMETER = 2
EVENT_LINK = 3
EVENT_EXTERNAL = 4
EVENT_TABLE = 5
EVENT_RAW = 6
EVENT_COMMENT = 7
EVENT_VARIANT = 8

STACK_BRACE = 1
STACK_BRACKET = 2
STACK_EXTERNAL = 3
STACK_TABLE = 4
STACK_VARIANT = 5
STACK_TABLE_TAG = 6  # the kinds from here on are elements
STACK_HIDDEN = 7
STACK_NESTED = 8  # an element of the same tag inside a hidden one
STACK_KINDS = 9


@kernel
def starts_line(text, i):  # type: ignore[no-untyped-def]
    """True if only indentation stands between position i and the start of its line."""
    i -= 1
    while i >= 0 and (text[i] == 32 or text[i] == 58 or text[i] == 42 or text[i] == 35 or text[i] == 9):
        i -= 1
    return i < 0 or text[i] == _NEWLINE


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
