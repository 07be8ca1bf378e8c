"""Punkt's decisions on UTF-8 bytes: where NLTK's sent_tokenize ends a sentence.

Implements nltk/tokenize/punkt.py (PunktSentenceTokenizer.span_tokenize) of two versions that differ, see `Model`.
The steps are NLTK's: candidates (a full stop, question or exclamation mark with the right neighbour), the few words
around each, their tokens, the two passes of heuristics over those tokens, and the realignment of closing quotes.

Layout:

- A character's answers are one uint16 of `properties[page_of[code >> 8], code & 255]` (bits `SPACE` … `CLOSER`
  below); its lower-case letter is `code + lower_delta[page, code & 255]`.
- Words of the parameters live in an open hash table: `slots[hash & mask]` is a word number or -1; word `w` is
  `letters[starts[w]:starts[w + 1]]`, code points in lower case, and `bits[w]` says what is known of it:
  the orthographic contexts as NLTK numbers them (bits 1 to 6), `ABBREVIATION`, `STARTER`, `COLLOCATES`.
- `collocations` are sorted pairs of word numbers, `first << 32 | second`.

A token is described by (start, end, bits): its bytes in the text and the `T_…` bits of the first pass.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transforms.kernels import kernel

# What a character is.
SPACE = np.uint16(1)  # \s of the regular expressions
STRIPPED = np.uint16(2)  # str.strip takes it off
NON_WORD = np.uint16(4)  # ends a word (_re_non_word_chars)
CLOSER = np.uint16(8)  # may be moved back to the sentence before it (re_boundary_realignment)
NO_WORD_START = np.uint16(16)  # does not start a word (outside _re_word_start)
ALPHA = np.uint16(32)  # [^\W\d]
DIGIT = np.uint16(64)
UPPER = np.uint16(128)
LOWER = np.uint16(256)
CASED = np.uint16(512)
IGNORABLE = np.uint16(1024)

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

_NO_WORD = -1
_HASH_START = np.uint64(14695981039346656037)  # FNV-1a, over code points
_HASH_FACTOR = np.uint64(1099511628211)

_FULL_STOP, _QUESTION, _EXCLAMATION = ord("."), ord("?"), ord("!")
_COMMA, _HYPHEN, _NEWLINE = ord(","), ord("-"), ord("\n")
_CAPITAL_SIGMA, _FINAL_SIGMA, _SMALL_SIGMA, _DOTTED_I, _DOT_ABOVE = 0x3A3, 0x3C2, 0x3C3, 0x130, 0x307


class Model(NamedTuple):
    """Parameters and character tables, as the module's head lays them out.

    `ascii_words` tells the two versions of NLTK apart in how they find the word before a candidate: from 3.6.6 on
    (True) it starts after the last ASCII white space, before (False) after any white space.
    """

    page_of: NDArray[np.uint16]
    properties: NDArray[np.uint16]
    lower_delta: NDArray[np.int32]
    slots: NDArray[np.int32]
    starts: NDArray[np.int32]
    letters: NDArray[np.int32]
    bits: NDArray[np.int32]
    collocations: NDArray[np.int64]
    number_word: int
    longest_word: int
    ascii_words: bool


@kernel
def code_at(data, at):  # type: ignore[no-untyped-def]
    """The code point that starts at byte `at`, and its length in bytes."""
    lead = data[at]
    if lead < 0x80:
        return np.int64(lead), 1
    if lead < 0xE0:
        return np.int64(lead & 0x1F) << 6 | np.int64(data[at + 1] & 0x3F), 2
    if lead < 0xF0:
        return (
            np.int64(lead & 0x0F) << 12 | np.int64(data[at + 1] & 0x3F) << 6 | np.int64(data[at + 2] & 0x3F),
            3,
        )
    return (
        np.int64(lead & 0x07) << 18
        | np.int64(data[at + 1] & 0x3F) << 12
        | np.int64(data[at + 2] & 0x3F) << 6
        | np.int64(data[at + 3] & 0x3F),
        4,
    )


@kernel
def _properties_of(model, code):  # type: ignore[no-untyped-def]
    return model.properties[model.page_of[code >> 8], code & 255]


@kernel
def _properties_at(model, data, at):  # type: ignore[no-untyped-def]
    code, size = code_at(data, at)
    return _properties_of(model, code), size


@kernel
def _character_before(data, at, begin):  # type: ignore[no-untyped-def]
    """Where the character starts that ends at byte `at`."""
    at -= 1
    while at > begin and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@kernel
def _is_end_mark(byte):  # type: ignore[no-untyped-def]
    return byte in (_FULL_STOP, _QUESTION, _EXCLAMATION)


@kernel
def _multi_character_mark(model, data, at, end):  # type: ignore[no-untyped-def]
    """Whether `--`, `..` or `. . .` starts at byte `at` (_re_multi_char_punct)."""
    byte = data[at]
    if byte == _HYPHEN:
        return at + 1 < end and data[at + 1] == _HYPHEN
    if byte != _FULL_STOP:
        return False
    if at + 1 < end and data[at + 1] == _FULL_STOP:
        return True
    for _ in range(2):
        if at + 1 >= end or data[at] != _FULL_STOP or data[at + 1] == _NEWLINE:
            return False
        held, size = _properties_at(model, data, at + 1)
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
    last = at  # full stops, each but the last followed by one white space
    while True:
        held, size = _properties_at(model, data, at + 1)
        at += 1 + size
        if at >= end or data[at] != _FULL_STOP:
            return last + 1
        last = at
        if at + 1 >= end:
            return last + 1
        held, size = _properties_at(model, data, at + 1)
        if not held & SPACE:
            return last + 1


@kernel
def _ends_word(model, data, at, end):  # type: ignore[no-untyped-def]
    """Whether a word that reaches byte `at` ends there, a comma not looked at."""
    if at >= end:
        return True
    byte = data[at]
    if byte in (_HYPHEN, _FULL_STOP):
        return _multi_character_mark(model, data, at, end)
    held, _size = _properties_at(model, data, at)
    return held & (SPACE | NON_WORD) != 0


@kernel
def _token_end(model, data, at, end):  # type: ignore[no-untyped-def]
    """Where the token that starts at byte `at` (no white space) ends (_word_tokenize_fmt)."""
    if _multi_character_mark(model, data, at, end):
        return _multi_character_end(model, data, at, end)
    held, size = _properties_at(model, data, at)
    at += size
    if held & NO_WORD_START:
        return at
    while not _ends_word(model, data, at, end):
        if data[at] == _COMMA and _ends_word(model, data, at + 1, end):
            return at
        if data[at] < 0x80:
            at += 1
        else:
            at += code_at(data, at)[1]
    return at


@kernel
def _sigma_is_final(model, data, start, end, at):  # type: ignore[no-untyped-def]
    """Whether the capital sigma at byte `at` of a token gets its final form (str.lower)."""
    found = False
    before = at
    while before > start and not found:
        before = _character_before(data, before, start)
        held, size = _properties_at(model, data, before)
        if not held & IGNORABLE:
            found = True
            if not held & CASED:
                return False
    if not found:
        return False
    after = at + 2
    while after < end:
        held, size = _properties_at(model, data, after)
        if not held & IGNORABLE:
            return held & CASED == 0
        after += size
    return True


@kernel
def _lower(model, data, start, end, word):  # type: ignore[no-untyped-def]
    """Writes the lower-case code points of a token into `word`; their number, or one more than it holds."""
    count = 0
    at = start
    while at < end:
        if count >= word.size - 1:  # longer than every word of the parameters
            return word.size
        code, size = code_at(data, at)
        if code == _CAPITAL_SIGMA:
            code = _FINAL_SIGMA if _sigma_is_final(model, data, start, end, at) else _SMALL_SIGMA
        elif code == _DOTTED_I:
            word[count] = ord("i")
            count += 1
            code = _DOT_ABOVE
        else:
            code += model.lower_delta[model.page_of[code >> 8], code & 255]
        word[count] = code
        count += 1
        at += size
    return count


@kernel
def _look_up(model, word, first, last):  # type: ignore[no-untyped-def]
    """The number of the word `word[first:last]`, or -1."""
    if last > word.size - 1 or last <= first:
        return _NO_WORD
    hashed = _HASH_START
    for i in range(first, last):
        hashed = (hashed ^ np.uint64(word[i])) * _HASH_FACTOR
    mask = np.uint64(model.slots.size - 1)
    slot = (hashed ^ hashed >> np.uint64(32)) & mask
    while True:
        number = model.slots[slot]
        if number < 0:
            return _NO_WORD
        start = model.starts[number]
        if model.starts[number + 1] - start == last - first:
            same = True
            for i in range(last - first):
                if model.letters[start + i] != word[first + i]:
                    same = False
                    break
            if same:
                return np.int64(number)
        slot = (slot + np.uint64(1)) & mask


@kernel
def _is_number(model, data, start, end):  # type: ignore[no-untyped-def]
    r"""Whether a token is a number: `^-?[\.,]?\d[\d,\.-]*\.?$`."""
    at = start
    if data[at] == _HYPHEN:
        at += 1
    if at < end and (data[at] == _FULL_STOP or data[at] == _COMMA):
        at += 1
    if at >= end:
        return False
    held, size = _properties_at(model, data, at)
    if not held & DIGIT:
        return False
    at += size
    while at < end:
        byte = data[at]
        if byte in (_COMMA, _FULL_STOP, _HYPHEN):
            at += 1
            continue
        held, size = _properties_at(model, data, at)
        if not held & DIGIT:
            return False
        at += size
    return True


@kernel
def _first_pass(model, data, start, end, word):  # type: ignore[no-untyped-def]
    """The `_T_…` bits of a token by itself (_first_pass_annotation)."""
    last = data[end - 1]
    if end - start == 1 and _is_end_mark(last):
        return _T_BREAK | _T_PERIOD if last == _FULL_STOP else _T_BREAK
    if last != _FULL_STOP:
        return 0
    if data[end - 2] == _FULL_STOP:
        for at in range(start, end):
            if data[at] != _FULL_STOP:
                return _T_PERIOD
        return _T_PERIOD | _T_ELLIPSIS
    count = _lower(model, data, start, end - 1, word)
    number = _look_up(model, word, 0, count)
    if number >= 0 and model.bits[number] & ABBREVIATION:
        return _T_PERIOD | _T_ABBREVIATION
    hyphen = end - 2
    while hyphen >= start and data[hyphen] != _HYPHEN:
        hyphen -= 1
    if hyphen >= start:
        count = _lower(model, data, hyphen + 1, end - 1, word)
        number = _look_up(model, word, 0, count)
        if number >= 0 and model.bits[number] & ABBREVIATION:
            return _T_PERIOD | _T_ABBREVIATION
    return _T_PERIOD | _T_BREAK


@kernel
def _type_of(model, data, start, end, drop_period, word):  # type: ignore[no-untyped-def]
    """The word number of a token's type, without its last full stop where asked; -1 for an unknown one."""
    if _is_number(model, data, start, end):
        return model.number_word
    count = _lower(model, data, start, end, word)
    if drop_period and count > 1 and data[end - 1] == _FULL_STOP:
        if count > word.size - 1:
            count = _lower(model, data, start, end - 1, word)
        else:
            count -= 1
    return _look_up(model, word, 0, count)


