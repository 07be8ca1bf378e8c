"""Punkt's decisions on UTF-8 bytes: where NLTK's sent_tokenize ends a sentence.

Implements nltk/tokenize/punkt.py (PunktSentenceTokenizer.span_tokenize) of the two versions that `ASCII_WORDS` and
the character tables tell apart. The steps are NLTK's: find candidates (a full stop, question or exclamation mark with
the right neighbour), take the few words around each, cut them into tokens, pass twice over the tokens with heuristics,
and move closing quotes back to the sentence before. Names in brackets in the docstrings are NLTK's.

Layout. A model is one int32 array (one, because a compiled call pays for every array it is handed):

- `model[SLOTS_AT]` to `model[ASCII_WORDS]` are the fields named below.
- From `model[PAGES]` on come the character tables, see maskmill/characters/kernels/characters.py.
- The words of the parameters are in an open hash table: `model[slots + (hash & mask)]` is a word number or -1. Word
  `w` is `model[letters + model[starts + w] : letters + model[starts + w + 1]]`, its code points in lower case, and
  `model[bits + w]` says what is known of it: NLTK's orthographic contexts (bits 1 to 6), `ABBREVIATION`, `STARTER`,
  `COLLOCATES` (the first word of a collocation).
- A collocation is two word numbers; collocations are sorted.

`scratch` is room for the word that is looked up, `model[LONGEST_WORD] + 2` code points, int32.

The functions are small and many, and are called for each word: lean kernels, so that a call costs next to nothing.
"""

from typing import NamedTuple

import numpy as np

from maskmill.characters.kernels.characters import (
    ALPHA,
    ASCII,
    CASED,
    CHECK,
    CLOSER,
    DELTA_SHIFT,
    DIGIT,
    IGNORABLE,
    LOWER,
    NO_WORD_START,
    NON_WORD,
    SPACE,
    UPPER,
    character,
    character_before,
    code_at,
    entry,
    stripped_end,
    stripped_start,
)
from maskmill.kernels import kernel, lean_kernel, wraps_around

# The fields at the head of a model: where its parts start (…_AT), and numbers.
SLOTS_AT = 0
SLOTS_MASK = 1
STARTS_AT = 2
LETTERS_AT = 3
BITS_AT = 4
COLLOCATIONS_AT = 5
NUM_COLLOCATIONS = 6
NUMBER_WORD = 7  # the number of the word that stands for every number
LONGEST_WORD = 8  # code points
ASCII_WORDS = 9  # the word before a candidate starts after ASCII white space (1, NLTK 3.6.6 and later) or any (0)

# The bits of a word; 1 to 6 are NLTK's orthographic contexts.
ORTHO_BEG_LC = 1 << 4
ORTHO_MID_UC = 1 << 2
ORTHO_UC = 1 << 1 | 1 << 2 | 1 << 3
ORTHO_LC = 1 << 4 | 1 << 5 | 1 << 6
ABBREVIATION = 1 << 7
STARTER = 1 << 8
COLLOCATES = 1 << 9

# The bits of a token, from the first pass.
_T_BREAK = 1
_T_ABBREVIATION = 2
_T_ELLIPSIS = 4
_T_PERIOD = 8
_T_NUMBER = 16
_T_INITIAL = 32
_T_COLLOCATES = 64
# Only tokens with one of these are looked at by the second pass.
_T_UNSURE = _T_ABBREVIATION | _T_ELLIPSIS | _T_NUMBER | _T_INITIAL | _T_COLLOCATES

HASH_START = np.uint64(14695981039346656037)  # FNV-1a, over code points
HASH_FACTOR = np.uint64(1099511628211)

_FULL_STOP, _QUESTION, _EXCLAMATION = ord("."), ord("?"), ord("!")
_COMMA, _HYPHEN, _NEWLINE = ord(","), ord("-"), ord("\n")
_SEMICOLON, _COLON, _BLANK, _TAB, _CARRIAGE_RETURN = ord(";"), ord(":"), ord(" "), ord("\t"), ord("\r")
_FIRST_SEPARATOR, _LAST_SEPARATOR = 0x1C, 0x1F  # control characters that are white space to Unicode, but not to ASCII
_CAPITAL_SIGMA, _FINAL_SIGMA, _SMALL_SIGMA, _DOTTED_I, _DOT_ABOVE = 0x3A3, 0x3C2, 0x3C3, 0x130, 0x307
_CAPITAL_SIGMA_BYTES = 2
_FIRST_LEAD = 0xC0  # the least first byte of a UTF-8 character of several bytes

