"""What a line of a page is: prose, a heading, an item of a list."""

from maskmill.kernels import inlined_kernel, lean_kernel
from maskmill.kernels.ascii import (
    APOSTROPHE,
    ASTERISK,
    COLON,
    EQUALS,
    EXCLAMATION,
    GREATER_THAN,
    HASH,
    HYPHEN,
    LESS_THAN,
    NEWLINE,
    OPEN_BRACE,
    PIPE,
    SEMICOLON,
    SPACE,
    TAB,
)
from transforms.extraction.kernels.text import skip

LINE_PROSE = 0
LINE_BLANK = 1
LINE_ALONE = 2  # a line that is never joined with its neighbours
LINE_LIST = 3
LINE_HEADING = 4
LINE_DROPPED = 5
LINE_QUOTED = 7  # starts with a colon: a quotation, a poem, a formula, or a list of results
LINE_INDENTED = 6  # starts with a space: preformatted, so mostly code and tables drawn with characters

DEEPEST_HEADING = 6
SHORTEST_COMMENT = 7  # bytes of `<!---->`


@lean_kernel
def is_list_mark(c):
    """True for the bytes that start items of lists, definitions and indented lines."""
    return c == ASTERISK or c == HASH or c == COLON or c == SEMICOLON


@inlined_kernel
def heading_content_end(text, q, end):
    """One past the last byte of the heading text[q:end] before the white space and the comments at its end."""
    last = end
    while True:
        while last > q and (text[last - 1] == SPACE or text[last - 1] == TAB):
            last -= 1
        if last - q <= SHORTEST_COMMENT:
            return last
        if not (text[last - 1] == GREATER_THAN and text[last - 2] == HYPHEN and text[last - 3] == HYPHEN):
            return last
        k = last - 4
        while k > q and not (text[k] == LESS_THAN and text[k + 1] == EXCLAMATION and text[k + 2] == HYPHEN):
            k -= 1
        if k <= q:
            return last
        last = k


@inlined_kernel
def classify_heading(text, q, end):
    """What `classify_line` gives for a line that starts with `=` and ends at `end`: a heading, if it also ends so."""
    last = heading_content_end(text, q, end)
    if last - q < 3 or text[last - 1] != EQUALS:
        return LINE_ALONE, q, 0, 0, 0
    opening = skip(text, q, q + DEEPEST_HEADING, EQUALS) - q
    closing = 0
    while closing < opening and text[last - 1 - closing] == EQUALS:
        closing += 1
    level = min(opening, closing, (last - q - 1) // 2)
    return LINE_HEADING, q + level, level, last - level, end


@inlined_kernel
def divides_cells(text, q, n):
    """True if `|` or `!!` stands on the line: a heading cell of a table that lost its start."""
    i = q
    while i < n and text[i] != NEWLINE:
        if text[i] == PIPE or (text[i] == EXCLAMATION and text[i + 1] == EXCLAMATION):
            return True
        i += 1
    return False


@inlined_kernel
def classify_indented(text, q, n):
    """(kind, first byte of content) of a line that starts with a space or a tab."""
    while text[q] == SPACE or text[q] == TAB:
        q += 1
    if q >= n or text[q] == NEWLINE:
        return LINE_BLANK, q
    return LINE_INDENTED, q


@inlined_kernel
def classify_item(text, q, n):
    """(kind, first byte of content) of a line that starts with a list's mark."""
    j = q
    while is_list_mark(text[j]):
        j += 1
    kind = LINE_QUOTED if text[q] == COLON and text[j - 1] == COLON else LINE_LIST
    return kind, skip(text, j, n, SPACE)


@inlined_kernel
def classify_other(text, q, n):
    """(kind, first byte of content) of the line that starts at q, if it is no heading."""
    if q >= n:
        return LINE_BLANK, q
    c = text[q]
    if c == NEWLINE:
        return LINE_BLANK, q
    if c == SPACE or c == TAB:
        return classify_indented(text, q, n)
    if is_list_mark(c):
        return classify_item(text, q, n)
    if c == PIPE or (c == EXCLAMATION and divides_cells(text, q, n)):
        return LINE_DROPPED, q
    if c == HYPHEN and text[q + 1] == HYPHEN and text[q + 2] == HYPHEN and text[q + 3] == HYPHEN:
        return LINE_ALONE, skip(text, q, n, HYPHEN)
    if c == OPEN_BRACE and text[q + 1] == PIPE:
        return LINE_ALONE, q
    return LINE_PROSE, q


@lean_kernel
def classify_line(text, q, n, end):
    """(kind, first byte of content, level, end of content, end of line) of the line that starts at q.

    end: of the line, if it starts with `=`. The last three results are given for headings only.
    """
    if text[q] == EQUALS and q < n:
        return classify_heading(text, q, end)
    kind, content = classify_other(text, q, n)
    return kind, content, 0, 0, 0


@lean_kernel
def stray_bold(text, p, n):
    """(end of line, position of the bold mark that reads as an apostrophe and an italic mark, or -1).

    MediaWiki's rule for lines in which both bold and italic marks are odd in number: the first mark behind a word of
    one letter is taken, else the first behind a longer word, else the first behind a space.
    """
    bold = 0
    italic = 0
    behind_space = -1
    behind_letter = -1
    behind_word = -1
    i = p
    while i < n and text[i] != NEWLINE:
        if text[i] != APOSTROPHE:
            i += 1
            continue
        j = skip(text, i, n, APOSTROPHE)
        run = j - i
        italic += run == 2 or run >= 5
        bold += run >= 3
        if run == 3 or run == 4:
            mark = j - 3
            before = text[mark - 1] if mark > 0 else 0
            before_that = text[mark - 2] if mark > 1 else 0
            if before == SPACE:
                if behind_space < 0:
                    behind_space = mark
            elif before_that == SPACE or before_that == NEWLINE:
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