_FALSE, _TRUE, _UNKNOWN = 0, 1, 2


@kernel
def _starts_sentence(model, data, start, end, upper, lower, bits):  # type: ignore[no-untyped-def]
    """Whether a token with these `bits` starts a sentence (_ortho_heuristic)."""
    if end - start == 1:
        byte = data[start]
        if _is_end_mark(byte) or byte == ord(";") or byte == ord(":") or byte == _COMMA:
            return _FALSE
    if upper and bits & ORTHO_LC and not bits & ORTHO_MID_UC:
        return _TRUE
    if lower and (bits & ORTHO_UC or not bits & ORTHO_BEG_LC):
        return _FALSE
    return _UNKNOWN


@kernel
def _second_pass(model, data, start, end, found, next_start, next_end, next_found, word):  # type: ignore[no-untyped-def]
    """Whether a sentence ends with the token, in view of the token after it (_second_pass_annotation)."""
    if not found & _T_PERIOD:
        return found & _T_BREAK != 0
    kind = _type_of(model, data, start, end, True, word)
    next_kind = _type_of(model, data, next_start, next_end, next_found & _T_BREAK != 0, word)
    known = model.bits[kind] if kind >= 0 else 0
    next_known = model.bits[next_kind] if next_kind >= 0 else 0
    if known & COLLOCATES and next_kind >= 0:
        pair = np.int64(kind) << 32 | np.int64(next_kind)
        at = np.searchsorted(model.collocations, pair)
        if at < model.collocations.size and model.collocations[at] == pair:
            return False
    held, size = _properties_at(model, data, next_start)
    upper = held & UPPER != 0
    lower = held & LOWER != 0
    held, size = _properties_at(model, data, start)
    initial = held & ALPHA != 0 and end - start == size + 1
    if found & (_T_ABBREVIATION | _T_ELLIPSIS) and not initial:
        if _starts_sentence(model, data, next_start, next_end, upper, lower, next_known) == _TRUE:
            return True
        if upper and next_known & STARTER:
            return True
    if initial or kind == model.number_word:
        starts = _starts_sentence(model, data, next_start, next_end, upper, lower, next_known)
        if starts == _FALSE:
            return False
        if starts == _UNKNOWN and initial and upper and not next_known & ORTHO_LC:
            return False
    return found & _T_BREAK != 0


