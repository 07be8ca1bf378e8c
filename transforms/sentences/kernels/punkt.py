"""Punkt's decisions on UTF-8 bytes: where NLTK's sent_tokenize ends a sentence.

Implements nltk/tokenize/punkt.py (PunktSentenceTokenizer.span_tokenize) of the two versions that `ASCII_WORDS` and
the character tables tell apart. The steps are NLTK's: candidates (a full stop, question or exclamation mark with
the right neighbour), the few words around each, their tokens, the two passes of heuristics over those tokens, and
the realignment of closing quotes.

Layout. A model is one int32 array (one, because a compiled call pays for every array it is handed):

- `model[SLOTS_AT]` to `model[ASCII_WORDS]` are the fields named below.
- From `model[PAGES]` on come the character tables, see transforms/characters/kernels/characters.py.
- The words of the parameters are in an open hash table: `model[slots + (hash & mask)]` is a word number or -1. Word
  `w` is `model[letters + model[starts + w] : letters + model[starts + w + 1]]`, its code points in lower case, and
  `model[bits + w]` says what is known of it: NLTK's orthographic contexts (bits 1 to 6), `ABBREVIATION`, `STARTER`,
  `COLLOCATES` (the first word of a collocation).
- A collocation is two word numbers; they are sorted.

A token is its bytes `start:end`, the `_T_…` bits that the first pass finds of it, and the number of its word or -1.
"""

import numpy as np

