"""The ends of sentences by the rules of a language, laid over Punkt's decisions.

A line is scanned once for events: marks that may end a sentence, brackets and quotation marks, and spaces where a
language ends sentences with them. Brackets and quotation marks are paired; then each mark is decided on. Punkt
(kernels/punkt.py) says which full stops end a sentence as far as its parameters tell; abbreviations, initials, ordinals
and lower-case letters overrule it, and the marks of other scripts need no parameters.

Layout:

- `classes` is uint16[65536]: what a character is here, by code point. Its low byte is the kind of the event that it
  makes, or 0: up to `SPACE` as named below; for brackets and quotation marks `OPENS | CLOSES | group`, in which a group
  are those that close each other. `JOINS` and `JOINS_QUOTE` are what it says of the text before it.
- `events` is int64 [n, 4], one row an event: `AT` its byte, `END` the byte after it, `KIND`, and `VALUE`: of a bracket
  the row that it pairs with or -1, of `.`, `?` and `!` its number among those marks.
- The model is Punkt's, with what kernels/words.py adds.
"""

from typing import NamedTuple

import numpy as np

from maskmill.characters.kernels.characters import (
    ALPHA,
    ASCII,
    DIGIT,
    LOWER,
    SPACE,
    UPPER,
    character,
    character_before,
    code_at,
    stripped_end,
)
from maskmill.kernels import inlined_kernel, kernel, lean_kernel
from maskmill.sentences.kernels import punkt
from maskmill.sentences.kernels.full_stops import full_stop_ends, is_item_number, lacks_space
from maskmill.sentences.kernels.items import is_next_item
from maskmill.sentences.kernels.spaces import space_ends
from maskmill.sentences.kernels.words import (
    ABBREVIATES,
    FIRM,
    FLAGS,
    NO_FULL_STOPS,
    NOUNS,
    PUNKT_LETTERS,
    STARTING,
    WORD_BOUNDS,
    abbreviation_bits,
    code_before,
    count_digits,
    is_space,
    skip_space,
    word_bits,
    word_end,
)

# Kinds of events. Those of brackets and quotation marks are larger.
MARK, ELLIPSIS, STOP, SPACED_STOP, FULL_WIDTH_POINT, APOSTROPHE, SPACE_EVENT, BULLET = 1, 2, 3, 4, 5, 6, 7, 8
GROUP = 0x1F
OPENS, CLOSES = 0x40, 0x80
SELF = 0x20  # the same mark may open and close; it opens only where white space is before it and none after
STRAIGHT = 0x1F  # the group of the straight quotation mark
FIRST_QUOTE = 0x08  # groups from here on are quotation marks, those below are brackets
_EVENT = 0xFF
# What a character says when it stands after a mark: it goes on with the sentence; it does so after a quotation.
JOINS, JOINS_QUOTE = 0x100, 0x200

AT, END, KIND, VALUE = 0, 1, 2, 3

# A bracket or a quotation holds no end of a sentence as long as it is no longer than this, in bytes.
_LONGEST_BRACKET, _LONGEST_QUOTE = 480, 200
_SHORTEST_CLAUSE = 20  # bytes in a bracket that may end its sentence
_DEEPEST = 32
_FURTHEST_WORD = 8  # characters between the end of a sentence and the first letter of the next

_FEWEST_EVENTS = 512
_ASCII_END = 0x80
_NEWLINE, _FULL_STOP, _HYPHEN, _COLON, _EXCLAMATION = ord("\n"), ord("."), ord("-"), ord(":"), ord("!")
_OPEN_ROUND, _CLOSE_ROUND, _OPEN_SQUARE = ord("("), ord(")"), ord("[")
_BLANK, _ZERO, _NINE = ord(" "), ord("0"), ord("9")
_FIRST_SMALL, _LAST_SMALL, _FIRST_CAPITAL, _LAST_CAPITAL = ord("a"), ord("z"), ord("A"), ord("Z")
_IS_ASCII_WORD = np.zeros(256, np.uint8)
for _first, _last in ((_ZERO, _NINE), (_FIRST_CAPITAL, _LAST_CAPITAL), (_FIRST_SMALL, _LAST_SMALL)):
    _IS_ASCII_WORD[_first : _last + 1] = 1
