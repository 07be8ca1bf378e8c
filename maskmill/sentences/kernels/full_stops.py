"""Tests of whether a full stop ends a sentence: abbreviations, initials, ordinals, laid over Punkt's decision."""

from typing import NamedTuple

import numpy as np

from maskmill.characters.kernels.characters import (
    ALPHA,
    DIGIT,
    LOWER,
    SPACE,
    UPPER,
    character,
    character_before,
    code_at,
    entry,
    stripped_end,
)
from maskmill.kernels import lean_kernel
from maskmill.sentences.kernels.punkt import ORTHO_LC
from maskmill.sentences.kernels.words import (
    ABBREVIATES,
    BEFORE_NUMBER,
    CONTEXTS,
    DATES,
    FLAGS,
    FOLLOWS_ORDINAL,
    FRONTING,
    LONGEST_ABBREVIATION,
    MAY_END,
    NEVER,
    NOUNS,
    ORDINALS,
    ORDINARY,
    PUNKT_LETTERS,
    RARELY_ENDS,
    ROMAN,
    STARTING,
    YEARS,
    abbreviation_bits,
    count_digits,
    is_roman,
    word_bits,
    word_end,
    word_start,
)

_FULL_STOP, _HYPHEN, _SLASH = ord("."), ord("-"), ord("/")
_COLON, _SEMICOLON, _COMMA, _CLOSE = ord(":"), ord(";"), ord(","), ord(")")
_ZERO, _NINE = ord("0"), ord("9")
_SMALL_ROMAN = (ord("i"), ord("v"), ord("x"))
_FIRST_HANGUL, _LAST_HANGUL = 0xAC00, 0xD7A3
_KOREAN_VERB_END = ord("다")
_FIRST_GREEK, _LAST_GREEK = 0x370, 0x3FF
_FIRST_INDIC, _LAST_INDIC = 0x900, 0xD7F  # Devanagari to Malayalam, in blocks of 128
_FIRST_LEAD_3 = 0xE0
_FIRST_HEBREW, _LAST_ARABIC = 0x5D0, 0x6D3
# The bytes of a word that is no abbreviation.
_LEAST_FULL_WORD, _LEAST_CASED_WORD, _LEAST_SEMITIC_WORD = 3 * 5, 2 * 4, 2 * 3
_MOST_ORDINAL_DIGITS = 2  # a longer number is a year or a quantity unless a list says otherwise
_MOST_LISTED_ORDINAL_DIGITS = 3  # "Zum 150. Todestag"
_MOST_NUMBERING_DIGITS = 3
# The words between a number and the last word of an era ("до н. э."), and the bytes of each.
_MOST_ERA_WORDS, _LONGEST_ERA_WORD = 4, 6
# The words of a sentence that ends with a number and an abbreviation, or with several.
_FEWEST_WORDS, _FEWEST_WORDS_AND_ABBREVIATIONS = 4, 6
_FEWEST_WORDS_IN_FRONT = 8  # the same, where the sentence starts with a preposition
_YEAR_DIGITS = 4
_FEWEST_POINTS = 2  # inside an acronym that is no initials
_LONGEST_SYLLABLE = 3  # characters


class _Word(NamedTuple):
    """The word before a full stop at byte `stop`, by the bytes where it starts.

    sentence: where its sentence does. whole: with what hyphens and slashes join to it. part: after the last full stop
    inside it.
    points: the number of full stops inside it.
    """

    sentence: int
    whole: int
    start: int
    part: int
    stop: int
    points: int


class _Following(NamedTuple):
    """The word after marks: bytes `start:end`, the entry of its first letter, its bits. start: -1 for none."""

    start: int
    end: int
    properties: np.int64
    bits: np.int64
    is_roman: bool


