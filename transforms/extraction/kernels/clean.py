"""Third pass: white space and punctuation."""

from transforms.extraction.kernels.tables import _NEWLINE, _SPACE
from transforms.extraction.kernels.text import MARK, is_blank, is_digit, is_letter
from transforms.kernels import kernel


@kernel
def clean(out, n):  # type: ignore[no-untyped-def]
    """Collapses white space and repairs punctuation beside MARKs, in place; the number of bytes left.

    Lines keep no space at their ends; blank lines, and lines without a letter or a digit, are removed.
    """
    w = n - n
    line = w  # where the current line starts in what is written
    mark = False  # something was dropped since the last character
    letters = False
    i = 0
    while i <= n:
        c = out[i] if i < n else _NEWLINE
        if c == _NEWLINE:
            while w > line and out[w - 1] == _SPACE:
                w -= 1
            if letters and w > line:
                out[w] = _NEWLINE
                w += 1
                line = w
            else:
                w = line
            mark = False
            letters = False
            i += 1
            continue
        if c == MARK:
            mark = True
            i += 1
            continue
        if c == 0xC2 and i + 1 < n and (out[i + 1] == 0xA0 or out[i + 1] == 0xAD):
            if out[i + 1] == 0xAD:  # soft hyphen
                i += 2
                continue
            c = _SPACE
            i += 1
        elif c == 0xE2 and i + 2 < n and out[i + 1] == 0x80:
            d = out[i + 2]
            if d == 0x8B or d == 0x8E or d == 0x8F:  # zero-width space, direction marks
                i += 3
                continue
            if d <= 0x8A or d == 0xA8 or d == 0xA9 or d == 0xAF:  # spaces and separators
                c = _SPACE
                i += 2
        elif c == 0xEF and i + 2 < n and out[i + 1] == 0xBB and out[i + 2] == 0xBF:  # byte order mark
            i += 3
            continue
        if c <= _SPACE or c == 127:
            if w > line and out[w - 1] != _SPACE and not (mark and opens(out, w, line)):
                out[w] = _SPACE
                w += 1
            i += 1
            continue
        if mark and w > line:
            closer = 0
            if c == 41 or c == 93:
                closer = 1
            elif c == 0xEF and i + 2 < n and out[i + 1] == 0xBC and out[i + 2] == 0x89:
                closer = 3
            if closer > 0:
                # What stands before the bracket may be punctuation that led to what was dropped.
                k = w
                while k > line and (out[k - 1] == _SPACE or out[k - 1] == 44 or out[k - 1] == 59 or out[k - 1] == 58):
                    k -= 1
                if opens(out, k, line):
                    w = k - (3 if out[k - 1] >= 0x80 else 1)
                    i += closer
                    continue
                w = k
                mark = False
            elif c == 44 or c == 59 or c == 58 or c == 46 or c == 33 or c == 63:
                k = w
                while k > line and out[k - 1] == _SPACE:
                    k -= 1
                if opens(out, k, line):
                    if c != 46:
                        w = k
                        i += 1
                        continue
                elif k > line:
                    before = out[k - 1]
                    if before == c or ((c == 46 or c == 59 or c == 58) and before == 44):
                        # Two separators with nothing left between them.
                        k -= 1
                    elif c == 44 and before in (59, 58) and k < w:
                        i += 1
                        continue
                    if not (c == 58 and k < w):
                        w = k
        elif c == 44 and w - line > 1 and out[w - 1] == _SPACE and (i + 1 >= n or is_blank(out[i + 1])):
            # No language sets a space before a comma.
            w -= 1
        elif c == 46 and w - line > 1 and out[w - 1] == _SPACE and out[w - 2] == 46 and not (
            i + 1 < n and (is_letter(out[i + 1]) or is_digit(out[i + 1]))
        ):  # fmt: skip
            # A spaced ellipsis is one, or each of its dots would be a sentence; ".NET" after an abbreviation is not.
            w -= 1
        mark = False
        if is_letter(c) or is_digit(c) or c >= 0x80:
            letters = True
        out[w] = c
        w += 1
        i += 1
    if w > 0:
        w -= 1
    return w


@kernel
def opens(out, w, line):  # type: ignore[no-untyped-def]
    """True if what is written, from `line` up to w, ends in an opening bracket."""
    if w <= line:
        return False
    c = out[w - 1]
    if c == 40 or c == 91:
        return True
    return w - line >= 3 and c == 0x88 and out[w - 2] == 0xBC and out[w - 3] == 0xEF