@kernel
def _contains_break(model, data, begin, end, word):  # type: ignore[no-untyped-def]
    """Whether a sentence ends within bytes `begin:end`, before their last token (text_contains_sentbreak)."""
    start = token_end = begin
    found = 0
    at = begin
    while at < end:
        held, size = _properties_at(model, data, at)
        if held & SPACE:
            at += size
            continue
        next_end = _token_end(model, data, at, end)
        next_found = _first_pass(model, data, at, next_end, word)
        if found and _second_pass(model, data, start, token_end, found, at, next_end, next_found, word):
            return True
        start, token_end, found = at, next_end, next_found
        at = next_end
    return False


@kernel
def _stripped_end(model, data, begin, end):  # type: ignore[no-untyped-def]
    """Where bytes `begin:end` end without their trailing white space (str.rstrip)."""
    while end > begin:
        at = _character_before(data, end, begin)
        if not _properties_at(model, data, at)[0] & STRIPPED:
            break
        end = at
    return end


@kernel
def _stripped_start(model, data, begin, end):  # type: ignore[no-untyped-def]
    """Where bytes `begin:end` start without their leading white space (str.lstrip)."""
    while begin < end:
        held, size = _properties_at(model, data, begin)
        if not held & STRIPPED:
            break
        begin += size
    return begin


