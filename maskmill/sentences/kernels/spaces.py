"""Tests of whether a space ends a sentence, in Thai and Lao, which have no marks for that."""

import numpy as np

from maskmill.characters.kernels.characters import DIGIT, SPACE, character, character_before, code_at
from maskmill.kernels import lean_kernel
from maskmill.sentences.kernels.words import (
    CLAUSES,
    FINITE,
    FLAGS,
    FRONTING,
    JOINING,
    NOMINAL,
    OPENING,
    PENDING,
    PLAIN,
    RELATIVE,
    STARTING,
    SUBORDINATE,
    VERB,
    skip_space,
    word_bits,
    word_start,
)

# ASCII characters in front of a space with which no sentence ends.
_GOES_ON = np.zeros(128, np.uint8)
_GOES_ON[[ord(character) for character in ",-:;/&+="]] = 1
_FULL_STOP = ord(".")
# Bytes on either side of a space that ends a sentence. A letter of those scripts has three.
_LEAST_BY_SPACE = 3 * 40
_LEAST_BEFORE_START = 3 * 20  # where a word follows that starts sentences
_LEAST_WORD, _LEAST_CLEAR_WORD = 3 * 14, 3 * 22  # from space to space
_LONGEST_JOINING = 16  # characters
# The same where verbs show the clauses.
_LEAST_CLAUSE_BEFORE, _LEAST_CLAUSE_BEHIND = 3 * 24, 3 * 24
_LEAST_CLAUSE, _LEAST_CLEAR_CLAUSE, _LEAST_FRONTED_CLAUSE = 3 * 10, 3 * 14, 3 * 20
_LEAST_RELATIVE, _LEAST_SUBJECT = 3 * 8, 3 * 5
_LONGEST_IN_CLAUSE = 10  # characters of a word that counts there
_LONGEST_SEARCH = 600  # bytes for the first verb of a sentence
_MOST_FOREIGN = 8  # words in another script between a subject and its verb
_LONGEST_ABBREVIATION = 3 * 8  # bytes


@lean_kernel
def _is_spaced_letter(data, at):
    """Return whether the character at byte `at` is a letter or sign of Thai or Lao, and neither a digit nor a
    repetition.
    """
    code = code_at(data, at)[0]
    if not 0xE00 <= code <= 0xEFF:
        return False
    low = code & 0x7F
    return not (0x50 <= low <= 0x59 or low in (0x46, 0x2F, 0x3F))


@lean_kernel
def _bits_at_start(model, data, at, end, scratch):
    """Return what is known of the words that the text of bytes `at:end` starts with, which has no space between
    words.
    """
    bits = np.int64(0)
    until = at
    for _ in range(_LONGEST_JOINING):
        if until >= end:
            break
        until += code_at(data, until)[1]
        bits |= word_bits(model, data, at, until, scratch)
    return bits


@lean_kernel
def _bits_at_end(model, data, begin, at, scratch):
    """Return what is known of the words that the text of bytes `begin:at` ends with."""
    bits = np.int64(0)
    since = at
    for _ in range(_LONGEST_JOINING):
        if since <= begin:
            break
        since = character_before(data, since, begin)
        bits |= word_bits(model, data, since, at, scratch)
    return bits


@lean_kernel
def _word_length(model, data, at, end):
    """Return the bytes from `at` up to white space."""
    until = at
    while until < end:
        properties, size = character(model, data, until)
        if properties & SPACE:
            break
        until += size
    return until - at


@lean_kernel
def _longest_word(model, data, at, end, scratch):
    """Return the longest word that the model knows of those which the text of bytes `at:end` starts with: (bits, its
    end).
    """
    bits = np.int64(0)
    longest = at
    until = at
    for _ in range(_LONGEST_IN_CLAUSE):
        if until >= end:
            break
        until += code_at(data, until)[1]
        found = word_bits(model, data, at, until, scratch)
        if found:
            bits, longest = found, until
    return bits, longest


@lean_kernel
def _holds_verb(model, data, at, end, is_chunk, scratch):
    """Return whether bytes `at:end` hold a verb; in a chunk from space to space not as its first word or in a relative
    clause.

    There are no spaces between words, so that a word may be found inside another one.
    """
    first = at
    nominal_end = relative_end = np.int64(-1)
    while at < end:
        bits, until = _longest_word(model, data, at, end, scratch)
        if until == at:
            at += code_at(data, at)[1]
            continue
        if bits & PLAIN == 0:
            if bits & RELATIVE and is_chunk:
                if bits & VERB:
                    return False
                relative_end = until
            elif bits & VERB and at != nominal_end and (at > first or not is_chunk):
                if relative_end < 0 or (bits & FINITE and at - relative_end >= _LEAST_RELATIVE):
                    return True
            if bits & NOMINAL:
                nominal_end = until
        at = until
    return False