@lean_kernel
def _is_after_number(model, data, begin, at):
    """Return whether a number, which may be Roman or have an ending ("1990-х"), and white space are in front of byte
    `at`.
    """
    before = stripped_end(model, data, begin, at)
    if before == at or before <= begin:
        return False
    if character(model, data, character_before(data, before, begin))[0] & DIGIT:
        return True
    start = word_start(model, data, begin, before)
    if is_roman(data, start, before):
        return True
    return start - 1 > begin and data[start - 1] == _HYPHEN and _ZERO <= data[start - 2] <= _NINE


@lean_kernel
def _is_in_first_words(model, data, sentence, at, fewest):
    """Return whether fewer than so many words are between the start of a sentence and byte `at`."""
    count = 0
    while sentence < at and count < fewest:
        properties, size = character(model, data, sentence)
        if properties & SPACE:
            count += 1
        sentence += size
    return count < fewest


@lean_kernel
def _is_behind_mark(model, data, word, following):
    """Return whether a mark stands in front of a number, which numbers an item in running text, then."""
    before = stripped_end(model, data, word.sentence, word.start)
    if before <= word.sentence or before == word.start:
        return False
    mark = data[before - 1]
    if mark == _FULL_STOP:
        return model[FLAGS] & DATES != 0
    if mark == _COMMA and following.properties & UPPER and before - 1 > word.sentence:
        # "1. Rome, 2. Paris", not "the houses 1, 2. After them".
        return character(model, data, character_before(data, before - 1, word.sentence))[0] & ALPHA != 0
    return mark in (_COLON, _SEMICOLON) or (mark in (_COMMA, _CLOSE) and not following.properties & UPPER)


@lean_kernel
def _number_ends(model, data, word, num_digits, following, is_break):
    """Return whether a full stop after a number ends a sentence."""
    flags = model[FLAGS]
    is_short = num_digits <= _MOST_ORDINAL_DIGITS
    if is_short and _is_behind_mark(model, data, word, following):
        return False
    if is_short and following.is_roman:
        return False
    if num_digits <= _MOST_LISTED_ORDINAL_DIGITS and following.bits & FOLLOWS_ORDINAL:
        return False
    if following.properties & DIGIT and (flags & DATES or (is_short and flags & ORDINALS)):
        return False
    if not flags & ORDINALS:
        return is_break
    if is_short and flags & NOUNS:
        return following.bits & ORTHO_LC != 0
    return not (flags & YEARS and _is_in_first_words(model, data, word.sentence, word.start, _FEWEST_WORDS))


@lean_kernel
def _roman_number_ends(model, following, is_break):
    """Return whether a full stop after a Roman number ends a sentence."""
    if following.bits & FOLLOWS_ORDINAL:
        return False
    if model[FLAGS] & ROMAN:
        return model[FLAGS] & CONTEXTS != 0 and following.bits & ORTHO_LC != 0
    return is_break


@lean_kernel
def _is_year_at_start(model, data, word):
    """Return whether a word ends a year or a century with which a sentence starts ("В V в. до н. э. Рим …")."""
    at = word.start
    fewest = _FEWEST_WORDS
    for _ in range(_MOST_ERA_WORDS):
        if _is_after_number(model, data, word.sentence, at):
            return _is_in_first_words(model, data, word.sentence, word.start, fewest)
        before = stripped_end(model, data, word.sentence, at)
        start = word_start(model, data, word.sentence, before)
        if start == before or before - start > _LONGEST_ERA_WORD:
            return False
        at = start
        fewest = _FEWEST_WORDS_AND_ABBREVIATIONS
    return False


@lean_kernel
def _is_year_in_front(model, data, word, scratch):
    """Return whether a year is before a word, in a sentence that starts with a preposition or a day ("През 1990 г. Рим
    …").
    """
    end = stripped_end(model, data, word.sentence, word.start)
    start = word_start(model, data, word.sentence, end)
    if end == word.start or count_digits(model, data, start, end) != _YEAR_DIGITS:
        return False
    if _ZERO <= data[word.sentence] <= _NINE:
        return True
    first_end = word_end(model, data, word.sentence, word.start)
    return word_bits(model, data, word.sentence, first_end, scratch) & FRONTING != 0


