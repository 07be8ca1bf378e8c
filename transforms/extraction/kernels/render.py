"""Second pass: writes the text of a page."""

import numpy as np

from transforms.extraction.kernels.formula import put_formula
from transforms.extraction.kernels.lines import (
    LINE_DROPPED,
    LINE_HEADING,
    LINE_INDENTED,
    LINE_LIST,
    LINE_PROSE,
    classify_line,
    ends_as_sentence,
    reads_as_prose,
    stray_bold,
)
from transforms.extraction.kernels.rules import close_argument, evaluate, find_template, where_called
from transforms.extraction.kernels.structure import (
    EVENT_COMMENT,
    EVENT_EXTERNAL,
    EVENT_LINK,
    EVENT_RAW,
    EVENT_TABLE,
    EVENT_TEMPLATE,
    EVENT_VARIANT,
)
from transforms.extraction.kernels.tables import (
    _NEWLINE,
    _SPACE,
    DOMAIN_NAMESPACE,
    DOMAIN_SECTION,
    DOMAIN_TAG,
    DOMAIN_VARIANT,
    LISTS_KEEP,
    LISTS_SENTENCES,
    MAX_ARGUMENTS,
    MAX_TARGET,
    NAMESPACE_CATEGORY,
    NAMESPACE_FILE,
    NAMESPACE_LANGUAGE,
    NAMESPACE_SITE,
    RULE_SLACK,
    SETTING_KEEP_APPENDICES,
    SETTING_KEEP_HEADINGS,
    SETTING_LISTS,
    TAG_BLOCK,
    TAG_BREAK,
    TAG_HIDDEN,
    TAG_INLINE,
    TAG_LITERAL,
    TAG_MATH,
    TAG_REFERENCE,
    TAG_SUPERSCRIPT,
    TAG_TABLE,
    find,
)
from transforms.extraction.kernels.tags import same_name, tag_end, tag_name_end
from transforms.extraction.kernels.text import (
    MARK,
    is_blank,
    is_digit,
    is_letter,
    put_code_point,
    put_entity,
    put_superscript,
    trim,
)
from transforms.kernels import kernel

MAX_FRAMES = 256
MAX_RULE_DEPTH = 24

FRAME_RANGE = 1
FRAME_TEMPLATE = 2


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