@lean_kernel
def _verb_follows_foreign(model, data, at, end, scratch):
    """Return whether a verb follows words in another script that start at byte `at`, such as a name in brackets."""
    if at < end and character(model, data, at)[0] & DIGIT:
        return False
    for number in range(_MOST_FOREIGN):
        if at >= end or _is_spaced_letter(data, at):
            return number > 0 and at < end and _longest_word(model, data, at, end, scratch)[0] & (VERB | PLAIN) == VERB
        at = skip_space(model, data, at + _word_length(model, data, at, end), end)
    return False


@lean_kernel
def _main_clause(model, data, sentence, end, scratch):
    """Return where the main clause of a sentence starts at the earliest: after a space if a subordinate one starts
    it.
    """
    at = sentence
    until = sentence
    for _ in range(_LONGEST_JOINING):
        if until >= end:
            break
        until += code_at(data, until)[1]
        if word_bits(model, data, sentence, until, scratch) & STARTING:
            at = until
    at = skip_space(model, data, at, end)
    if _bits_at_start(model, data, at, end, scratch) & SUBORDINATE:
        return at + _word_length(model, data, at, end)
    return sentence


@lean_kernel
def _starts_clause(model, data, at, end, least, scratch):
    """Return whether the text from byte `at` on, after a space, has a subject and a verb."""
    first = _bits_at_start(model, data, at, end, scratch)
    if first & OPENING:
        return True
    if first & (JOINING | VERB):
        return False
    length = _word_length(model, data, at, end)
    if length >= (_LEAST_FRONTED_CLAUSE if first & FRONTING else least):
        if _holds_verb(model, data, at, at + length, True, scratch):
            return True
    if first & FRONTING or length < (_LEAST_SUBJECT if least == _LEAST_CLAUSE else least):
        return False
    return _verb_follows_foreign(model, data, skip_space(model, data, at + length, end), end, scratch)


@lean_kernel
def _parts_clauses(model, data, sentence, at, behind, end, scratch):
    """Return whether the white space of bytes `at:behind` stands between two clauses that make sentences of their
    own.
    """
    if not _is_spaced_letter(data, behind) or end - behind < _LEAST_CLAUSE_BEHIND:
        return False
    last = character_before(data, at, sentence)
    word = at - word_start(model, data, sentence, at)
    if data[last] == _FULL_STOP and word > _LONGEST_ABBREVIATION:
        return True
    main = _main_clause(model, data, sentence, at, scratch)
    if at - main < _LEAST_CLAUSE_BEFORE or _bits_at_end(model, data, sentence, at, scratch) & PENDING:
        return False
    is_weak = not _is_spaced_letter(data, last) or word < _LEAST_WORD
    if not _starts_clause(model, data, behind, end, _LEAST_CLEAR_CLAUSE if is_weak else _LEAST_CLAUSE, scratch):
        return False
    return _holds_verb(model, data, main, min(at, main + _LONGEST_SEARCH), False, scratch)


@lean_kernel
def space_ends(model, data, begin, end, sentence, at, scratch):
    """Return whether the white space at byte `at` ends a sentence in a language that ends sentences so."""
    behind = skip_space(model, data, at, end)
    if at - sentence < _LEAST_BEFORE_START or end - behind < _LEAST_BEFORE_START:
        return False
    first = _bits_at_start(model, data, behind, end, scratch)
    last = character_before(data, at, begin)
    if data[last] < 0x80 and _GOES_ON[data[last]]:
        return False
    if first & STARTING:
        return not model[FLAGS] & CLAUSES or not _bits_at_end(model, data, sentence, at, scratch) & PENDING
    if model[FLAGS] & CLAUSES:
        return _parts_clauses(model, data, sentence, at, behind, end, scratch)
    if at - sentence < _LEAST_BY_SPACE or end - behind < _LEAST_BY_SPACE or first & JOINING:
        return False
    if not _is_spaced_letter(data, behind):
        return False
    # Names and the items of lists are short.
    length = _word_length(model, data, behind, end)
    is_weak = not _is_spaced_letter(data, last) or at - word_start(model, data, sentence, at) < _LEAST_WORD
    if length < (_LEAST_CLEAR_WORD if is_weak else _LEAST_WORD):
        return False
    return not _bits_at_end(model, data, sentence, at, scratch) & PENDING