FEWEST_MARKS = 256  # of a line that the buffers start with

_LINE_MARKS = np.zeros(256, np.uint8)
_LINE_MARKS[[_FULL_STOP, _QUESTION, _EXCLAMATION, _NEWLINE]] = 1


class _Token(NamedTuple):
    """A token: its bytes `start:end`, its _T_… bits, the number of its type among the words, or -1."""

    start: int
    end: int
    bits: int
    number: int


class _Candidate(NamedTuple):
    """A mark that may end a sentence.

    word_start: where the word before it starts. mark: its byte, or -1 for no candidate. after: the end of what follows
    and decides on it. next_start: where the next sentence starts if one ends here.
    """

    word_start: int
    mark: int
    after: int
    next_start: int


class _Slice(NamedTuple):
    """A piece of the line between two ends of sentences, which waits for the next one.

    skipped: the bytes at its start that belong to the sentence before it.
    """

    start: int
    end: int
    skipped: int


@lean_kernel
def _is_end_mark(byte):
    return byte in (_FULL_STOP, _QUESTION, _EXCLAMATION)


@lean_kernel
def _multi_character_mark(model, data, at, end):
    """Return whether `--`, `..` or `. . .` starts at byte `at` (_re_multi_char_punct)."""
    if at + 1 >= end:
        return False
    byte = data[at]
    if byte not in (_HYPHEN, _FULL_STOP):
        return False
    if data[at + 1] == byte:
        return True
    if byte == _HYPHEN:
        return False
    for _ in range(2):
        if at + 1 >= end or data[at] != _FULL_STOP or data[at + 1] == _NEWLINE:
            return False
        properties, size = character(model, data, at + 1)
        if not properties & SPACE:
            return False
        at += 1 + size
    return at < end and data[at] == _FULL_STOP


@lean_kernel
def _multi_character_end(model, data, at, end):
    """Return where the multi-character mark that starts at byte `at` ends."""
    byte = data[at]
    if data[at + 1] == byte:
        while at < end and data[at] == byte:
            at += 1
        return at
    while True:  # at a full stop: it goes on with one white space and another full stop
        if at + 1 >= end:
            return at + 1
        properties, size = character(model, data, at + 1)
        if not properties & SPACE or at + 1 + size >= end or data[at + 1 + size] != _FULL_STOP:
            return at + 1
        at += 1 + size


@lean_kernel
def _ends_word(model, data, at, end):
    """Return whether a word that reaches byte `at` ends there (_word_tokenize_fmt), a comma not looked at."""
    if at >= end:
        return True
    properties, _size = character(model, data, at)
    if properties & (SPACE | NON_WORD):
        return True
    return properties & CHECK != 0 and _multi_character_mark(model, data, at, end)


@lean_kernel
def _token_end(model, data, at, end):
    """Return where the token that starts at byte `at` (no white space) ends (_word_tokenize_fmt)."""
    properties, size = character(model, data, at)
    if properties & CHECK and _multi_character_mark(model, data, at, end):
        return _multi_character_end(model, data, at, end)
    at += size
    if properties & NO_WORD_START:
        return at
    while at < end:
        properties, size = character(model, data, at)
        if properties & (SPACE | NON_WORD | CHECK):
            if properties & (SPACE | NON_WORD):
                break
            if data[at] == _COMMA:
                if _ends_word(model, data, at + 1, end):
                    break
            elif _multi_character_mark(model, data, at, end):
                break
        at += size
    return at


@lean_kernel
def _sigma_is_final(model, data, start, end, at):
    """Return whether the capital sigma at byte `at` of a token gets its final form (str.lower)."""
    follows_cased = False
    before = at
    while before > start and not follows_cased:
        before = character_before(data, before, start)
        properties, _size = character(model, data, before)
        if not properties & IGNORABLE:
            if not properties & CASED:
                return False
            follows_cased = True
    if not follows_cased:
        return False
    after = at + _CAPITAL_SIGMA_BYTES
    while after < end:
        properties, size = character(model, data, after)
        if not properties & IGNORABLE:
            return properties & CASED == 0
        after += size
    return True