@lean_kernel
def _abbreviation_ends(model, data, word, following, is_break, scratch):
    """Return whether a sentence ends with an abbreviation that may end one."""
    if following.properties & DIGIT:
        return False
    is_in_front = _is_year_in_front(model, data, word, scratch)
    if is_in_front and _is_in_first_words(model, data, word.sentence, word.start, _FEWEST_WORDS):
        return False
    if following.bits & ORTHO_LC:
        return True
    if is_in_front and _is_in_first_words(model, data, word.sentence, word.start, _FEWEST_WORDS_IN_FRONT):
        return False
    if _is_year_at_start(model, data, word):
        return False
    return is_break or not model[FLAGS] & NOUNS


@lean_kernel
def _behind_number(model, data, start, end):
    """Return where a unit that is written without a space after a number starts (५०कि.मी)."""
    while start < end:
        properties, size = character(model, data, start)
        if not properties & DIGIT and data[start] not in (_FULL_STOP, _COMMA):
            break
        start += size
    return start


@lean_kernel
def _abbreviation_bits(model, data, word, is_initial, scratch):
    """Return what is known of the word before a full stop: with the word before it, by itself, or of its last part.

    Of an initial it is what is known of it with the word or the initials before it: lists do not tell `M.` from `m.`.
    """
    if word.stop - word.start < model[LONGEST_ABBREVIATION]:
        before = stripped_end(model, data, word.sentence, word.start)
        if before < word.start:
            start = word_start(model, data, word.sentence, before)
            bits = abbreviation_bits(model, data, start, word.stop, scratch)
            if bits & ABBREVIATES:
                return bits
    if word.whole < word.start:
        bits = abbreviation_bits(model, data, word.whole, word.stop, scratch)
        if bits & ABBREVIATES:
            return bits
    if is_initial and word.points == 0:
        return np.int64(0)
    bits = abbreviation_bits(model, data, word.start, word.stop, scratch)
    if not bits & ABBREVIATES and word.part > word.start and not is_initial:
        bits = word_bits(model, data, word.part, word.stop, scratch)
    if not bits & ABBREVIATES:
        unit = _behind_number(model, data, word.start, word.stop)
        if word.start < unit < word.stop and data[unit] >= _FIRST_LEAD_3:
            bits = word_bits(model, data, unit, word.stop, scratch)
    return bits


@lean_kernel
def _is_syllable(data, start, end):
    """Return whether bytes `start:end` are one letter of a script of India, with its vowel signs: the name of a
    letter.
    """
    count = 0
    while start < end:
        code, size = code_at(data, start)
        if not _FIRST_INDIC <= code <= _LAST_INDIC:
            return False
        low = code & 0x7F  # the blocks of these scripts have their signs in the same places
        is_sign = low <= 0x03 or 0x3C <= low <= 0x4D or 0x55 <= low <= 0x57 or low in (0x62, 0x63)
        if is_sign == (count == 0):
            return False
        count += 1
        start += size
    return 0 < count <= _LONGEST_SYLLABLE


@lean_kernel
def _word_before(model, data, sentence, stop):
    """Return the word that the full stop at byte `stop` ends."""
    start = word_start(model, data, sentence, stop)
    whole = start  # with what hyphens and slashes join to it
    while whole > sentence and data[whole - 1] in (_HYPHEN, _SLASH):
        before = word_start(model, data, sentence, whole - 1)
        if before == whole - 1:
            break
        whole = before
    part = stop
    points = 0
    while part > start and data[part - 1] != _FULL_STOP:
        part -= 1
    for at in range(start, stop):
        if data[at] == _FULL_STOP:
            points += 1
    return _Word(sentence, whole, start, part, stop, points)


@lean_kernel
def _is_small_roman(data, word):
    """Return whether a word is a Roman number below 40 in small letters ("Haer. xxvi. 2")."""
    for at in range(word.start, word.stop):
        if data[at] not in _SMALL_ROMAN:
            return False
    return word.start < word.stop


