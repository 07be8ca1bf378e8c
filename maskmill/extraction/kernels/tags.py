"""HTML tags and extension tags: where one ends, which closing tag is its own, whether it hides its content; and what
a tag becomes that is not dropped with its content."""

import numpy as np

from maskmill.characters.kernels.characters import put_code_point
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.tables import find
from maskmill.extraction.kernels.text import (
    BLANKS,
    MINUS_SIGN,
    NEWLINES,
    SUPERSCRIPT_MINUS,
    SUPERSCRIPT_N,
    byte_set,
    find_any,
    has_word,
    is_alphanumeric,
    is_digit,
    is_letter,
    put_byte,
    put_hole,
    put_mark,
    put_superscript,
    skip_any,
    three_bytes,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

LONGEST_NAME = 20  # bytes of a tag's name that are looked at
LONGEST_ATTRIBUTES = 4000  # bytes of an extension tag with a `<` in it, and of a tag in a list's item
LONGEST_INNER_COMMENT = 1000  # bytes of a comment inside a tag, a heading or a link's target, so that time stays linear

DISPLAY = np.frombuffer(b"display", np.uint8)
NONE = np.frombuffer(b"none", np.uint8)
INLINE = np.frombuffer(b"inline", np.uint8)
ENCLOSE = np.frombuffer(b"enclose", np.uint8)
TEXT = np.frombuffer(b"text", np.uint8)
LONGEST_GLOSS = 1000  # bytes of a gloss that are looked at, so that time stays linear
RUBY_LETTERS = byte_set(b"tpbu")  # the second letters of `<rt>`, `<rp>`, `<rb>`, `<rtc>` and `<ruby>`
LINE_OR_TAG_ENDS = byte_set(b">\n")
CLASS = np.frombuffer(b"class", np.uint8)

LONGEST_POWER = 12  # bytes of `<sup>` that are looked at for digits and signs
EXPONENTS = byte_set(b"ijkmpqtxyz")  # letters that stand as exponents, alone and after a letter or a digit
SPACES_AND_QUOTES = byte_set(b" '")
SPACES_AND_COLONS = byte_set(b" :")
SHORTEST_REMARK = 6  # bytes of an editor's remark in a `<sup>`, with the quotes that end it: `n` is an exponent
LONGEST_REMARK = 120


@lean_kernel
def starts_comment(text, i):
    """Return True if `!--` stands after the `<` at i."""
    return text[i + 1] == ascii.EXCLAMATION and text[i + 2] == ascii.HYPHEN and text[i + 3] == ascii.HYPHEN


@lean_kernel
def comment_end(text, i, n):
    """Return one past the `-->` that closes the comment at i; -1 if there is none."""
    for j in range(i + 6, n):
        if text[j] == ascii.GREATER_THAN and text[j - 1] == ascii.HYPHEN and text[j - 2] == ascii.HYPHEN:
            return j + 1
    return -1


@lean_kernel
def skip_comment(text, i, n):
    """Return one past the comment that starts with the `<` at i, inside other markup; i + 1 if none does, or a long
    one.
    """
    if not starts_comment(text, i):
        return i + 1
    end = comment_end(text, i, min(n, i + LONGEST_INNER_COMMENT))
    return end if end >= 0 else i + 1


@lean_kernel
def tag_end(text, i, n):
    """Return the position of the `>` of the tag that starts at i; -1 if another `<` or the end comes first.

    Comments may stand inside the tag.
    """
    j = i + 1
    while j < n:
        c = text[j]
        if c == ascii.GREATER_THAN:
            return j
        if c == ascii.LESS_THAN:
            after = skip_comment(text, j, n)
            if after == j + 1:
                return -1
            j = after
        else:
            j += 1
    return -1


@lean_kernel
def extension_tag_end(text, i, n):
    """As `tag_end`, for extension tags: MediaWiki takes what stands up to the next `>` for attributes, if it is on the
    line; `<ref a<ref>` is one tag. Such a tag of more than LONGEST_ATTRIBUTES is none, so that time stays linear."""
    end = tag_end(text, i, n)
    if end < 0:
        stop = min(n, i + LONGEST_ATTRIBUTES)
        j = find_any(text, i, stop, LINE_OR_TAG_ENDS)
        if j < stop and text[j] == ascii.GREATER_THAN:
            return j
    return end


@lean_kernel
def attribute_value(text, start, end, name):
    """Return (start, end) of the value of the attribute `name` among text[start:end]; (-1, -1) if it is not there.

    The value of an attribute without an equals sign is empty.
    """
    i = start
    while i + len(name) <= end:
        after = i + len(name)
        if SPACES_AND_QUOTES[text[i - 1]] and has_word(text, i, name) and not is_alphanumeric(text[after]):
            j = skip_any(text, after, end, BLANKS)
            if j >= end or text[j] != ascii.EQUALS:
                return after, after
            j = skip_any(text, j + 1, end, BLANKS)
            quote = text[j]
            if quote != ascii.DOUBLE_QUOTE and quote != ascii.APOSTROPHE:
                return j, find_any(text, j, end, BLANKS)
            k = j + 1
            while k < end and text[k] != quote:
                k += 1
            return j + 1, k
        i += 1
    return -1, -1


@lean_kernel
def is_inline_code(text, start, end):
    """Return True if the attributes text[start:end] of a tag say that the code it holds stands in a line of text."""
    inline, _ = attribute_value(text, start, end, INLINE)
    value, value_end = attribute_value(text, start, end, ENCLOSE)
    return inline >= 0 or (value_end - value == len(NONE) and has_word(text, value, NONE))


@lean_kernel
def gloss_end(text, i, n):
    """Return (end of the content, one past the element) of the gloss whose content starts at i; (-1, -1) if it has no
    end.

    Where its closing tag is left out, it ends before the next tag of its kind, or with what it belongs to.
    """
    stop = min(n, i + LONGEST_GLOSS)
    while i < stop:
        if text[i] == ascii.LESS_THAN:
            closing = text[i + 1] == ascii.SLASH
            name = i + 1 + closing
            second = text[name + 1] | ascii.LOWER_CASE
            if (text[name] | ascii.LOWER_CASE) == ascii.LOWER_R and RUBY_LETTERS[second]:
                end = tag_end(text, i, n) if closing and second != ascii.LOWER_U else i - 1
                return (i, end + 1) if end >= i - 1 else (-1, -1)
        i += 1
    return -1, -1


@lean_kernel
def tag_name_end(text, i):
    """Return one past the tag name that starts at i; i if none does."""
    j = i
    while j < i + LONGEST_NAME and is_alphanumeric(text[j]):
        j += 1
    return j


@lean_kernel
def same_name(text, i, other, length):
    """Return True if the name at `other`, of this length, also stands at i, in any case, and ends there."""
    for k in range(length):
        if (text[i + k] | ascii.LOWER_CASE) != (text[other + k] | ascii.LOWER_CASE):
            return False
    return not is_alphanumeric(text[i + length])


@lean_kernel
def closing_tag(text, i, n, name, length, reference):
    """Return (position of `</name` at or after i, -1 if there is none; whether a reference is cut short before it).

    A reference is cut short by the next `<ref` and by a heading: MediaWiki would swallow what lies between.
    """
    while i < n:
        c = text[i]
        if c == ascii.LESS_THAN:
            if text[i + 1] == ascii.SLASH:
                if i + 2 + length <= n and same_name(text, i + 2, name, length):
                    return i, False
            elif reference and same_name(text, i + 1, name, length):
                return -1, True
        elif reference and c == ascii.NEWLINE and text[i + 1] == ascii.EQUALS and text[i + 2] == ascii.EQUALS:
            return -1, True
        i += 1
    return -1, False


@inlined_kernel
def hides_display(text, i, end):
    """Return True if `display: none` stands at i."""
    if i + len(DISPLAY) > end or not has_word(text, i, DISPLAY):
        return False
    i = skip_any(text, i + len(DISPLAY), end, SPACES_AND_COLONS)
    return i + len(NONE) <= end and has_word(text, i, NONE)


@inlined_kernel
def hidden_class(text, i, end, tables):
    """Return (whether one of the classes from i on is not prose, the end of the attribute's value or of that class)."""
    quote = text[i]
    if quote == ascii.DOUBLE_QUOTE or quote == ascii.APOSTROPHE:
        i += 1
    while i < end and text[i] != quote:
        word = i
        while i < end and text[i] != quote and text[i] != ascii.SPACE:
            i += 1
        if find(tables, codes.DOMAIN_HIDDEN, text, word, i) >= 0:
            return True, i
        if i < end and text[i] == ascii.SPACE:
            i += 1
    return False, i


@lean_kernel
def is_hidden(text, start, end, tables):
    """Return True if a tag's attributes text[start:end] hide its content: `display:none`, or a class that is not
    prose.
    """
    i = start
    while i < end:
        c = text[i] | ascii.LOWER_CASE
        if c == ascii.LOWER_D:
            if hides_display(text, i, end):
                return True
        elif (
            c == ascii.LOWER_C
            and text[i + len(CLASS)] == ascii.EQUALS
            and i + len(CLASS) <= end
            and has_word(text, i, CLASS)
        ):
            hidden, i = hidden_class(text, i + len(CLASS) + 1, end, tables)
            if hidden:
                return True
        i += 1
    return False


@inlined_kernel
def put_power(text, p, limit, out, o):
    """Write the digits and signs from p on as superscript characters; (where they end, new end of the output)."""
    j = p
    while j < limit and j < p + LONGEST_POWER:
        c = text[j]
        if is_digit(c) or c == ascii.PLUS or c == ascii.HYPHEN:
            o = put_superscript(out, o, c)
            j += 1
        elif three_bytes(text, j) == MINUS_SIGN:
            o = put_code_point(out, o, np.int64(SUPERSCRIPT_MINUS))
            j += 3
        else:
            break
    return j, o


@lean_kernel
def is_closing_tag(text, i, limit):
    """Return True if `</` stands at i."""
    return i < limit and text[i] == ascii.LESS_THAN and text[i + 1] == ascii.SLASH


@lean_kernel
def remark_end(text, p, limit):
    """Return where the content of `<sup>` from p on ends if it is all an editor's remark, in italics and brackets; else
    -1.

    Translation tools leave what `{{citation needed}}` shows as `<sup>[''citation needed'']</sup>`.
    """
    start = skip_any(text, p, limit, SPACES_AND_QUOTES)
    if start >= limit or text[start] != ascii.OPEN_BRACKET:
        return np.int64(-1)
    inner = skip_any(text, start + 1, limit, SPACES_AND_QUOTES)
    italic = text[inner - 1] == ascii.APOSTROPHE and not is_digit(text[inner])
    j = inner
    while italic and j < limit and j < inner + LONGEST_REMARK:
        c = text[j]
        if c == ascii.CLOSE_BRACKET:
            k = skip_any(text, j + 1, limit, SPACES_AND_QUOTES)
            long_enough = j - inner >= SHORTEST_REMARK
            return k if long_enough and is_closing_tag(text, k, limit) else np.int64(-1)
        if c == ascii.OPEN_BRACKET or c == ascii.LESS_THAN or c == ascii.NEWLINE:
            break
        j += 1
    return np.int64(-1)


@lean_kernel
def put_superscript_tag(text, p, limit, out, o):
    """Write the content of `<sup>` that starts at p if it is short; (where to go on, new end of the output).

    Digits and signs become superscript characters; what else is an exponent follows a `^`; ordinals stay as they are;
    an editor's remark is dropped.
    """
    remark = remark_end(text, p, limit)
    if remark >= 0:
        return remark, put_mark(out, o)
    p = skip_any(text, p, limit, SPACES_AND_QUOTES)
    j, after = put_power(text, p, limit, out, o)
    if j > p:
        k = skip_any(text, j, limit, SPACES_AND_QUOTES)
        if is_closing_tag(text, k, limit):
            return k, after
    c = text[p]
    k = skip_any(text, p + 1, limit, SPACES_AND_QUOTES)
    alone = is_closing_tag(text, k, limit)
    if c == ascii.LOWER_N and alone:
        return k, put_code_point(out, o, np.int64(SUPERSCRIPT_N))
    behind_name = o > 0 and is_alphanumeric(out[o - 1])
    is_sign = k < limit and (text[k] == ascii.PLUS or text[k] == ascii.HYPHEN or three_bytes(text, k) == MINUS_SIGN)
    starts_sum = is_letter(c) and is_sign
    if j > p or (alone and behind_name and EXPONENTS[c]) or starts_sum:
        o = put_byte(out, o, ascii.CARET)
    return p, o


@inlined_kernel
def put_less_than(out, o, p):
    """Write the `<` at p as what it is; (where to go on, new end of the output)."""
    return p + 1, put_byte(out, o, ascii.LESS_THAN)


@lean_kernel
def put_tag(text, p, limit, out, o, depth, tables):
    """Write what the `<` at p stands for, if it starts no paired construct.

    depth: how many constructs are being rendered around it. Returns (where to go on, new end of the output).
    """
    if starts_comment(text, p):
        # A comment that is never closed hides the rest of its line.
        return find_any(text, p + 4, limit, NEWLINES), put_mark(out, o)
    closing = text[p + 1] == ascii.SLASH
    name = p + 2 if closing else p + 1
    name_end = tag_name_end(text, name)
    if name_end == name:
        return put_less_than(out, o, p)
    row = find(tables, codes.DOMAIN_TAG, text, name, name_end)
    if row < 0:
        return put_less_than(out, o, p)
    kind = tables.words[row].value
    dropped = kind <= codes.LAST_RAW_TAG and kind != codes.TAG_LITERAL
    end = extension_tag_end(text, name_end - 1, limit) if dropped else tag_end(text, name_end - 1, limit)
    if end < 0:
        if dropped or closing:
            return min(name_end, limit), put_mark(out, o)
        return put_less_than(out, o, p)
    end += 1
    if kind == codes.TAG_BLOCK or kind == codes.TAG_BREAK or kind == codes.TAG_TABLE:
        return end, put_byte(out, o, ascii.NEWLINE if depth == 0 else ascii.SPACE)
    if kind == codes.TAG_SUPERSCRIPT and not closing:
        return put_superscript_tag(text, end, limit, out, o)
    if dropped:
        return end, put_mark(out, o)
    names_comma = text[end] == ascii.COMMA and is_closing_tag(text, end + 1, limit) and not closing
    if names_comma and o > 0 and out[o - 1] == ascii.SPACE:
        # "Separated by <code>,</code> and": as text the comma would be the sentence's own.
        return end, put_hole(tables, out, o)
    return end, o
