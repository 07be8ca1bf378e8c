"""Words around the end of a sentence: where they start and end, and what a language's rules and Punkt know of them.

A model is Punkt's (kernels/punkt.py), with more bits for its words (`NEVER` to `SUBORDINATE`) and `model[FLAGS]`.
"""

import numpy as np

from maskmill.characters.kernels.characters import ALPHA, DIGIT, SPACE, character, character_before, code_at
from maskmill.kernels import lean_kernel
from maskmill.sentences.kernels import punkt
from maskmill.sentences.kernels.punkt import BITS_AT

FLAGS = 10  # the field of a model that holds these:
ORDINALS = 1  # a number with a full stop is an ordinal
NOUNS = 2  # nouns are written with a capital
CONTEXTS = 4  # Punkt's parameters say how words are written
DATES = 8  # a number with a full stop in front of a number is part of a date
NO_FULL_STOPS = 16  # full stops end no sentence, as in Armenian, where they are colons
YEARS = 32  # a year has a full stop as other ordinals have one
ROMAN = 64  # a Roman number with a full stop is an ordinal
CLAUSES = 128  # a space ends a sentence only between clauses, which hold verbs
PUNKT_LETTERS = 256  # Punkt tells initials, units of one letter and acronyms

LONGEST_ABBREVIATION = 11  # the field for the bytes of the longest word with one of ABBREVIATES or ORDINARY

# More bits of a word.
NEVER = 1 << 10  # an abbreviation that something follows, always
MAY_END = 1 << 11  # an abbreviation that may end a sentence
FOLLOWS_ORDINAL = 1 << 12  # a word that often follows an ordinal, such as a month
BEFORE_NUMBER = 1 << 14  # an abbreviation in front of numbers, and else a word
RARELY_ENDS = 1 << 25  # an abbreviation that ends a sentence only in front of a word that is also written small
ORDINARY = 1 << 26  # a word, though it looks like an abbreviation or is one elsewhere
# In languages that end sentences with spaces, the beginning of text that goes on with the sentence after a space, that
# starts one, and the end of text that goes on.
JOINING = 1 << 13
STARTING = 1 << 15
PENDING = 1 << 16
# There a chunk of text from space to space that starts a sentence holds a verb, in front of which no relative pronoun
# stands and which no prefix makes a noun.
VERB = 1 << 17
RELATIVE = 1 << 18  # with VERB, too: a word like "then", in the clause after another; no verb after it counts
NOMINAL = 1 << 19
FRONTING = 1 << 20  # a preposition: such a chunk goes on with the sentence, or starts one if it has a verb, too
OPENING = 1 << 21  # what starts a sentence after a long enough one, whether its chunk has a verb or not
PLAIN = 1 << 22  # a word in which one of these stands by chance
FINITE = 1 << 23  # a verb that counts after a relative clause, too
SUBORDINATE = 1 << 24  # what the first chunk of a sentence starts with if the main clause follows it
FIRM = 1 << 27  # what a firm's name ends with: after a name with an exclamation mark, it belongs to it
ABBREVIATES = NEVER | MAY_END | BEFORE_NUMBER | RARELY_ENDS

_LONGEST_LOOK_BACK = 64  # bytes, for the word before a full stop
# ASCII characters that bound a word on its left, besides white space.
WORD_BOUNDS = np.zeros(128, np.uint8)
WORD_BOUNDS[[ord(character) for character in "\"'()[]{}/-*=<>~+&,;:|"]] = 1
_QUOTATION_MARK = ord('"')
_HEBREW_LEAD = 0xD7  # the first byte of Hebrew letters
_ROMAN_DIGITS = np.zeros(128, np.uint8)
_ROMAN_DIGITS[[ord(character) for character in "IVXL"]] = 1


@lean_kernel
def code_before(data, at, begin):
    """Return the code point of the character that ends in front of byte `at`, 0 at the line's start."""
    if at <= begin:
        return np.int64(0)
    return np.int64(code_at(data, character_before(data, at, begin))[0])


@lean_kernel
def is_space(model, data, at, end):
    return at < end and character(model, data, at)[0] & SPACE != 0


@lean_kernel
def skip_space(model, data, at, end):
    while at < end:
        properties, size = character(model, data, at)
        if not properties & SPACE:
            break
        at += size
    return at


@lean_kernel
def _is_gershayim(data, begin, mark, behind):
    """Return whether the byte `mark` is a quotation mark between Hebrew letters, which writes an acronym (ארה"ב)."""
    return (
        data[mark] == _QUOTATION_MARK
        and mark - 2 >= begin
        and data[mark - 2] == _HEBREW_LEAD
        and data[behind] == _HEBREW_LEAD
    )


@lean_kernel
def word_start(model, data, begin, at):
    """Return where the word that ends at byte `at` starts: after white space, a bracket, a quotation mark or a
    hyphen.
    """
    least = max(begin, at - _LONGEST_LOOK_BACK)
    while at > least:
        before = character_before(data, at, begin)
        lead = data[before]
        properties, _size = character(model, data, before)
        if properties & SPACE:
            break
        if lead < 0x80:
            if WORD_BOUNDS[lead] and not _is_gershayim(data, begin, before, at):
                break
        else:
            code = code_at(data, before)[0]
            if 0x2010 <= code <= 0x203F or 0x3000 <= code <= 0x3030 or code in (0xAB, 0xBB, 0x6D4, 0x60C):
                break
        at = before
    return at


@lean_kernel
def word_end(model, data, at, end):
    """Return where the word that starts at byte `at` ends: its letters, digits and signs."""
    while at < end:
        properties, size = character(model, data, at)
        lead = data[at]
        if properties & SPACE or (lead < 0x80 and not properties & (ALPHA | DIGIT)):
            break
        if lead == 0xE2 or (lead == 0xC2 and data[at + 1] in (0xAB, 0xBB)):
            break
        at += size
    return at


@lean_kernel
def word_bits(model, data, start, end, scratch):
    """Return what is known of the word of bytes `start:end`."""
    if start >= end:
        return np.int64(0)
    number = punkt.look_up(model, data, start, end, scratch)
    return np.int64(model[model[BITS_AT] + number]) if number >= 0 else np.int64(0)


@lean_kernel
def abbreviation_bits(model, data, start, end, scratch):
    """Return what is known of the word or words of bytes `start:end`, which are not looked up if they are too long to
    tell.
    """
    if end - start > model[LONGEST_ABBREVIATION]:
        return np.int64(0)
    return word_bits(model, data, start, end, scratch)


@lean_kernel
def count_digits(model, data, start, end):
    """Return how many digits bytes `start:end` are, 0 if they are not all digits."""
    count = 0
    while start < end:
        properties, size = character(model, data, start)
        if not properties & DIGIT:
            return 0
        start += size
        count += 1
    return count


@lean_kernel
def is_roman(data, start, end):
    for at in range(start, end):
        if data[at] >= 0x80 or not _ROMAN_DIGITS[data[at]]:
            return False
    return start < end