@kernel
def _realigned(model, data, begin, end):  # type: ignore[no-untyped-def]
    """How many bytes of `begin:end` belong to the sentence before (re_boundary_realignment), 0 if none.

    Closing marks, up to white space (which is counted), to `--` or to the end.
    """
    at = begin
    while at < end:
        held, size = _properties_at(model, data, at)
        if not held & CLOSER:
            return 0
        at += size
        if at >= end:
            return at - begin
        held, size = _properties_at(model, data, at)
        if held & SPACE:
            while at < end:
                held, size = _properties_at(model, data, at)
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
    held, size = _properties_at(model, data, at)
    if held & NON_WORD:
        return at + size, at
    if not held & SPACE:
        return -1, -1
    while held & SPACE:
        at += size
        if at >= end:
            return -1, -1
        held, size = _properties_at(model, data, at)
    start = at
    while not held & SPACE:
        at += size
        if at >= end:
            break
        held, size = _properties_at(model, data, at)
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
        if not model.ascii_words and (byte >= 0xC0 or 0x1C <= byte <= 0x1F):
            held, size = _properties_at(model, data, at)
            if held & SPACE:
                return at + size
    return -1


@kernel
def line_sentences(model, data, begin, end, marks, num_marks, word, spans):  # type: ignore[no-untyped-def]
    """Writes the spans of the sentences of one line into `spans` [n, 2]; their number.

    `data[begin:end]` is the line; `marks[:num_marks]` are the places of its bytes `.`, `?` and `!`.
    `spans` has room for `num_marks + 1`; `word` is scratch of `longest_word + 2` code points.
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
                if new_start < 0 or (model.ascii_words and new_start == begin + 1):
                    new_start = begin  # NLTK takes white space at place 0 for none
            else:
                new_start = _space_between(model, data, mark, at)
                if new_start < 0:
                    new_start = word_start
                    evaluate = model.ascii_words and word_start == mark
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
                slice_end = mark + np.int64(1)
                last_break = next_start
            else:
                if not done:
                    continue
                slice_start = last_break
                slice_end = _stripped_end(model, data, begin, end)
            if held_end >= 0:
                start = held_start + realign
                # An empty slice (its end may even lie before its start) has nothing to give back.
                moved = _realigned(model, data, slice_start, slice_end)
                if moved > 0:
                    spans[count, 0] = start
                    spans[count, 1] = _stripped_end(model, data, slice_start, slice_start + moved)
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
        byte = data[at]
        # The three marks and the newline are below "@"; most letters are above it.
        if byte < 0x40:
            if byte == _NEWLINE:
                break
            if _is_end_mark(byte):
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
    word = np.empty(model.longest_word + 2, np.int32)
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
    word = np.empty(model.longest_word + 2, np.int32)
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
            start = _stripped_start(model, data, spans[number, 0], spans[number, 1])
            stop = _stripped_end(model, data, start, spans[number, 1])
            if start < stop or keep_blank:
                for at in range(start, stop):
                    out[written] = data[at]
                    written += 1
                out[written] = _NEWLINE
                written += 1
        begin = end + 1
    return written