@lean_kernel
def _is_of_ruler(model, data, word):
    """Return whether a letter is a Roman number after a word with a capital ("Gustav V"), not an initial."""
    if word.points > 0 or word.whole < word.start or not is_roman(data, word.start, word.stop):
        return False
    before = stripped_end(model, data, word.sentence, word.start)
    start = word_start(model, data, word.sentence, before)
    if start == before or before == word.start or data[before - 1] == _FULL_STOP:
        return False
    return character(model, data, start)[0] & UPPER != 0


@lean_kernel
def _letter_ends(model, data, word, following, is_break, scratch):
    """Return whether a sentence ends with a single letter that no list knows: a unit after a number may, an initial
    not.
    """
    if character(model, data, word.part)[0] & UPPER:
        if word.whole < word.start and character(model, data, word.whole)[0] & LOWER:
            return is_break  # as in "raio-X."
        if _is_of_ruler(model, data, word) and not model[FLAGS] & (ROMAN | NOUNS):
            return following.bits & ORTHO_LC != 0
        # An acronym such as U.S.A. is more than initials, but "J.M.A. Meijer" is none: the next word must tell.
        is_likely = is_break and not model[FLAGS] & CONTEXTS
        return word.points >= _FEWEST_POINTS and (is_likely or following.bits & ORTHO_LC != 0)
    if word.whole < word.start:
        return is_break  # the end of a word with a hyphen
    return _is_after_number(model, data, word.sentence, word.start) and _abbreviation_ends(
        model, data, word, following, is_break, scratch
    )


@lean_kernel
def _is_greek_acronym(model, data, word, following):
    """Return whether a Greek acronym such as Η.Π.Α. is before a capital.

    Names have an article in Greek; so one without, which is never written small, goes on with its sentence.
    """
    if word.points == 0 or following.start < 0 or not following.properties & UPPER:
        return False
    code, _size = code_at(data, word.start)
    return (
        _FIRST_GREEK <= code <= _LAST_GREEK
        and entry(model, code) & UPPER != 0
        and character(model, data, word.part)[0] & UPPER != 0
    )


@lean_kernel
def _following(model, data, after, end, scratch):
    """Return the word at byte `after`, which is -1 where there is none."""
    if after < 0:
        return _Following(after, after, np.int64(0), np.int64(0), False)
    next_end = word_end(model, data, after, end)
    properties = np.int64(character(model, data, after)[0])
    bits = word_bits(model, data, after, next_end, scratch)
    return _Following(after, next_end, properties, bits, is_roman(data, after, next_end))


@lean_kernel
def _word_ends(model, data, word, following, is_break, scratch):
    """Return whether a full stop after a word that is no number in digits ends a sentence."""
    properties, size = character(model, data, word.part)
    is_letter = word.part + size == word.stop and properties & ALPHA != 0 and data[word.part] < _FIRST_LEAD_3
    is_initial = is_letter and properties & UPPER != 0
    has_starters = model[FLAGS] & PUNKT_LETTERS != 0
    bits = _abbreviation_bits(model, data, word, is_initial, scratch)
    if bits & NEVER and bits & MAY_END:
        bits = bits & ~NEVER if properties & UPPER else bits & ~MAY_END
    if bits & NEVER:
        return False
    is_before_number = following.properties & DIGIT or following.is_roman or following.bits & FOLLOWS_ORDINAL
    if is_before_number and (bits & BEFORE_NUMBER or _is_small_roman(data, word)):
        return False
    if model[FLAGS] & CONTEXTS and not following.bits & ORTHO_LC and _is_greek_acronym(model, data, word, following):
        return False
    if bits & MAY_END:
        return _abbreviation_ends(model, data, word, following, is_break, scratch)
    if bits & RARELY_ENDS or (has_starters and is_initial and word.points > 0):
        telling = STARTING if has_starters else ORTHO_LC
        return not following.properties & DIGIT and following.bits & telling != 0
    if bits & ORDINARY:
        return is_break or following.properties & UPPER != 0
    if _is_syllable(data, word.part, word.stop):
        return False
    if is_letter and not model[FLAGS] & PUNKT_LETTERS:
        return _letter_ends(model, data, word, following, is_break, scratch)
    if is_roman(data, word.start, word.stop):
        return _roman_number_ends(model, following, is_break)
    return is_break


