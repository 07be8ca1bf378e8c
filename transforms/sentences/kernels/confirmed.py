"""Punkt's sentences, but for those that it ends at abbreviations: for a language whose Punkt parameters are good.

No end is added, and brackets and quotation marks mean nothing; transforms/sentences/kernels/boundaries.py is for other
languages.
"""

import numpy as np

from maskmill.characters.kernels.characters import ASCII
from maskmill.kernels import kernel, lean_kernel
from transforms.sentences.kernels import punkt
from transforms.sentences.kernels.full_stops import full_stop_ends
from transforms.sentences.kernels.words import ABBREVIATES, LONGEST_ABBREVIATION, word_bits

_FULL_STOP, _SPACE = ord("."), ord(" ")
_FIRST_SMALL, _LAST_SMALL = ord("a"), ord("z")


@lean_kernel
def _is_plain_word(model, data, begin, stop, scratch):
    """Whether a word of small letters that is no abbreviation is between a space and byte `stop`, as most often.

    The words of an abbreviation of two words are abbreviations in such a language, so those beside it need no look.
    """
    start = stop
    while start > begin and _FIRST_SMALL <= data[start - 1] <= _LAST_SMALL:
        start -= 1
    if start <= begin or start == stop or data[start - 1] != _SPACE:
        return False
    return stop - start > model[LONGEST_ABBREVIATION] or not word_bits(model, data, start, stop, scratch) & ABBREVIATES


@lean_kernel
def _ends(model, data, sentence, stop, start, end, scratch):
    """Whether a sentence, of which Punkt says so, ends with its last byte, which is at `stop`."""
    if data[stop] != _FULL_STOP or _is_plain_word(model, data, sentence, stop, scratch):
        return True
    return full_stop_ends(model, data, sentence, stop, start, end, True, scratch)


@lean_kernel
def _confirm(model, data, end, spans, scratch):
    """Joins the spans [n, 2] of a line's sentences where no sentence ends; how many are left."""
    count = 0
    for number in range(spans.shape[0]):
        start = spans[number, 0]
        if count > 0:
            sentence, stop = spans[count - 1, 0], spans[count - 1, 1] - 1
            if not _ends(model, data, sentence, stop, start, end, scratch):
                spans[count - 1, 1] = spans[number, 1]
                continue
        spans[count, 0] = start
        spans[count, 1] = spans[number, 1]
        count += 1
    return count


@kernel
def spans_of_line(model, data):
    """As punkt.spans_of_line."""
    spans = punkt.spans_of_line(model, data)
    return spans[: _confirm(model, data, data.size, spans, punkt.room_for(model, 1).scratch)]


@kernel
def split_lines(model, data, out):
    """As punkt.split_lines, without blank lines."""
    room = punkt.room_for(model, punkt.FEWEST_MARKS)
    written = 0
    begin = 0
    while begin < data.size:
        end, count = punkt.split_line(model, data, begin, room)
        if end < 0:
            room = punkt.room_for(model, 4 * room.marks.size)
            continue
        count = _confirm(model, data, end, room.spans[:count], room.scratch)
        written = punkt.write_sentences(model, data, room.spans[:count], False, out, written)
        begin = end + 1
    return written


def warm_up() -> None:
    """Compiles what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"One. Two.", np.uint8)
    model = np.zeros(ASCII + 256, np.int32)
    spans_of_line(model, text)
    split_lines(model, text, np.empty(20, np.uint8))