@lean_kernel
def look_up(model, data, start, end, scratch):
    """Return the number of the word that bytes `start:end` are in lower case, or -1."""
    count, hashed = _lower_and_hash(model, data, start, end, scratch)
    if count == 0 or count > model[LONGEST_WORD]:
        return -1
    mask = np.uint64(model[SLOTS_MASK])
    slot = (hashed ^ hashed >> np.uint64(32)) & mask
    while True:
        number = model[model[SLOTS_AT] + np.int64(slot)]
        if number < 0 or _is_word(model, number, scratch, count):
            return number
        slot = (slot + np.uint64(1)) & mask


@lean_kernel
def _is_word(model, number, scratch, count):
    """Return whether `scratch[:count]` is the word of this number."""
    first = model[LETTERS_AT] + model[model[STARTS_AT] + number]
    if model[LETTERS_AT] + model[model[STARTS_AT] + number + 1] - first != count:
        return False
    for i in range(count):
        if model[first + i] != scratch[i]:
            return False
    return True


@lean_kernel
@wraps_around
def _lower_and_hash(model, data, start, end, scratch):
    """Write bytes `start:end` in lower case to `scratch`; return the number of code points, and their hash before
    folding.

    Stops early, with a number above `model[LONGEST_WORD]`, when there are more than a word has.
    """
    count = 0
    hashed = HASH_START
    at = start
    while at < end:
        if count > model[LONGEST_WORD]:
            return count, hashed
        lead = data[at]
        if lead < 0x80:
            code = lead + (model[ASCII + lead] >> DELTA_SHIFT)
            at += 1
        else:
            code, size = code_at(data, at)
            if code == _CAPITAL_SIGMA:
                code = _FINAL_SIGMA if _sigma_is_final(model, data, start, end, at) else _SMALL_SIGMA
            elif code == _DOTTED_I:
                scratch[count] = ord("i")
                hashed = (hashed ^ np.uint64(scratch[count])) * HASH_FACTOR
                count += 1
                code = _DOT_ABOVE
            else:
                code += entry(model, code) >> DELTA_SHIFT
            at += size
        scratch[count] = code
        hashed = (hashed ^ np.uint64(scratch[count])) * HASH_FACTOR
        count += 1
    return count, hashed


@lean_kernel
def _is_number(model, data, start, end):
    r"""Return whether a token is a number: `^-?[\.,]?\d[\d,\.-]*\.?$`."""
    at = start
    if data[at] == _HYPHEN:
        at += 1
    if at < end and data[at] in (_FULL_STOP, _COMMA):
        at += 1
    if at >= end:
        return False
    properties, size = character(model, data, at)
    if not properties & DIGIT:
        return False
    at += size
    while at < end:
        properties, size = character(model, data, at)
        if not properties & (DIGIT | CHECK):
            return False
        at += size
    return True


@lean_kernel
def _is_abbreviation(model, number):
    """Return whether the word of a number, or -1, is an abbreviation."""
    return number >= 0 and model[model[BITS_AT] + number] & ABBREVIATION != 0


@lean_kernel
def _period_bits(model, data, start, end, number, scratch):
    """Return the bits of a token that ends in a full stop and is more than that; `number` is that of its type."""
    bits = _T_PERIOD
    if data[end - 2] == _FULL_STOP:
        bits |= _T_ELLIPSIS
        for at in range(start, end):
            if data[at] != _FULL_STOP:
                bits &= ~_T_ELLIPSIS
                break
    elif _is_abbreviation(model, number):
        bits |= _T_ABBREVIATION
    else:
        hyphen = end - 2
        while hyphen >= start and data[hyphen] != _HYPHEN:
            hyphen -= 1
        part = -1
        if hyphen >= start:
            # A hyphen bounds what decides on a final sigma, so the part after it can be looked up by itself.
            part = look_up(model, data, hyphen + 1, end - 1, scratch)
        bits |= _T_ABBREVIATION if _is_abbreviation(model, part) else _T_BREAK
    properties, size = character(model, data, start)
    if properties & ALPHA and end - start == size + 1:
        bits |= _T_INITIAL
    return bits