_LEAST_PLAIN_WORD = 2  # bytes
BULLETS = "•‣⁃▪◦"
_BULLETS = tuple(map(ord, BULLETS))
_BULLET_LEAD = 0xE2  # the first byte of all of them
_DANDA, _DOUBLE_DANDA, _DANDA_BYTES = 0x964, 0x965, 3
_ARABIC_FULL_STOP, _ARABIC_QUESTION = 0x6D4, 0x61F
_FIRST_GEORGIAN, _LAST_GEORGIAN = 0x10D0, 0x10FF
_FIRST_KANA, _LAST_KANA = 0x3040, 0x30FF
_WIDE_EXCLAMATION, _WIDE_QUESTION = 0xFF01, 0xFF1F


class _Run(NamedTuple):
    """Marks that stand together: bytes `start:end`, the row of the event after them.

    kind: `STOP` if one of them is, else the kind of the last. mark: the number of the last `.`, `?` or `!`, or -1.
    is_full_stop: they are one `.`. is_ellipsis: they are several full stops, or an ellipsis.
    """

    start: int
    end: int
    next_event: int
    kind: int
    mark: int
    is_full_stop: bool
    is_ellipsis: bool


class _Closed(NamedTuple):
    """The closers after marks: the byte and the event after them, where the outermost bracket and quotation open."""

    end: int
    next_event: int
    bracket: int
    quote: int


@lean_kernel
def _kind_of(classes, code):
    return np.int64(classes[code]) if code < classes.size else 0


@lean_kernel
def _is_east_asian(code):
    """Return whether a character is of a script that puts no spaces between words: ideographs and kana."""
    return (
        0x2E80 <= code <= 0x2FFF
        or 0x3005 <= code <= 0x3007
        or 0x3040 <= code <= 0x31FF
        or 0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF66 <= code <= 0xFF9D
        or 0x20000 <= code <= 0x3FFFF
    )


@lean_kernel
def _is_latin(code):
    """Return whether a character is a Latin letter, or a bracket that may close after one."""
    return ord("A") <= code <= ord("Z") or ord("a") <= code <= ord("z") or code == ord(")")


@kernel
def _scan(classes, data, begin, events, marks):
    """Write the events of the line at byte `begin`, and the places of its `.`, `?`, `!`: (its end, their numbers).

    Stops early, with a number of events larger than there is room for, when there are too many.
    """
    count = 0
    num_marks = 0
    at = begin
    while at < data.size:
        if data[at] == _NEWLINE:
            break
        code, size = code_at(data, at)
        kind = _kind_of(classes, code) & _EVENT
        if kind == 0:
            at += size
            continue
        if count >= events.shape[0]:
            return at, count + 1, num_marks
        events[count, AT] = at
        at += size
        events[count, END] = at
        events[count, KIND] = kind
        events[count, VALUE] = -1
        if kind == MARK:
            events[count, VALUE] = num_marks
            marks[num_marks] = at - 1
            num_marks += 1
        count += 1
    return at, count, num_marks


@lean_kernel
def _looks_like_opener(model, data, begin, end, event):
    """Return whether white space, a bracket or the line's start is before a mark, and something else after it."""
    at = event[AT]
    if at > begin:
        before = character_before(data, at, begin)
        properties, _size = character(model, data, before)
        if not properties & SPACE and not (data[before] < 0x80 and WORD_BOUNDS[data[before]]):
            return False
    return event[END] < end and not is_space(model, data, event[END], end)


@lean_kernel
def _pair(model, data, begin, end, events, stack):
    """Pair brackets and quotation marks: their `VALUE` becomes the row of the partner."""
    depth = 0
    for number in range(events.shape[0]):
        kind = events[number, KIND]
        if kind < OPENS:
            continue
        group = kind & GROUP
        may_open = kind & OPENS != 0
        is_opener = not kind & SELF or _looks_like_opener(model, data, begin, end, events[number])
        found = depth - 1 if kind & CLOSES else -1
        while found >= 0 and events[stack[found], KIND] & GROUP != group:
            # A mark that is either does not reach out of a bracket.
            found = -1 if may_open and events[stack[found], KIND] & GROUP < FIRST_QUOTE else found - 1
        if found >= 0:
            depth = found
            opener = stack[found]
            is_same = data[events[opener, END] - 1] == data[events[number, END] - 1]
            if not (is_same and may_open and (is_opener or not kind & SELF)):
                events[opener, VALUE] = number
                events[number, VALUE] = opener
                continue
        may_open = may_open and is_opener
        if may_open and depth < stack.size:
            stack[depth] = number
            depth += 1


