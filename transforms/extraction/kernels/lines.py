"""What a line of a page is: prose, heading, list item, and whether it is kept."""

from transforms.extraction.kernels.tables import _NEWLINE, _SPACE
from transforms.extraction.kernels.text import is_blank, is_letter, trim
from transforms.kernels import kernel

LINE_PROSE = 0
LINE_BLANK = 1
LINE_ALONE = 2  # a line that is never joined with its neighbours
LINE_LIST = 3
LINE_HEADING = 4
LINE_DROPPED = 5
LINE_INDENTED = 6  # starts with a space: preformatted, so mostly code and tables drawn with characters

SHORTEST_SENTENCE = 20  # bytes that an item of a list must have to be taken for a sentence


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