@lean_kernel
def _first_pass(model, data, start, end, scratch):
    """Return the token of bytes `start:end`, with what it says by itself (_first_pass_annotation).

    The type of a token that ends in a full stop is taken without it (type_no_period); the number is only looked up
    for those.
    """
    last = data[end - 1]
    if last != _FULL_STOP:
        is_mark = end - start == 1 and _is_end_mark(last)
        return _Token(start, end, _T_BREAK if is_mark else 0, -1)
    if end - start == 1:
        bits = _T_PERIOD | _T_BREAK
        number = int(look_up(model, data, start, end, scratch))
    else:
        number = int(look_up(model, data, start, end - 1, scratch))
        bits = _period_bits(model, data, start, end, number, scratch)
    if _is_number(model, data, start, end):
        number = int(model[NUMBER_WORD])
        bits |= _T_NUMBER
    if number >= 0 and model[model[BITS_AT] + number] & COLLOCATES:
        bits |= _T_COLLOCATES
    return _Token(start, end, bits, number)


@lean_kernel
def _next_type(model, data, token, scratch):
    """Return the number of the type of the token after a possible break (type_no_sentperiod), or -1."""
    if token.bits & _T_PERIOD:
        if token.bits & (_T_BREAK | _T_NUMBER):
            return token.number
    elif _is_number(model, data, token.start, token.end):
        return int(model[NUMBER_WORD])
    return int(look_up(model, data, token.start, token.end, scratch))


@lean_kernel
def _are_collocated(model, first, second):
    """Return whether two word numbers are a collocation."""
    low, high = 0, model[NUM_COLLOCATIONS]
    while low < high:
        middle = (low + high) >> 1
        at = model[COLLOCATIONS_AT] + 2 * middle
        if model[at] < first or (model[at] == first and model[at + 1] < second):
            low = middle + 1
        else:
            high = middle
    at = model[COLLOCATIONS_AT] + 2 * low
    return low < model[NUM_COLLOCATIONS] and model[at] == first and model[at + 1] == second


_FALSE, _TRUE, _UNKNOWN = 0, 1, 2


@lean_kernel
def _starts_sentence(model, data, start, end, bits):
    """Return whether a token whose type has these `bits` starts a sentence (_ortho_heuristic)."""
    byte = data[start]
    if end - start == 1 and (_is_end_mark(byte) or byte in (_COMMA, _SEMICOLON, _COLON)):
        return _FALSE
    properties, _size = character(model, data, start)
    if properties & UPPER and bits & ORTHO_LC and not bits & ORTHO_MID_UC:
        return _TRUE
    if properties & LOWER and (bits & ORTHO_UC or not bits & ORTHO_BEG_LC):
        return _FALSE
    return _UNKNOWN


@lean_kernel
def _second_pass(model, data, token, following, scratch):
    """Return whether a sentence ends with a token, in view of the token that follows (_second_pass_annotation)."""
    if not token.bits & _T_UNSURE:
        return token.bits & _T_BREAK != 0
    next_type = _next_type(model, data, following, scratch)
    if token.bits & _T_COLLOCATES and next_type >= 0 and _are_collocated(model, token.number, next_type):
        return False
    bits = model[model[BITS_AT] + next_type] if next_type >= 0 else 0
    starts = _starts_sentence(model, data, following.start, following.end, bits)
    upper = character(model, data, following.start)[0] & UPPER
    if (
        token.bits & (_T_ABBREVIATION | _T_ELLIPSIS)
        and not token.bits & _T_INITIAL
        and (starts == _TRUE or (upper and bits & STARTER))
    ):
        return True
    if token.bits & (_T_INITIAL | _T_NUMBER):
        if starts == _FALSE:
            return False
        if starts == _UNKNOWN and token.bits & _T_INITIAL and upper and not bits & ORTHO_LC:
            return False
    return token.bits & _T_BREAK != 0


@lean_kernel
def _contains_break(model, data, begin, end, scratch):
    """Return whether a sentence ends within bytes `begin:end`, before their last token (text_contains_sentbreak)."""
    token = _Token(begin, begin, 0, -1)  # the last one; there is none yet
    at = begin
    while at < end:
        properties, size = character(model, data, at)
        if properties & SPACE:
            at += size
            continue
        # Another token follows. It need not be read where it decides nothing.
        is_unsure = token.bits & _T_UNSURE != 0
        if not is_unsure and token.bits & _T_BREAK:
            return True
        following = _first_pass(model, data, at, _token_end(model, data, at, end), scratch)
        if is_unsure and _second_pass(model, data, token, following, scratch):
            return True
        token = following
        at = token.end
    return False