@lean_kernel
def _run_of_marks(data, events, first):
    """Return the marks that stand together from the event `first` on."""
    number = first
    start, end = events[first, AT], events[first, AT]
    kind = 0
    mark = -1
    num_points = 0
    is_ellipsis = False
    while number < events.shape[0] and events[number, AT] == end and events[number, KIND] < APOSTROPHE:
        own = events[number, KIND]
        if kind != STOP:
            kind = own
        if own == MARK:
            mark = events[number, VALUE]
            if data[events[number, AT]] == _FULL_STOP:
                num_points += 1
            is_ellipsis = num_points > 1
        elif own == ELLIPSIS:
            is_ellipsis = True
        end = events[number, END]
        number += 1
    is_only_points = num_points == number - first
    is_full_stop = is_only_points and num_points == 1
    last_is_point = data[end - 1] == _FULL_STOP or kind == ELLIPSIS
    return _Run(start, end, number, kind, mark, is_full_stop, is_ellipsis and last_is_point)


@lean_kernel
def _closes_at(events, number, at):
    """Return whether an event stands at byte `at` and closes what one before it has opened."""
    return number < events.shape[0] and events[number, AT] == at and 0 <= events[number, VALUE] < number


@lean_kernel
def _closed_behind(model, data, end, events, run):
    """Return the brackets and quotation marks that close right after a run of marks."""
    at = run.end
    number = run.next_event
    bracket = -1
    quote = -1
    while number < events.shape[0]:
        kind = events[number, KIND]
        if kind < APOSTROPHE or kind in (SPACE_EVENT, BULLET):
            break
        partner = events[number, VALUE] if kind >= OPENS else -1
        is_partner = 0 <= partner < number
        if events[number, AT] != at:
            # French puts a space before the mark that closes.
            if not is_partner or kind & GROUP < FIRST_QUOTE or skip_space(model, data, at, end) != events[number, AT]:
                break
        elif not is_partner:
            behind = events[number, END]
            is_opener = kind & CLOSES == 0 and kind != APOSTROPHE
            is_last = behind >= end or is_space(model, data, behind, end)
            if is_opener or partner > number or not (is_last or _closes_at(events, number + 1, behind)):
                break
        if is_partner:
            if kind & GROUP < FIRST_QUOTE:
                bracket = events[partner, AT]
            else:
                quote = events[partner, AT]
        at = events[number, END]
        number += 1
    if bracket < 0 or quote >= 0:
        takes_round = number > run.next_event or not run.is_full_stop
        at, number = _behind_source(model, data, at, end, events, number, takes_round)
    return _Closed(at, number, bracket, quote)


@lean_kernel
def _behind_source(model, data, at, end, events, number, takes_round):
    """Return the byte and the event after the numbers of footnotes at byte `at` ("[1][2]"), or a source in round
    brackets.
    """
    while number < events.shape[0]:
        partner = events[number, VALUE]
        opener = events[number, AT]
        if events[number, KIND] < OPENS or partner <= number or opener != skip_space(model, data, at, end):
            break
        if data[opener] == _OPEN_SQUARE:
            if count_digits(model, data, events[number, END], events[partner, AT]) == 0:
                break
        elif not takes_round or data[opener] != _OPEN_ROUND or events[partner, AT] - opener > _LONGEST_BRACKET:
            break
        at = events[partner, END]
        number = partner + 1
    return at, number


@lean_kernel
def _first_of_next(model, data, at, end):
    """Return where the first letter or digit stands from byte `at` on, a few characters away at most, or -1."""
    for _ in range(_FURTHEST_WORD):
        if at >= end:
            return -1
        properties, size = character(model, data, at)
        if properties & (ALPHA | DIGIT):
            return at
        at += size
    return -1


@lean_kernel
def _is_in_name(model, data, begin, end, run, after, scratch):
    """Return whether a single `!` stands in the name of a firm: after a capitalised word, in front of "Inc." or the
    like.
    """
    if data[run.start] != _EXCLAMATION or run.end - run.start > 1 or after < 0:
        return False
    if not word_bits(model, data, after, word_end(model, data, after, end), scratch) & FIRM:
        return False
    at = run.start
    while at > begin and not is_space(model, data, character_before(data, at, begin), end):
        at = character_before(data, at, begin)
    return character(model, data, at)[0] & UPPER != 0