@lean_kernel
def full_stop_ends(model, data, sentence, stop, after, end, is_break, scratch):
    """Return whether the full stop at byte `stop` ends the sentence that starts at byte `sentence`.

    after: where the next word starts, or -1. is_break: what Punkt says.
    """
    word = _word_before(model, data, sentence, stop)
    if word.start == stop:
        return is_break
    following = _following(model, data, after, end, scratch)
    if after >= 0 and abbreviation_bits(model, data, word.start, following.end, scratch) & ABBREVIATES:
        return False  # it is between two words that are an abbreviation together
    num_digits = count_digits(model, data, word.start, stop)
    if word.start == sentence and _is_numbering(model, data, word, num_digits):
        return False
    if num_digits > 0:
        return _number_ends(model, data, word, num_digits, following, is_break)
    return _word_ends(model, data, word, following, is_break, scratch)


@lean_kernel
def _is_numbering(model, data, word, num_digits):
    """Return whether a word at the start of a sentence, with a full stop, is the number or the letter of an item."""
    if num_digits > 0:
        return num_digits <= _MOST_NUMBERING_DIGITS
    properties, size = character(model, data, word.start)
    is_letter = word.start + size == word.stop and properties & ALPHA != 0 and data[word.start] < _FIRST_LEAD_3
    return is_letter or is_roman(data, word.start, word.stop)


@lean_kernel
def is_item_number(model, data, sentence, stop):
    """Return whether nothing but a short number is between the start of a sentence and byte `stop`: the number of an
    item.
    """
    return 0 < count_digits(model, data, sentence, stop) <= _MOST_NUMBERING_DIGITS


@lean_kernel
def _is_semitic(model, code):
    """Return whether a character is a letter of Hebrew or Arabic."""
    return _FIRST_HEBREW <= code <= _LAST_ARABIC and entry(model, code) & ALPHA != 0


@lean_kernel
def lacks_space(model, data, begin, stop, before, code, scratch):
    """Return whether the full stop at byte `stop`, between the characters `before` and `code`, lacks the space of an
    end.

    So between letters of Greek, Cyrillic and Armenian where a capital follows, and between letters of India, or of
    Hebrew and Arabic, after a word that is long enough to be no abbreviation; and after a Korean verb. Latin file
    names have full stops.
    """
    if before == _KOREAN_VERB_END:
        return _FIRST_HANGUL <= code <= _LAST_HANGUL
    is_cased = entry(model, before) & LOWER and entry(model, code) & UPPER
    if is_cased:
        is_apart = before >= _FIRST_GREEK and code >= _FIRST_GREEK
    else:
        is_apart = _FIRST_INDIC <= before <= _LAST_INDIC and _FIRST_INDIC <= code <= _LAST_INDIC
    is_semitic = _is_semitic(model, before) and _is_semitic(model, code)
    behind = stop + 1 + character(model, data, stop + 1)[1]
    is_initial = is_cased and behind < data.size and data[behind] == _FULL_STOP
    if is_initial or not (is_apart or is_semitic):
        return False
    start = word_start(model, data, begin, stop)
    for at in range(start, stop):
        if data[at] == _FULL_STOP:
            return False
    least = _LEAST_SEMITIC_WORD if is_semitic else _LEAST_CASED_WORD if is_cased else _LEAST_FULL_WORD
    return stop - start >= least and not word_bits(model, data, start, stop, scratch) & ABBREVIATES