from transforms.characters.kernels.characters import (
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
from transforms.kernels import kernel

# The fields at the head of a model.
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

# What is known of a word; bits 1 to 6 are NLTK's orthographic contexts.
ORTHO_BEG_LC = 1 << 4
ORTHO_MID_UC = 1 << 2
ORTHO_UC = 1 << 1 | 1 << 2 | 1 << 3
ORTHO_LC = 1 << 4 | 1 << 5 | 1 << 6
ABBREVIATION = 1 << 7
STARTER = 1 << 8
COLLOCATES = 1 << 9

# What the first pass finds of a token.
_T_BREAK = 1
_T_ABBREVIATION = 2
_T_ELLIPSIS = 4
_T_PERIOD = 8
_T_NUMBER = 16
_T_INITIAL = 32
_T_COLLOCATES = 64

_HASH_START = np.uint64(14695981039346656037)  # FNV-1a, over code points
_HASH_FACTOR = np.uint64(1099511628211)

_FULL_STOP, _QUESTION, _EXCLAMATION = ord("."), ord("?"), ord("!")
_COMMA, _HYPHEN, _NEWLINE = ord(","), ord("-"), ord("\n")
_CAPITAL_SIGMA, _FINAL_SIGMA, _SMALL_SIGMA, _DOTTED_I, _DOT_ABOVE = 0x3A3, 0x3C2, 0x3C3, 0x130, 0x307

_LINE_MARKS = np.zeros(256, np.uint8)
_LINE_MARKS[[_FULL_STOP, _QUESTION, _EXCLAMATION, _NEWLINE]] = 1


@kernel
def _is_end_mark(byte):  # type: ignore[no-untyped-def]
    return byte in (_FULL_STOP, _QUESTION, _EXCLAMATION)


@kernel
def _multi_character_mark(model, data, at, end):  # type: ignore[no-untyped-def]
    """Whether `--`, `..` or `. . .` starts at byte `at` (_re_multi_char_punct)."""
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
        held, size = character(model, data, at + 1)
        if not held & SPACE:
            return False
        at += 1 + size
    return at < end and data[at] == _FULL_STOP


@kernel
def _multi_character_end(model, data, at, end):  # type: ignore[no-untyped-def]
    """Where the multi-character mark that starts at byte `at` ends."""
    byte = data[at]
    if data[at + 1] == byte:
        while at < end and data[at] == byte:
            at += 1
        return at
    while True:  # at a full stop: it goes on with one white space and another full stop
        if at + 1 >= end:
            return at + 1
        held, size = character(model, data, at + 1)
        if not held & SPACE or at + 1 + size >= end or data[at + 1 + size] != _FULL_STOP:
            return at + 1
        at += 1 + size


@kernel
def _ends_word(model, data, at, end):  # type: ignore[no-untyped-def]
    """Whether a word that reaches byte `at` ends there (_word_tokenize_fmt), a comma not looked at."""
    if at >= end:
        return True
    held, _size = character(model, data, at)
    if held & (SPACE | NON_WORD):
        return True
    return held & CHECK != 0 and _multi_character_mark(model, data, at, end)


@kernel
def _token_end(model, data, at, end):  # type: ignore[no-untyped-def]
    """Where the token that starts at byte `at` (no white space) ends (_word_tokenize_fmt)."""
    held, size = character(model, data, at)
    if held & CHECK and _multi_character_mark(model, data, at, end):
        return _multi_character_end(model, data, at, end)
    at += size
    if held & NO_WORD_START:
        return at
    while at < end:
        held, size = character(model, data, at)
        if held & (SPACE | NON_WORD | CHECK):
            if held & (SPACE | NON_WORD):
                break
            if data[at] == _COMMA:
                if _ends_word(model, data, at + 1, end):
                    break
            elif _multi_character_mark(model, data, at, end):
                break
        at += size
    return at


@kernel
def _sigma_is_final(model, data, start, end, at):  # type: ignore[no-untyped-def]
    """Whether the capital sigma at byte `at` of a token gets its final form (str.lower)."""
    found = False
    before = at
    while before > start and not found:
        before = character_before(data, before, start)
        held, _size = character(model, data, before)
        if not held & IGNORABLE:
            found = True
            if not held & CASED:
                return False
    if not found:
        return False
    after = at + 2
    while after < end:
        held, size = character(model, data, after)
        if not held & IGNORABLE:
            return held & CASED == 0
        after += size
    return True


@kernel
def _look_up(model, data, start, end, word):  # type: ignore[no-untyped-def]
    """The number of the word that bytes `start:end` are in lower case, or -1. `word` is scratch."""
    count = 0
    hashed = _HASH_START
    at = start
    while at < end:
        if count > model[LONGEST_WORD]:
            return -1
        lead = data[at]
        if lead < 0x80:
            code = lead + (model[ASCII + lead] >> DELTA_SHIFT)
            at += 1
        else:
            code, size = code_at(data, at)
            if code == _CAPITAL_SIGMA:
                code = _FINAL_SIGMA if _sigma_is_final(model, data, start, end, at) else _SMALL_SIGMA
            elif code == _DOTTED_I:
                word[count] = ord("i")
                hashed = (hashed ^ np.uint64(word[count])) * _HASH_FACTOR
                count += 1
                code = _DOT_ABOVE
            else:
                code += entry(model, code) >> DELTA_SHIFT
            at += size
        word[count] = code
        hashed = (hashed ^ np.uint64(word[count])) * _HASH_FACTOR
        count += 1
    if count == 0 or count > model[LONGEST_WORD]:
        return -1
    mask = np.uint64(model[SLOTS_MASK])
    slot = (hashed ^ hashed >> np.uint64(32)) & mask
    while True:
        number = model[model[SLOTS_AT] + np.int64(slot)]
        if number < 0:
            return -1
        first = model[LETTERS_AT] + model[model[STARTS_AT] + number]
        if model[LETTERS_AT] + model[model[STARTS_AT] + number + 1] - first == count:
            same = True
            for i in range(count):
                if model[first + i] != word[i]:
                    same = False
                    break
            if same:
                return number
        slot = (slot + np.uint64(1)) & mask


@kernel
def _is_number(model, data, start, end):  # type: ignore[no-untyped-def]
    r"""Whether a token is a number: `^-?[\.,]?\d[\d,\.-]*\.?$`."""
    at = start
    if data[at] == _HYPHEN:
        at += 1
    if at < end and data[at] in (_FULL_STOP, _COMMA):
        at += 1
    if at >= end:
        return False
    held, size = character(model, data, at)
    if not held & DIGIT:
        return False
    at += size
    while at < end:
        held, size = character(model, data, at)
        if not held & (DIGIT | CHECK):
            return False
        at += size
    return True


@kernel
def _first_pass(model, data, start, end, word):  # type: ignore[no-untyped-def]
    """What a token says by itself (_first_pass_annotation): its bits, and the number of its type.

    The type of a token that ends in a full stop is taken without it (type_no_period); the number is only looked up
    for those.
    """
    last = data[end - 1]
    if last != _FULL_STOP:
        if end - start == 1 and _is_end_mark(last):
            return _T_BREAK, -1
        return 0, -1
    found = _T_PERIOD
    if end - start == 1:
        found |= _T_BREAK
        number = _look_up(model, data, start, end, word)
    else:
        number = _look_up(model, data, start, end - 1, word)
        if data[end - 2] == _FULL_STOP:
            found |= _T_ELLIPSIS
            for at in range(start, end):
                if data[at] != _FULL_STOP:
                    found &= ~_T_ELLIPSIS
                    break
        elif number >= 0 and model[model[BITS_AT] + number] & ABBREVIATION:
            found |= _T_ABBREVIATION
        else:
            hyphen = end - 2
            while hyphen >= start and data[hyphen] != _HYPHEN:
                hyphen -= 1
            part = -1
            if hyphen >= start:
                # A hyphen bounds what decides on a final sigma, so that the part can be taken by itself.
                part = _look_up(model, data, hyphen + 1, end - 1, word)
            if part >= 0 and model[model[BITS_AT] + part] & ABBREVIATION:
                found |= _T_ABBREVIATION
            else:
                found |= _T_BREAK
        held, size = character(model, data, start)
        if held & ALPHA and end - start == size + 1:
            found |= _T_INITIAL
    if _is_number(model, data, start, end):
        number = model[NUMBER_WORD]
        found |= _T_NUMBER
    if number >= 0 and model[model[BITS_AT] + number] & COLLOCATES:
        found |= _T_COLLOCATES
    return found, number


@kernel
def _next_type(model, data, start, end, found, number, word):  # type: ignore[no-untyped-def]
    """The number of the type of the token after a possible break (type_no_sentperiod), or -1."""
    if found & _T_PERIOD and (found & (_T_BREAK | _T_NUMBER)):
        return number
    if not found & _T_PERIOD and _is_number(model, data, start, end):
        return model[NUMBER_WORD]
    return _look_up(model, data, start, end, word)


@kernel
def _are_collocated(model, first, second):  # type: ignore[no-untyped-def]
    """Whether two word numbers are a collocation."""
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


@kernel
def _starts_sentence(model, data, start, end, bits):  # type: ignore[no-untyped-def]
    """Whether a token whose type has these `bits` starts a sentence (_ortho_heuristic)."""
    byte = data[start]
    if end - start == 1 and (_is_end_mark(byte) or byte in (_COMMA, ord(";"), ord(":"))):
        return _FALSE
    held, _size = character(model, data, start)
    if held & UPPER and bits & ORTHO_LC and not bits & ORTHO_MID_UC:
        return _TRUE
    if held & LOWER and (bits & ORTHO_UC or not bits & ORTHO_BEG_LC):
        return _FALSE
    return _UNKNOWN


@kernel
def _second_pass(model, data, found, number, start, end, next_found, next_number, word):  # type: ignore[no-untyped-def]
    """Whether a sentence ends with a token, in view of the token after it (_second_pass_annotation).

    `found` and `number` are of the token, the others of the one after it.
    """
    if not found & (_T_ABBREVIATION | _T_ELLIPSIS | _T_NUMBER | _T_INITIAL | _T_COLLOCATES):
        return found & _T_BREAK != 0
    next_type = _next_type(model, data, start, end, next_found, next_number, word)
    if found & _T_COLLOCATES and next_type >= 0 and _are_collocated(model, number, next_type):
        return False
    bits = model[model[BITS_AT] + next_type] if next_type >= 0 else 0
    starts = _starts_sentence(model, data, start, end, bits)
    upper = character(model, data, start)[0] & UPPER
    if (
        found & (_T_ABBREVIATION | _T_ELLIPSIS)
        and not found & _T_INITIAL
        and (starts == _TRUE or (upper and bits & STARTER))
    ):
        return True
    if found & (_T_INITIAL | _T_NUMBER):
        if starts == _FALSE:
            return False
        if starts == _UNKNOWN and found & _T_INITIAL and upper and not bits & ORTHO_LC:
            return False
    return found & _T_BREAK != 0


@kernel
def _contains_break(model, data, begin, end, word):  # type: ignore[no-untyped-def]
    """Whether a sentence ends within bytes `begin:end`, before their last token (text_contains_sentbreak)."""
    found = 0
    number = -1
    at = begin
    while at < end:
        held, size = character(model, data, at)
        if held & SPACE:
            at += size
            continue
        # Another token follows: where what it is does not matter, it need not be read.
        if found and not found & (_T_ABBREVIATION | _T_ELLIPSIS | _T_NUMBER | _T_INITIAL | _T_COLLOCATES):
            if found & _T_BREAK:
                return True
            found = 0
        token_end = _token_end(model, data, at, end)
        next_found, next_number = _first_pass(model, data, at, token_end, word)
        if found and _second_pass(model, data, found, number, at, token_end, next_found, next_number, word):
            return True
        found, number = next_found, next_number
        at = token_end
    return False


@kernel
def _realigned(model, data, begin, end):  # type: ignore[no-untyped-def]
    """How many bytes of `begin:end` belong to the sentence before (re_boundary_realignment), 0 if none.

    Closing marks, up to white space (which is counted), to `--` or to the end.
    """
    at = begin
    while at < end:
        held, size = character(model, data, at)
        if not held & CLOSER:
            return 0
        at += size
        if at >= end:
            return at - begin
        held, size = character(model, data, at)
        if held & SPACE:
            while at < end:
                held, size = character(model, data, at)
                if not held & SPACE:
                    break
                at += size
            return at - begin
        if data[at] == _HYPHEN and at + 1 < end and data[at + 1] == _HYPHEN:
            return at - begin
    return 0


@kernel
def _context_after(model, data, at, end):  # type: ignore[no-untyped-def]
    """What follows the candidate at byte `at`: (end of the context, start of the next sentence), -1 if none.

    The context takes one mark that ends a word, or white space and the word after it.
    """
    at += 1
    if at >= end:
        return -1, -1
    held, size = character(model, data, at)
    if held & NON_WORD:
        return at + size, at
    if not held & SPACE:
        return -1, -1
    while held & SPACE:
        at += size
        if at >= end:
            return -1, -1
        held, size = character(model, data, at)
    start = at
    while not held & SPACE:
        at += size
        if at >= end:
            break
        held, size = character(model, data, at)
    return at, start


@kernel
def _space_between(model, data, begin, end):  # type: ignore[no-untyped-def]
    """Where the word at the end of bytes `begin:end` starts if white space is before it there, else -1."""
    at = end
    while at > begin:
        at -= 1
        byte = data[at]
        if byte == 0x20 or 0x09 <= byte <= 0x0D:
            return at + 1
        if not model[ASCII_WORDS] and (byte >= 0xC0 or 0x1C <= byte <= 0x1F):
            held, size = character(model, data, at)
            if held & SPACE:
                return at + size
    return -1


@kernel
def line_sentences(model, data, begin, end, marks, num_marks, word, spans):  # type: ignore[no-untyped-def]
    """Writes the spans of the sentences of one line into `spans` [n, 2]; their number.

    `data[begin:end]` is the line; `marks[:num_marks]` are the places of its bytes `.`, `?` and `!`.
    `spans` has room for `num_marks + 1`; `word` is scratch of `model[LONGEST_WORD] + 2` code points.
    """
    count = 0
    # The slice of text that waits for the one after it (realignment looks at both).
    held_start = begin
    held_end = -1
    realign = 0
    last_break = begin
    # The candidate that waits: a later one in the same word takes its place.
    word_start = begin
    mark = -1
    after = next_start = -1
    number = 0
    while True:
        new_mark = -1
        new_start = new_after = new_next = -1
        evaluate = False
        if number < num_marks:
            at = marks[number]
            number += 1
            new_after, new_next = _context_after(model, data, at, end)
            if new_after < 0:
                continue
            new_mark = at
            if mark < 0:
                new_start = _space_between(model, data, begin, at)
                if new_start < 0 or (model[ASCII_WORDS] and new_start == begin + 1):
                    new_start = begin  # NLTK takes white space at place 0 for none
            else:
                new_start = _space_between(model, data, mark, at)
                if new_start < 0:
                    new_start = word_start
                    evaluate = model[ASCII_WORDS] and word_start == mark
                else:
                    evaluate = True
        else:
            evaluate = mark >= 0
        done = new_mark < 0
        is_break = evaluate and _contains_break(model, data, word_start, after, word)
        # A round of the loop hands over at most two slices: one that ends at a break, and the last one.
        for last in range(2):
            if last == 0:
                if not is_break:
                    continue
                slice_start = last_break
                slice_end = mark + 1
                last_break = next_start
            else:
                if not done:
                    continue
                slice_start = last_break
                slice_end = stripped_end(model, data, begin, end)
            if held_end >= 0:
                start = held_start + realign
                # An empty slice (its end may even lie before its start) has nothing to give back.
                moved = _realigned(model, data, slice_start, slice_end)
                if moved > 0:
                    spans[count, 0] = start
                    spans[count, 1] = stripped_end(model, data, slice_start, slice_start + moved)
                    count += 1
                    realign = moved
                else:
                    realign = 0
                    if start < held_end:
                        spans[count, 0] = start
                        spans[count, 1] = held_end
                        count += 1
            held_start = slice_start
            held_end = slice_end
        if done:
            break
        word_start, mark, after, next_start = new_start, new_mark, new_after, new_next
    if held_start + realign < held_end:
        spans[count, 0] = held_start + realign
        spans[count, 1] = held_end
        count += 1
    return count


@kernel
def find_marks(data, begin, marks):  # type: ignore[no-untyped-def]
    """Scans one line from byte `begin`: (its end, number of `.`, `?`, `!`); writes their places to `marks`.

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
def spans_of_line(model, data):  # type: ignore[no-untyped-def]
    """The spans of the sentences of a text without newline (but for the last byte), int64 [n, 2]."""
    num_marks = 0
    for byte in data:
        if _is_end_mark(byte):
            num_marks += 1
    marks = np.empty(num_marks, np.int64)
    number = 0
    for at in range(data.size):
        if _is_end_mark(data[at]):
            marks[number] = at
            number += 1
    spans = np.empty((num_marks + 1, 2), np.int64)
    word = np.empty(model[LONGEST_WORD] + 2, np.int32)
    count = line_sentences(model, data, 0, data.size, marks, num_marks, word, spans)
    return spans[:count]


@kernel
def split_lines(model, data, keep_blank, out):  # type: ignore[no-untyped-def]
    """Writes the sentences of each line of `data` to `out`, one a line, stripped; the bytes written.

    With `keep_blank`, lines of one character give a blank line, and sentences that strip to nothing stay, as
    do_sentence_segmentation.py has it. `out` needs `2 * data.size + 2` bytes at most.
    """
    marks = np.empty(256, np.int64)
    spans = np.empty((257, 2), np.int64)
    word = np.empty(model[LONGEST_WORD] + 2, np.int32)
    written = 0
    begin = 0
    while begin < data.size:
        end, num_marks = find_marks(data, begin, marks)
        while num_marks > marks.size:
            marks = np.empty(4 * marks.size, np.int64)
            spans = np.empty((marks.size + 1, 2), np.int64)
            end, num_marks = find_marks(data, begin, marks)
        has_newline = end < data.size
        if keep_blank:
            length = end - begin
            if has_newline:
                single = length == 0
            else:
                single = length == code_at(data, begin)[1]
            if single:
                out[written] = _NEWLINE
                written += 1
        count = line_sentences(model, data, begin, end, marks, num_marks, word, spans)
        for number in range(count):
            start = stripped_start(model, data, spans[number, 0], spans[number, 1])
            stop = stripped_end(model, data, start, spans[number, 1])
            if start < stop or keep_blank:
                for at in range(start, stop):
                    out[written] = data[at]
                    written += 1
                out[written] = _NEWLINE
                written += 1
        begin = end + 1
    return written


def warm_up() -> None:
    """Compiles what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"One. Two.", np.uint8)
    model = np.zeros(ASCII + 256, np.int32)
    spans_of_line(model, text)
    split_lines(model, text, False, np.empty(20, np.uint8))