@lean_kernel
def _mark_ends(model, data, begin, end, sentence, run, after, is_break, scratch):
    """Return whether marks that white space follows end a sentence; `after` is where the next word starts, or -1."""
    following = np.int64(character(model, data, after)[0]) if after >= 0 else np.int64(0)
    # Georgian letters are lower-case letters to Unicode, but their capitals start no sentences.
    if following & LOWER and not _FIRST_GEORGIAN <= code_at(data, after)[0] <= _LAST_GEORGIAN:
        return False
    if model[FLAGS] & NO_FULL_STOPS and run.is_full_stop and not _is_latin(code_before(data, run.start, begin)):
        return False
    if run.is_full_stop:
        return full_stop_ends(model, data, sentence, run.start, after, end, is_break, scratch)
    if run.kind == SPACED_STOP:
        if data[run.start] == _COLON and after >= 0 and _is_latin(np.int64(code_at(data, after)[0])):
            return False  # a list in front of titles, not the full stop of Armenian
        return full_stop_ends(model, data, sentence, run.start, after, end, True, scratch)
    if run.is_ellipsis:
        if run.start <= sentence or is_space(model, data, character_before(data, run.start, begin), end):
            return False
        if model[FLAGS] & PUNKT_LETTERS:
            if not following & UPPER:
                return is_break
            return is_break or word_bits(model, data, after, word_end(model, data, after, end), scratch) & STARTING != 0
        return is_break or (following & UPPER != 0 and not model[FLAGS] & NOUNS)
    return not _is_in_name(model, data, begin, end, run, after, scratch)


@lean_kernel
def _joined(model, classes, data, begin, end, run, closed, scratch):
    """Return whether text without white space after marks goes on with the sentence."""
    code = np.int64(code_at(data, closed.end)[0])
    kind = _kind_of(classes, code)
    if kind & JOINS or 0 < kind & _EVENT < APOSTROPHE:
        return True
    if kind & JOINS_QUOTE:
        # Japanese titles end with marks, too, without quotation marks around them.
        last = code_before(data, run.end, begin)
        is_exclaimed = last in (ord("!"), ord("?"), _WIDE_EXCLAMATION, _WIDE_QUESTION)
        if closed.quote >= 0 or (is_exclaimed and _FIRST_KANA <= code <= _LAST_KANA):
            return True
    if run.kind == STOP:
        return False
    if run.kind == SPACED_STOP:
        is_arabic = code_before(data, run.end, begin) in (_ARABIC_FULL_STOP, _ARABIC_QUESTION)
        return not is_arabic or character(model, data, closed.end)[0] & ALPHA == 0
    if run.is_ellipsis:
        return True
    before = code_before(data, run.start, begin)
    if _is_east_asian(before) and _is_east_asian(code):
        return False
    return not (run.is_full_stop and lacks_space(model, data, begin, run.start, before, code, scratch))


@lean_kernel
def _is_before_verse(model, data, end, run, at):
    """Return whether the number of a verse is after double dandas, from byte `at` on, and others after it (॥ १ ॥)."""
    last = code_at(data, character_before(data, run.end, run.start))[0]
    if last != _DOUBLE_DANDA and not (last == _DANDA and run.end - run.start > _DANDA_BYTES):
        return False
    start = at
    while at < end and (character(model, data, at)[0] & DIGIT or data[at] == _HYPHEN):
        at += character(model, data, at)[1]
    behind = skip_space(model, data, at, end)
    return at > start and behind < end and code_at(data, behind)[0] in (_DANDA, _DOUBLE_DANDA)


@lean_kernel
def _ends_sentence(model, classes, data, begin, end, sentence, run, closed, is_break, scratch):
    """Return whether a run of marks, with what closes after it, ends the sentence that starts at byte `sentence`."""
    at = skip_space(model, data, closed.end, end)
    if closed.bracket > sentence and (closed.quote < 0 or closed.quote > closed.bracket):
        # It ends a bracket inside of the sentence, or stands in front of the bracket that it belongs after.
        is_long = run.start - closed.bracket >= _SHORTEST_CLAUSE and at > closed.end
        if not (is_long and is_break and run.kind == MARK and at < end and character(model, data, at)[0] & UPPER):
            return False
    has_space = at > closed.end
    if not has_space and _joined(model, classes, data, begin, end, run, closed, scratch):
        return False
    if has_space:
        kind = _kind_of(classes, code_at(data, at)[0])
        if kind & JOINS or (kind & CLOSES and not kind & OPENS):
            return False
    if run.kind == STOP:
        if model[FLAGS] & PUNKT_LETTERS and has_space and at < end and character(model, data, at)[0] & LOWER:
            return False  # a foreign sentence inside of an English one
        return not is_item_number(model, data, sentence, run.start) and not _is_before_verse(model, data, end, run, at)
    if not has_space and run.kind == MARK:
        return True  # between ideographs
    after = _first_of_next(model, data, at, end)
    return _mark_ends(model, data, begin, end, sentence, run, after, is_break, scratch)


