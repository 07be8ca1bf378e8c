"""GPT-2's pre-tokenizer: cuts a line of UTF-8 into pre-tokens, the words that byte-level BPE splits one by one.

The pre-tokens are the matches of this regular expression, as the ByteLevel of `tokenizers` finds them (every character
belongs to one):

    's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+

A match does not depend on what is before it, so `pre_token_end` needs no more than the place where it starts. Lines:

    text        uint8: whole lines, each ended by a newline; PADDING bytes more, all newlines, after them. To read a
                line as if a space stood before it (`begins_with_space`), write a space over the newline before it, and
                start there.
    classes     uint8[0x110000], see maskmill/tokenization/pre_token_classes.py.
    joints      uint8[0x110000], see maskmill/tokenization/line_joints.py.
"""
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np

from maskmill.kernels import kernel
from maskmill.kernels.ascii import APOSTROPHE, LOWER_D, NOT_ASCII, SPACE
from maskmill.kernels.memory import load_u8, load_u64, trailing_zeros
from maskmill.kernels.utf8 import HIGH_BITS, ascii_letters, decode
from maskmill.tokenization.line_joints import NEUTRAL, NO_LINE, SPACED, UNSPACED
from maskmill.tokenization.pre_token_classes import LETTER, LINE_END, WHITE

# Bytes of contractions.
_E, _L, _M, _R, _S, _T, _V = map(ord, "elmrstv")


@kernel
def _class_end(classes, text, i, wanted):
    """Return where the characters of class `wanted` from text[i] on end; -1 less the place of what is not UTF-8."""
    while True:
        if wanted == LETTER and load_u8(text, i) < NOT_ASCII:
            count = trailing_zeros(ascii_letters(load_u64(text, i)) ^ HIGH_BITS) >> 3
            i += count
            if count == 8:
                continue
        decoded = decode(text, i)
        if decoded < 0:
            return -1 - i
        if load_u8(classes, decoded >> 3) != wanted:
            return i
        i += decoded & 7


@kernel
def _white_end(classes, text, i):
    """Return where the white space at text[i] ends: all of it at the end of a line, otherwise all but its last
    character.
    """
    start = i
    last = i
    while True:
        decoded = decode(text, i)
        if decoded < 0:
            return -1 - i
        found = load_u8(classes, decoded >> 3)
        if found == WHITE:
            last = i
            i += decoded & 7
        elif found == LINE_END or last == start:
            return i
        else:
            return last


@kernel
def _contraction_end(text, i):
    """Return where the contraction whose apostrophe is at text[i] ends; i if there is none."""
    first = load_u8(text, i + 1)
    if first == _S or first == _T or first == _M or first == LOWER_D:
        return i + 2
    second = load_u8(text, i + 2)
    if ((first == _R or first == _V) and second == _E) or (first == _L and second == _L):
        return i + 3
    return i


@kernel
def pre_token_end(classes, text, i):
    """Return where the pre-token that starts at text[i] ends; text[i] is not the newline that ends its line.

    Args:
      classes, text: addresses of the arrays (maskmill/kernels/memory.py), see the module's head.

    Returns:
      int64; -1 less the place, where the bytes there are not UTF-8.
    """
    first = load_u8(text, i)
    if first == SPACE:
        decoded = decode(text, i + 1)
        if decoded < 0:
            return -2 - i
        found = load_u8(classes, decoded >> 3)
        if found >= WHITE:
            return _white_end(classes, text, i)
        return _class_end(classes, text, i + 1 + (decoded & 7), found)
    if first == APOSTROPHE:
        end = _contraction_end(text, i)
        if end > i:
            return end
    decoded = decode(text, i)
    if decoded < 0:
        return -1 - i
    found = load_u8(classes, decoded >> 3)
    if found == WHITE:
        return _white_end(classes, text, i)
    return _class_end(classes, text, i + (decoded & 7), found)


@kernel
def is_blank_line(classes, text, i):
    """Return whether the line from text[i] on has nothing but white space; and if so, where its newline is."""
    while True:
        decoded = decode(text, i)
        if decoded < 0:
            return False, i
        found = load_u8(classes, decoded >> 3)
        if found != WHITE:
            return found == LINE_END, i
        i += decoded & 7


@kernel
def line_end_kind(joints, text, start, end):
    """Return UNSPACED if the line text[start:end], which is UTF-8, ends with a script without spaces, else SPACED."""
    i = end
    while i > start:
        i -= 1
        while load_u8(text, i) & 0xC0 == 0x80:
            i -= 1
        found = load_u8(joints, decode(text, i) >> 3)
        if found != NEUTRAL:
            return found
    return np.int64(SPACED)


@kernel
def _begins_unspaced(joints, text, i):
    """Return whether the line at text[i] begins with a script without spaces."""
    while True:
        decoded = decode(text, i)
        if decoded < 0:
            return False
        found = load_u8(joints, decoded >> 3)
        if found != NEUTRAL:
            return found == UNSPACED
        i += decoded & 7


@kernel
def begins_with_space(joints, text, line, before, prefix_space):
    """Return whether the line at text[line] is read as if a space stood before it.

    Args:
      joints, text, line: addresses of the arrays, and where the line starts.
      before: how the line before it ends, SPACED or UNSPACED, or NO_LINE.
      prefix_space: whether the tokenizer puts a space before a text that has none.
    """
    if before == NO_LINE:
        return prefix_space and load_u8(text, line) != SPACE
    return before == SPACED or not _begins_unspaced(joints, text, line)