@lean_kernel
def _realigned(model, data, begin, end):
    """Return how many bytes of `begin:end` belong to the sentence before (re_boundary_realignment), 0 if none.

    Closing marks, up to white space (which is counted), to `--` or to the end.
    """
    at = begin
    while at < end:
        properties, size = character(model, data, at)
        if not properties & CLOSER:
            return 0
        at += size
        if at >= end:
            return at - begin
        properties, size = character(model, data, at)
        if properties & SPACE:
            while at < end:
                properties, size = character(model, data, at)
                if not properties & SPACE:
                    break
                at += size
            return at - begin
        if data[at] == _HYPHEN and at + 1 < end and data[at + 1] == _HYPHEN:
            return at - begin
    return 0


@lean_kernel
def _context_after(model, data, at, end):
    """Return what follows the candidate at byte `at`: (end of the context, start of the next sentence), -1 if none.

    The context takes one mark that ends a word, or white space and the word after it.
    """
    at += 1
    if at >= end:
        return -1, -1
    properties, size = character(model, data, at)
    if properties & NON_WORD:
        return at + size, at
    if not properties & SPACE:
        return -1, -1
    while properties & SPACE:
        at += size
        if at >= end:
            return -1, -1
        properties, size = character(model, data, at)
    start = at
    while not properties & SPACE:
        at += size
        if at >= end:
            break
        properties, size = character(model, data, at)
    return at, start


@lean_kernel
def _space_between(model, data, begin, end):
    """Return where the word at the end of bytes `begin:end` starts if white space is before it there, else -1."""
    at = end
    while at > begin:
        at -= 1
        byte = data[at]
        if byte == _BLANK or _TAB <= byte <= _CARRIAGE_RETURN:
            return at + 1
        if not model[ASCII_WORDS] and (byte >= _FIRST_LEAD or _FIRST_SEPARATOR <= byte <= _LAST_SEPARATOR):
            properties, size = character(model, data, at)
            if properties & SPACE:
                return at + size
    return -1


@lean_kernel
def _end_slice(model, data, waiting, start, end, spans, count):
    """Write the sentence of the waiting slice, and let bytes `start:end` wait: (the slice that waits, sentences)."""
    if waiting.end < 0:
        return _Slice(start, end, 0), count
    sentence_start = waiting.start + waiting.skipped
    # An empty slice (its end may even lie before its start) has nothing to give back.
    moved = int(_realigned(model, data, start, end))
    sentence_end = stripped_end(model, data, start, start + moved) if moved > 0 else waiting.end
    if moved > 0 or sentence_start < sentence_end:
        spans[count, 0] = sentence_start
        spans[count, 1] = sentence_end
        count += 1
    return _Slice(start, end, moved), count


@lean_kernel
def _find_candidate(model, data, begin, end, mark, previous):
    """Return the candidate at byte `mark` of a line, and whether it stands in another word than the previous one.

    Its `mark` is -1 if nothing follows that could start a sentence.
    """
    after, next_start = _context_after(model, data, mark, end)
    if after < 0:
        return _Candidate(begin, -1, -1, -1), False
    if previous.mark < 0:
        is_apart = False
        word_start = _space_between(model, data, begin, mark)
        if word_start < 0 or (model[ASCII_WORDS] and word_start == begin + 1):
            word_start = begin  # NLTK takes white space at place 0 for none
    else:
        word_start = _space_between(model, data, previous.mark, mark)
        is_apart = word_start >= 0 or (model[ASCII_WORDS] != 0 and previous.word_start == previous.mark)
        if word_start < 0:
            word_start = previous.word_start
    return _Candidate(word_start, mark, after, next_start), is_apart


@lean_kernel
def line_breaks(model, data, begin, end, marks, next_starts, scratch):
    """Find where sentences of one line end.

    `data[begin:end]` is the line; `marks`, int64 [n], are the places of its bytes `.`, `?` and `!`. Writes to
    `next_starts`, int64 [n], where the next sentence starts if one ends at the mark, else -1.
    """
    candidate = _Candidate(begin, -1, -1, -1)
    number = -1  # of the candidate; of several in one word, the last one counts
    for later_number in range(marks.size):
        next_starts[later_number] = -1
        later, is_apart = _find_candidate(model, data, begin, end, marks[later_number], candidate)
        if later.mark < 0:
            continue
        if is_apart and _contains_break(model, data, candidate.word_start, candidate.after, scratch):
            next_starts[number] = candidate.next_start
        candidate = later
        number = later_number
    if candidate.mark >= 0 and _contains_break(model, data, candidate.word_start, candidate.after, scratch):
        next_starts[number] = candidate.next_start