@lean_kernel
def _has_only_marks(model, data, at, end):
    """Return whether bytes `at:end` are marks, quotation marks and white space of ASCII, or dandas and Arabic full
    stops.
    """
    while at < end:
        code, size = code_at(data, at)
        is_ascii_mark = code < _ASCII_END and not character(model, data, at)[0] & (ALPHA | DIGIT)
        if not (is_ascii_mark or code in (_DANDA, _DOUBLE_DANDA, _ARABIC_FULL_STOP)):
            return False
        at += size
    return True


@inlined_kernel
def _ends_plainly(model, data, end, sentence, events, number, scratch):
    """Return whether a mark, with which Punkt ends a sentence, does so as most do: between a plain word and a capital.

    `_ends_sentence` would say the same, at several times the cost. In a language with PUNKT_LETTERS the first of the
    words of an abbreviation is one by itself, or the second is a single letter.
    """
    stop = events[number, AT]
    if stop + 3 >= end or data[stop] == _EXCLAMATION or data[stop + 1] != _BLANK or not model[FLAGS] & PUNKT_LETTERS:
        return False
    if not (_FIRST_CAPITAL <= data[stop + 2] <= _LAST_CAPITAL and _FIRST_SMALL <= data[stop + 3] <= _LAST_SMALL):
        return False
    start = stop
    while start > sentence and _FIRST_SMALL <= data[start - 1] <= _LAST_SMALL:
        start -= 1
    if start > sentence and start < stop and _FIRST_CAPITAL <= data[start - 1] <= _LAST_CAPITAL:
        start -= 1
    if start <= sentence or stop - start < _LEAST_PLAIN_WORD or data[start - 1] != _BLANK:
        return False
    return data[stop] != _FULL_STOP or not abbreviation_bits(model, data, start, stop, scratch) & ABBREVIATES


@lean_kernel
def _behind_bullet(model, data, at, end):
    """Return where the text of a sentence starts that may start with the bullet of an item, at byte `at`."""
    if data[at] == _BULLET_LEAD:
        code, size = code_at(data, at)
        if code in _BULLETS:
            return skip_space(model, data, at + size, end)
    return at


@lean_kernel
def _item_start(model, data, end, sentence, event):
    """Return where the item of a list starts whose number or bullet an event ends or is, or -1."""
    at = event[AT]
    if event[KIND] == BULLET:
        is_next = at > sentence and code_at(data, at)[0] == code_at(data, sentence)[0]
        return at if is_next and is_space(model, data, character_before(data, at, sentence), end) else -1
    is_short = at - 2 >= sentence and (_ZERO <= data[at - 1] <= _NINE or data[at - 2] == _BLANK)
    if is_short and (data[at] == _FULL_STOP or (data[at] == _CLOSE_ROUND and event[VALUE] < 0)):
        return is_next_item(model, data, _behind_bullet(model, data, sentence, end), sentence, at, end)
    return -1


