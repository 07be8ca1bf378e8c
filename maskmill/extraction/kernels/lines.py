"""The classes of a page's lines: prose, a heading, an item of a list."""

import numpy as np

from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.text import (
    SPACES,
    byte_set,
    find_any,
    is_alphanumeric,
    is_separator,
    skip,
    skip_any,
    stands_at,
    three_bytes,
    utf8,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

DEEPEST_HEADING = 6
SHORTEST_COMMENT = 7  # bytes of `<!---->`
COMMENT_START = np.frombuffer(b"<!-", np.uint8)
COMMENT_END = np.frombuffer(b"-->", np.uint8)
LIST_MARKS = byte_set(b"*#:;")
LONGEST_BARRED = 40  # bytes between two bars
BAR_ENDS = byte_set(b'|=[]{}<\n \t"')
FEWEST_SPACES = 4  # of a sentence that starts with a bar
STOPS = byte_set(b".?!:")
NO_LETTERS = byte_set(bytes((0xC2, 0xE2)))  # first bytes of raised digits and of operators
ROW_STARTS = byte_set(b"|!{")
ROW_ENDS = byte_set(b"|!}")
NO_NAMES = byte_set(b"|!-+}= \t\n")  # what starts no name or formula
KET = utf8("⟩")
RULER = np.frombuffer(b"----", np.uint8)


@lean_kernel
def is_list_mark(c):
    """Return True for the bytes that start items of lists, definitions and indented lines."""
    return LIST_MARKS[c]


@inlined_kernel
def heading_content_end(text, q, end):
    """Return one past the last byte of the heading text[q:end] before the white space and the comments at its end."""
    last = end
    while True:
        while last > q and (text[last - 1] == ascii.SPACE or text[last - 1] == ascii.TAB):
            last -= 1
        if last - q <= SHORTEST_COMMENT or not stands_at(text, last - 3, COMMENT_END):
            return last
        k = last - 4
        while k > q and not stands_at(text, k, COMMENT_START):
            k -= 1
        if k <= q:
            return last
        last = k


@inlined_kernel
def classify_heading(text, q, end):
    """Return what `classify_line` gives for a line that starts with `=` and ends at `end`: a heading, if it also ends
    so.
    """
    last = heading_content_end(text, q, end)
    if last - q < 3 or text[last - 1] != ascii.EQUALS:
        return codes.LINE_ALONE, q, 0, 0, 0
    opening = skip(text, q, q + DEEPEST_HEADING, ascii.EQUALS) - q
    closing = 0
    while closing < opening and text[last - 1 - closing] == ascii.EQUALS:
        closing += 1
    level = min(opening, closing, (last - q - 1) // 2)
    return codes.LINE_HEADING, q + level, level, last - level, end


@inlined_kernel
def divides_cells(text, q, n):
    """Return True if `|` or `!!` stands on the line, outside links and calls: heading cells that lost their table."""
    i = skip(text, q, n, ascii.EXCLAMATION)
    depth = 0
    while i < n and text[i] != ascii.NEWLINE:
        c = text[i]
        if c == ascii.OPEN_BRACKET or c == ascii.OPEN_BRACE:
            depth += 1
        elif c == ascii.CLOSE_BRACKET or c == ascii.CLOSE_BRACE:
            depth -= 1
        elif depth <= 0 and (c == ascii.PIPE or (c == ascii.EXCLAMATION and text[i + 1] == ascii.EXCLAMATION)):
            return True
        i += 1
    return False


@inlined_kernel
def starts_with_bars(text, q, n):
    """Return True if the line starts with something short between bars, as the sign of a size: `|x| is`, or of a state:
    `|x⟩`.

    A line of a table that lost its start, or of a template, has a space, an attribute or a name after its bar.
    """
    i = find_any(text, q + 1, min(n, q + LONGEST_BARRED), BAR_ENDS)
    behind = text[i + 1]
    if i - 3 > q and three_bytes(text, i - 3) == KET:
        return True
    return i > q + 1 and text[i] == ascii.PIPE and i < n - 1 and (behind == ascii.SPACE or is_separator(behind))


@inlined_kernel
def is_of_word(c):
    """Return True for a byte of a letter or a digit, as far as its first byte tells."""
    return is_alphanumeric(c) or (c >= ascii.NOT_ASCII and not NO_LETTERS[c])


@lean_kernel
def stands_among_rows(text, q, n, end):
    """Return True if the line before or after text[q:end] is one of a table or a template that lost its start or its
    end.
    """
    if end + 1 < n and ROW_ENDS[text[end + 1]]:
        return True
    if q < 2 or text[q - 2] == ascii.CLOSE_BRACE:
        return False
    i = q - 1
    while i > 0 and text[i - 1] != ascii.NEWLINE:
        i -= 1
    return ROW_STARTS[text[i]] != 0


@lean_kernel
def is_sentence_with_bars(text, q, n):
    """Return True if the line that starts with a bar or `!` is a sentence: `|x + y| is at most 1.`, `||Gana is a
    language.`

    Its bars stand at words, with a space or a sign on one side; a cell's bar has words on both sides, or spaces. The
    lines of a table or a template stand together, and have their first `=` before any other bar.
    """
    i = first = skip(text, q + 1, q + 2, text[q])
    if NO_NAMES[text[i]]:
        return False
    spaces = depth = 0
    has_bar = has_stop = False
    while i < n and text[i] != ascii.NEWLINE:
        c = text[i]
        if c == ascii.OPEN_BRACKET or c == ascii.OPEN_BRACE:
            depth += 1
        elif c == ascii.CLOSE_BRACKET or c == ascii.CLOSE_BRACE:
            depth -= 1
        elif depth > 0:
            pass
        elif c == ascii.PIPE:
            before = text[i - 1]
            i = skip(text, i, n, ascii.PIPE)
            behind = text[i]
            is_open = before == ascii.SPACE and behind == ascii.SPACE
            if is_open or (is_of_word(before) and is_of_word(behind)):
                return False
            has_bar = True
            continue
        elif (c == ascii.EQUALS and not has_bar) or (c == ascii.EXCLAMATION and text[i + 1] == ascii.EXCLAMATION):
            return False
        spaces += c == ascii.SPACE
        has_stop = has_stop or (STOPS[c] != 0 and i > first and not is_of_word(text[i + 1]))
        i += 1
    return has_stop and spaces >= FEWEST_SPACES and not stands_among_rows(text, q, n, i)


@inlined_kernel
def classify_item(text, q, n):
    """Return (kind, first byte of content) of a line that starts with a list's mark."""
    j = skip_any(text, q, n, LIST_MARKS)
    kind = codes.LINE_QUOTED if text[q] == ascii.COLON and text[j - 1] == ascii.COLON else codes.LINE_LIST
    return kind, skip(text, j, n, ascii.SPACE)


@inlined_kernel
def classify_other(text, q, n):
    """Return (kind, first byte of content) of the line that starts at q, if it is not a heading."""
    if q >= n:
        return codes.LINE_BLANK, q
    c = text[q]
    if c == ascii.NEWLINE:
        return codes.LINE_BLANK, q
    if c == ascii.SPACE or c == ascii.TAB:
        q = skip_any(text, q, n, SPACES)
        return (codes.LINE_BLANK if q >= n or text[q] == ascii.NEWLINE else codes.LINE_INDENTED), q
    if is_list_mark(c):
        return classify_item(text, q, n)
    if c == ascii.PIPE and starts_with_bars(text, q, n):
        return codes.LINE_PROSE, q
    if c == ascii.PIPE or (c == ascii.EXCLAMATION and divides_cells(text, q, n)):
        return codes.LINE_PROSE if is_sentence_with_bars(text, q, n) else codes.LINE_DROPPED, q
    if stands_at(text, q, RULER):
        return codes.LINE_ALONE, skip(text, q, n, ascii.HYPHEN)
    if c == ascii.OPEN_BRACE and text[q + 1] == ascii.PIPE:
        return codes.LINE_ALONE, q
    return codes.LINE_PROSE, q


@lean_kernel
def classify_line(text, q, n, end):
    """Return (kind, first byte of content, level, end of content, end of line) of the line that starts at q.

    end: of the line, if it starts with `=`. The last three results are given for headings only.
    """
    if text[q] == ascii.EQUALS and q < n:
        return classify_heading(text, q, end)
    kind, content = classify_other(text, q, n)
    return kind, content, 0, 0, 0


@lean_kernel
def stray_bold(text, p, n):
    """Return (end of line, position of the bold mark that reads as an apostrophe and an italic mark, or -1).

    MediaWiki's rule for lines in which both bold and italic marks are odd in number: the first mark after a word of
    one letter is taken, else the first after a longer word, else the first after a space.
    """
    bold = 0
    italic = 0
    behind_space = -1
    behind_letter = -1
    behind_word = -1
    i = p
    while i < n and text[i] != ascii.NEWLINE:
        if text[i] != ascii.APOSTROPHE:
            i += 1
            continue
        j = skip(text, i, n, ascii.APOSTROPHE)
        run = j - i
        italic += run == 2 or run >= 5
        bold += run >= 3
        if run == 3 or run == 4:
            mark = j - 3
            before = text[mark - 1] if mark > 0 else 0
            before_that = text[mark - 2] if mark > 1 else 0
            if before == ascii.SPACE:
                if behind_space < 0:
                    behind_space = mark
            elif before_that == ascii.SPACE or before_that == ascii.NEWLINE:
                if behind_letter < 0:
                    behind_letter = mark
            elif behind_word < 0:
                behind_word = mark
        i = j
    if bold % 2 == 0 or italic % 2 == 0:
        return i, -1
    if behind_letter >= 0:
        return i, behind_letter
    if behind_word >= 0:
        return i, behind_word
    return i, behind_space