@lean_kernel
def line_sentences(model, data, begin, end, marks, room):
    """Write the spans of the sentences of one line (see `line_breaks`) into the room's; return their number."""
    next_starts, spans = room.next_starts, room.spans
    line_breaks(model, data, begin, end, marks, next_starts, room.scratch)
    count = 0
    waiting = _Slice(begin, -1, 0)
    last_break = begin
    for number in range(marks.size):
        if next_starts[number] >= 0:
            waiting, count = _end_slice(model, data, waiting, last_break, marks[number] + 1, spans, count)
            last_break = next_starts[number]
    line_end = stripped_end(model, data, begin, end)
    waiting, count = _end_slice(model, data, waiting, last_break, line_end, spans, count)
    if waiting.start + waiting.skipped < waiting.end:
        spans[count, 0] = waiting.start + waiting.skipped
        spans[count, 1] = waiting.end
        count += 1
    return count


@lean_kernel
def find_marks(data, begin, marks):
    """Scan one line from byte `begin`: (its end, number of `.`, `?`, `!`); write their places to `marks`.

    Stops early, with a number larger than `marks` holds, when there are too many.
    """
    count = 0
    at = begin
    while at < data.size:
        if _LINE_MARKS[data[at]]:
            if data[at] == _NEWLINE:
                break
            if count >= marks.size:
                return at, count + 1
            marks[count] = at
            count += 1
        at += 1
    return at, count


@kernel
def _scratch(model):
    return np.empty(model[LONGEST_WORD] + 2, np.int32)


@lean_kernel
def write_sentences(model, data, spans, keep_blank, out, written):
    """Write sentences, stripped, one a line; return how many bytes are written then."""
    for number in range(spans.shape[0]):
        start = stripped_start(model, data, spans[number, 0], spans[number, 1])
        end = stripped_end(model, data, start, spans[number, 1])
        if start < end or keep_blank:
            for at in range(start, end):
                out[written] = data[at]
                written += 1
            out[written] = _NEWLINE
            written += 1
    return written


@lean_kernel
def _is_one_character(data, begin, end):
    """Return whether the line of bytes `begin:end`, with its newline if it has one, is a single character."""
    if end < data.size:
        return begin == end
    return end - begin == code_at(data, begin)[1]


class Room(NamedTuple):
    """Room for the work on a line; it grows with the lines."""

    marks: np.ndarray
    next_starts: np.ndarray
    spans: np.ndarray
    scratch: np.ndarray


@kernel
def room_for(model, size):
    """Room for a line of so many marks."""
    marks, next_starts = np.empty(size, np.int64), np.empty(size, np.int64)
    return Room(marks, next_starts, np.empty((size + 1, 2), np.int64), np.empty(model[LONGEST_WORD] + 2, np.int32))


@lean_kernel
def split_line(model, data, begin, room):
    """Split the line at byte `begin`: (its end, its sentences, whose spans the room has); (-1, 0) without room."""
    end, num_marks = find_marks(data, begin, room.marks)
    if num_marks > room.marks.size:
        return -1, 0
    return end, line_sentences(model, data, begin, end, room.marks[:num_marks], room)


@kernel
def spans_of_line(model, data):
    """Return the spans of the sentences of a text without newline (but for the last byte), int64 [n, 2]."""
    room = room_for(model, data.size)
    _end, count = split_line(model, data, 0, room)
    return room.spans[:count].copy()


@kernel
def split_lines(model, data, keep_blank, out):
    """Write the sentences of each line of `data` to `out`, one a line, stripped; the bytes written.

    With `keep_blank`, lines of one character give a blank line, and sentences that strip to nothing stay, as
    do_sentence_segmentation.py has it. `out` needs `2 * data.size + 2` bytes at most.
    """
    room = room_for(model, FEWEST_MARKS)
    written = 0
    begin = 0
    while begin < data.size:
        end, count = split_line(model, data, begin, room)
        if end < 0:
            room = room_for(model, 4 * room.marks.size)
            continue
        if keep_blank and _is_one_character(data, begin, end):
            out[written] = _NEWLINE
            written += 1
        written = write_sentences(model, data, room.spans[:count], keep_blank, out, written)
        begin = end + 1
    return written


def warm_up() -> None:
    """Compile what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"One. Two.", np.uint8)
    model = np.zeros(ASCII + 256, np.int32)
    spans_of_line(model, text)
    split_lines(model, text, False, np.empty(20, np.uint8))