@lean_kernel
def _line_sentences(model, classes, data, begin, end, events, next_starts, spans, scratch):
    """Write the spans of the sentences of the line `begin:end` into `spans` [n, 2]; return their number.

    next_starts: what punkt.line_breaks says of each `.`, `?` and `!`. `spans` has room for one more than there
    are events.
    """
    count = 0
    sentence = skip_space(model, data, begin, end)
    last = stripped_end(model, data, begin, end)
    whole_until = begin  # up to this byte there is a bracket or a quotation that stays whole
    number = 0
    while number < events.shape[0]:
        kind = events[number, KIND]
        if kind == MARK:
            behind = events[number, END]
            if behind >= last:
                break
            if _IS_ASCII_WORD[data[behind]] and events[number, AT] > sentence and data[behind - 2] < _ASCII_END:
                number += 1  # inside of a number, an address or an abbreviation
                continue
        if kind == MARK and events[number, AT] > whole_until:
            is_break = next_starts[events[number, VALUE]] >= 0
            if is_break and _ends_plainly(model, data, last, sentence, events, number, scratch):
                spans[count, 0] = sentence
                spans[count, 1] = events[number, END]
                count += 1
                sentence = events[number, END] + 1
                number += 1
                continue
        if kind == APOSTROPHE:
            number += 1
            continue
        item = _item_start(model, data, last, sentence, events[number])
        if item >= whole_until and item > sentence:
            spans[count, 0] = sentence
            spans[count, 1] = stripped_end(model, data, sentence, item)
            count += 1
            sentence = item
            number += 1
            continue
        if kind >= OPENS:
            partner = events[number, VALUE]
            if partner > number:
                is_bracket = kind & GROUP < FIRST_QUOTE
                holds_line = is_bracket and events[number, AT] == sentence and events[partner, END] + 1 >= last
                longest = _LONGEST_BRACKET if is_bracket else _LONGEST_QUOTE
                if not holds_line and events[partner, AT] - events[number, AT] <= longest:
                    whole_until = max(whole_until, events[partner, AT])
            number += 1
            continue
        at = events[number, AT]
        if kind == BULLET:
            number += 1
            continue
        if kind == SPACE_EVENT:
            number += 1
            if at < whole_until or at < sentence or not space_ends(model, data, begin, last, sentence, at, scratch):
                continue
            stop_end = at
        else:
            run = _run_of_marks(data, events, number)
            closed = _closed_behind(model, data, last, events, run)
            number = run.next_event
            if closed.end >= last:
                break
            is_break = run.mark >= 0 and next_starts[run.mark] >= 0
            if closed.end <= whole_until or not _ends_sentence(
                model,
                classes,
                data,
                begin,
                last,
                _behind_bullet(model, data, sentence, last),
                run,
                closed,
                is_break,
                scratch,
            ):
                continue
            number = closed.next_event
            stop_end = closed.end
            if count > 0 and run.start == sentence:  # marks that stand alone belong to what is before them
                spans[count - 1, 1] = stop_end
                sentence = skip_space(model, data, stop_end, last)
                continue
        spans[count, 0] = sentence
        spans[count, 1] = stop_end
        count += 1
        sentence = skip_space(model, data, stop_end, last)
    if sentence < last:
        if count > 0 and _has_only_marks(model, data, sentence, last):
            spans[count - 1, 1] = last
            return count
        spans[count, 0] = sentence
        spans[count, 1] = last
        count += 1
    return count


class _Room(NamedTuple):
    """Room for the work on a line, beside Punkt's; it grows with the lines."""

    events: np.ndarray
    stack: np.ndarray
    punkt: punkt.Room


@kernel
def _room(model, size):
    return _Room(np.empty((size, 4), np.int64), np.empty(_DEEPEST, np.int64), punkt.room_for(model, size))


@kernel
def _split_line(model, classes, data, begin, room):
    """Split the line at byte `begin`: (its end, its sentences, the room, which has their spans)."""
    end, count, num_marks = _scan(classes, data, begin, room.events, room.punkt.marks)
    while count > room.events.shape[0]:
        room = _room(model, 4 * room.events.shape[0])
        end, count, num_marks = _scan(classes, data, begin, room.events, room.punkt.marks)
    events = room.events[:count]
    _pair(model, data, begin, end, events, room.stack)
    marks, next_starts, spans, scratch = room.punkt
    punkt.line_breaks(model, data, begin, end, marks[:num_marks], next_starts, scratch)
    number = _line_sentences(model, classes, data, begin, end, events, next_starts, spans, scratch)
    return end, number, room


@kernel
def spans_of_line(model, classes, data):
    """Return the spans of the sentences of a text without newline (but for the last byte), int64 [n, 2]."""
    _end, number, room = _split_line(model, classes, data, 0, _room(model, _FEWEST_EVENTS))
    return room.punkt.spans[:number].copy()


@kernel
def split_lines(model, classes, data, out):
    """Write the sentences of each line of `data` to `out`, one a line, stripped; the bytes written.

    `out` needs `2 * data.size + 2` bytes at most.
    """
    room = _room(model, _FEWEST_EVENTS)
    written = 0
    begin = 0
    while begin < data.size:
        end, number, room = _split_line(model, classes, data, begin, room)
        written = punkt.write_sentences(model, data, room.punkt.spans[:number], False, out, written)
        begin = end + 1
    return written


def warm_up() -> None:
    """Compile what this module's callers use."""
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"One. Two.", np.uint8)
    model = np.zeros(ASCII + 256, np.int32)
    classes = np.zeros(1 << 16, np.uint16)
    spans_of_line(model, classes, text)
    split_lines(model, classes, text, np.empty(20, np.uint8))
