"""Calls of templates that no rule knows: which of them stand in a sentence, and which argument the sentence needs.

Most unknown templates are not text: infoboxes, banners, marks of footnotes, flags. A call keeps its argument
if all of this holds:

- It stands in a line of prose or in an item of a list, neither first nor last, and no link follows it: those are
  banners and flags.
- It is not the mark of a footnote. Such a mark follows a word, a closing quote or the end of a sentence; text follows a
  space, an opening bracket or quote or a dash, or goes on in the middle of a word. In scripts that set no spaces, text
  has letters on both sides.
- It has one argument without a name, and others only under names that no text depends on (DOMAIN_UNREAD).
- The template's name is not that of a database, whose argument is a key (`UN_Population`, `Data/France`).
- That argument reads as text: it is not a sentence of its own, a file, an address, a path or a code. Digits alone are
  mostly the key of what the wiki shows, if they are no year; a number is not text either if it is small, or if the name
  says that the template shows another one (`Roman`, `years ago`).

A quotation is text wherever it stands, but as the mark of a footnote: its argument holds several sentences, and is the
first, or has a name that such text has (DOMAIN_QUOTED). Its author and its source do not show.
"""

import string

import numpy as np

from maskmill.characters.kernels.characters import character_before, code_at
from maskmill.extraction.kernels import codes
from maskmill.extraction.kernels.lines import is_list_mark
from maskmill.extraction.kernels.prose import ends_as_sentence, has_several_sentences
from maskmill.extraction.kernels.tables import find
from maskmill.extraction.kernels.text import (
    BLANKS,
    NEWLINES,
    SPACES,
    byte_set,
    find_any,
    is_alphanumeric,
    is_blank,
    is_capital,
    is_digit,
    is_letter,
    read_integer,
    skip,
    skip_any,
    skip_back,
    trim,
)
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

LONGEST_CALL = 2000  # bytes of a call that can keep its argument
SHORTEST_QUOTATION = 40  # bytes
MOST_UNNAMED = 3  # arguments of a quotation: its text, author and source
LONGEST_ENTITY = 8  # bytes of `&nbsp;` and the like
LONGEST_ELISION = 8  # bytes of `l'`, `all'`, `lorsqu'`
LONGEST_TAG = 200  # bytes of `<span style="…">`
FIRST_YEAR, LAST_YEAR = 1800, 2099  # of the seasons and elections that templates link to
LONGEST_CODE = 3  # capitals of a country's code
LANGUAGE_CODE = 2  # small letters of a language's code
FEWEST_DIGITS = 3  # of a number that is text: a smaller one is mostly that of a note
MOST_DIGITS = 9  # a longer one is that of a book or of a record
ARGUMENT_STARTS = byte_set(b"|=")
SLASHES = byte_set(b"/")
FIRST_OF_SPAN = ord("s")  # also of `<small>` and `<s>`
BESIDE_TAGS = byte_set(b" '")
BARS = byte_set(b"|")
NAME_ENDS = byte_set(b"=|{[}")
NOT_IN_NAMES = byte_set(b":#\n")
ENDS_OF_NAMES = byte_set(b"=|[{\n")
PIPES = byte_set(b"|")
IN_PATHS = byte_set(b"/_")
FILE_EXTENSION = (3, 4)  # letters and digits after the last period of a file's name

# What stands beside a call.
SIDE_SPACE = 0
SIDE_OPENER = 1  # an opening bracket or quote, a dash
SIDE_CLOSER = 2  # other punctuation
SIDE_STOP = 3  # the end of a sentence
SIDE_LETTER = 4
SIDE_SPACELESS = 5  # a letter of a script that sets no spaces
SIDE_COMMA = 6  # a comma of such a script
SIDE_LINE = 7  # the end of the line, or of the page
SIDE_LINK = 8

# What a call says.
ARGUMENTS_NONE = 0
ARGUMENTS_NOTES = 1  # only arguments that no text depends on
ARGUMENTS_TEXT = 2

# Where a call stands.
PLACE_SENTENCE = 0
PLACE_BEHIND_STOP = 1  # after a period: in a sentence if that is one of an abbreviation
PLACE_ELSEWHERE = 2

OPENERS = tuple(map(ord, "«¡¿·“„‘‚‹–—―‐‑〈《「『【〔〜〝（［～・"))
CLOSERS = tuple(map(ord, "»’”›…〉》」』】〕〟）］：；،؛՝"))
STOPS = tuple(map(ord, "։۔؟。！？।॥።"))
WIDE_SPACES = tuple(map(ord, "\u00a0\u2002\u2003\u2009\u200a\u202f\u3000"))
SPACELESS_COMMAS = tuple(map(ord, "、，"))
SPACELESS_CLOSERS = tuple(map(ord, "」』）”’"))
# First and last code points of scripts that set no spaces: Thai to Tibetan, Burmese, Khmer, kana to the ideographs.
SPACELESS = tuple(
    (ord(first), ord(last)) for first, last in ("\u0e00\u0fff", "\u1000\u109f", "\u1780\u17ff", "々〇", "ぁ\u9fff")
)
FOREIGN_ZEROS = tuple(map(ord, "٠۰०০੦૦୦௦౦೦൦๐໐၀០０"))
ELISION_MARK = ord("’")
SIDES = np.full(ascii.NOT_ASCII, SIDE_CLOSER)  # SIDE_* of the characters of ASCII
for _side, _characters in (
    (SIDE_SPACE, " \t"),
    (SIDE_LINE, "\n\0"),
    (SIDE_LETTER, string.ascii_letters + string.digits),
    (SIDE_OPENER, "([/-"),
    (SIDE_STOP, ".!?"),
):
    SIDES[list(_characters.encode())] = _side


@lean_kernel
def side_of(character):
    """Return SIDE_* of a code point."""
    if character < ascii.NOT_ASCII:
        return SIDES[character]
    if character in WIDE_SPACES:
        return SIDE_SPACE
    if character in OPENERS:
        return SIDE_OPENER
    if character in CLOSERS:
        return SIDE_CLOSER
    if character in STOPS:
        return SIDE_STOP
    if character in SPACELESS_COMMAS:
        return SIDE_COMMA
    if character > 0xFFFF:
        return SIDE_SPACELESS
    for first, last in SPACELESS:
        if first <= character <= last:
            return SIDE_SPACELESS
    return SIDE_LETTER


@lean_kernel
def start_of_entity(text, i):
    """Return where the entity that ends at i starts; i if there is none."""
    if i == 0 or text[i - 1] != ascii.SEMICOLON:
        return i
    for j in range(i - 2, max(i - LONGEST_ENTITY, -1), -1):
        if text[j] == ascii.AMPERSAND:
            return j
        if not (is_alphanumeric(text[j]) or text[j] == ascii.HASH):
            return i
    return i


@lean_kernel
def is_elided(text, i):
    """Return True if the apostrophe before i ends a short word such as `l'`: the word after it belongs to it."""
    for j in range(i - 1, max(i - LONGEST_ELISION, -1), -1):
        if j == 0:
            return True
        if text[j - 1] == ascii.APOSTROPHE:
            return False
        side = side_of(np.int64(text[j - 1])) if text[j - 1] < ascii.NOT_ASCII else SIDE_LETTER
        if side == SIDE_SPACE or side == SIDE_OPENER or side == SIDE_LINE:
            return True
    return False


@lean_kernel
def side_before(text, start):
    """Return SIDE_* of what stands before a call that starts at `start`, quotation marks and spaces passed over.

    SIDE_STOP is given for the end of a sentence and a space; SIDE_CLOSER for that end without one, and for the tag of a
    reference.
    """
    i = skip_back(text, start, 0, ascii.APOSTROPHE)
    if start - i == 1 and is_elided(text, i + 1):
        return SIDE_OPENER
    spaced = False
    while i > 0:
        entity = start_of_entity(text, i)
        if entity == i:
            at = character_before(text, i, 0)
            if side_of(code_at(text, at)[0]) != SIDE_SPACE:
                break
            entity = at
        i = entity
        spaced = True
    if i == 0:
        return SIDE_LINE
    at = character_before(text, i, 0)
    character = code_at(text, at)[0]
    side = side_of(character)
    if character == ascii.DOUBLE_QUOTE or character == ELISION_MARK:
        if not spaced and character == ascii.DOUBLE_QUOTE and at > 0:
            side = side_of(code_at(text, character_before(text, at, 0))[0])
            return SIDE_OPENER if side == SIDE_SPACE or side == SIDE_OPENER or side == SIDE_LINE else SIDE_CLOSER
        if not spaced and character == ELISION_MARK and is_elided(text, at + 1):
            return SIDE_OPENER
    if spaced:
        if side == SIDE_STOP:
            return SIDE_STOP
        is_reference = character == ascii.GREATER_THAN and (
            text[at - 1] == ascii.SLASH or (at > 3 and text[at - 4] == ascii.SLASH)
        )
        return SIDE_CLOSER if is_reference else SIDE_SPACE
    return SIDE_CLOSER if side == SIDE_STOP else side


@lean_kernel
def side_after(text, end, n):
    """Return SIDE_* of what follows a call that ends at `end`; a link and the end of a line count after spaces,
    too.
    """
    i = skip(text, end, n, ascii.APOSTROPHE)
    side = side_of(code_at(text, i)[0]) if i < n else SIDE_LINE
    j = skip(text, skip_any(text, i, n, SPACES), n, ascii.APOSTROPHE)
    if j >= n or text[j] == ascii.NEWLINE:
        return SIDE_LINE
    if text[j] == ascii.OPEN_BRACKET and text[j + 1] == ascii.OPEN_BRACKET:
        return SIDE_LINK
    return side


@lean_kernel
def is_glued(text, start, end, n):
    """Return True if the call text[start:end] follows a word or punctuation at once, and no word follows it at once."""
    i = skip_back(text, start, 0, ascii.APOSTROPHE)
    if i == 0:
        return False
    before = side_of(code_at(text, character_before(text, i, 0))[0])
    if before != SIDE_LETTER and before != SIDE_CLOSER and before != SIDE_STOP:
        return False
    after = side_after(text, end, n)
    return after != SIDE_LETTER and after != SIDE_SPACELESS


@lean_kernel
def arguments_of(text, start, end, tables):
    """Return ARGUMENTS_* of the call text[start:end]: whether a text can depend on one of its arguments."""
    bar = find_any(text, start, end, BARS)
    if bar == end:
        return ARGUMENTS_NONE
    while bar < end:
        name_end = find_any(text, bar + 1, end, NAME_ENDS)
        first, last = trim(text, bar + 1, name_end)
        if text[name_end] != ascii.EQUALS or find(tables, codes.DOMAIN_UNREAD, text, first, last) < 0:
            return ARGUMENTS_TEXT
        bar = find_any(text, name_end, end, BARS)
    return ARGUMENTS_NOTES


@lean_kernel
def with_elements(text, start, end, n):
    """Return (start, end) of the call text[start:end] with the elements such as `<b>` that hold nothing else.

    Of an element such as `<span>` that holds more after it, the opening tag belongs to it.
    """
    while True:
        i = start
        while i > 0 and BESIDE_TAGS[text[i - 1]]:
            i -= 1
        j = skip_any(text, end, n, BESIDE_TAGS)
        if i == 0 or text[i - 1] != ascii.GREATER_THAN:
            return start, end
        opening = i - 1
        stop = max(i - LONGEST_TAG, 0)
        while opening > stop and text[opening] != ascii.LESS_THAN:
            opening -= 1
        if text[j] != ascii.LESS_THAN or text[j + 1] != ascii.SLASH:
            is_wrapper = text[opening + 1] == FIRST_OF_SPAN and text[i - 2] != ascii.SLASH
            return opening if is_wrapper else start, end
        k = 1
        while is_alphanumeric(text[opening + k]) and text[opening + k] == text[j + 1 + k]:
            k += 1
        if k == 1 or is_alphanumeric(text[opening + k]) or text[j + 1 + k] != ascii.GREATER_THAN:
            return start, end
        start, end = opening, j + k + 2


@lean_kernel
def is_footnote(text, start, end, n, begins, tables):
    """Return True if a call that gave nothing stands where a footnote does, or is a note to editors.

    begins: whether an argument of another call begins with it.

    A footnote stands after a word or punctuation and before no word; without arguments also after a space at the end
    of a sentence. A note has arguments, but none that a text depends on.
    """
    arguments = arguments_of(text, start, end, tables)
    if arguments == ARGUMENTS_NOTES:
        return True
    start, end = with_elements(text, start, end, n)
    if begins or (start > 0 and ARGUMENT_STARTS[text[start - 1]]):
        return False
    before = side_before(text, start)
    after = side_after(text, end, n)
    if before == SIDE_LETTER or before == SIDE_CLOSER:
        return after != SIDE_LETTER and after != SIDE_SPACELESS
    ends = after == SIDE_STOP or after == SIDE_LINE or text[end] == ascii.LESS_THAN
    # `{{Latest stable release/GIMP}}` is a value that stands on a page of its own.
    return ends and arguments == ARGUMENTS_NONE and find_any(text, start, end, SLASHES) == end


@lean_kernel
def link_is_word(text, start, end, n):
    """Return True if text[start:end], a link that shows its number alone, stands for a word: no footnote stands there.

    It begins its line, ends its line after a colon, or follows the only word in its bracket so far: `(see [1])`.
    """
    i = skip_back(text, start, 0, ascii.SPACE)
    if i == 0 or text[i - 1] == ascii.NEWLINE:
        return True
    if text[i - 1] == ascii.COLON:
        return ends_line(text, end, n)
    word = i - (text[i - 1] == ascii.PERIOD)
    k = word
    while k > 0 and (is_letter(text[k - 1]) or text[k - 1] >= ascii.NOT_ASCII):
        k -= 1
    return i < start and 0 < k < word and text[k - 1] == ascii.OPEN_PAREN


@lean_kernel
def ends_line(text, i, n):
    """Return True if nothing but white space follows i on its line."""
    i = skip_any(text, i, n, SPACES)
    return i >= n or text[i] == ascii.NEWLINE


@lean_kernel
def place_of(text, start, end, n):
    """Return PLACE_* of the call text[start:end]: whether it stands where a sentence has text, not a footnote or a
    flag.
    """
    after = side_after(text, end, n)
    if after == SIDE_LINE or after == SIDE_LINK:
        return PLACE_ELSEWHERE
    before = side_before(text, start)
    if before == SIDE_SPACE or before == SIDE_OPENER:
        return PLACE_SENTENCE
    if before == SIDE_STOP:
        return PLACE_BEHIND_STOP
    if before == SIDE_LETTER or before == SIDE_SPACELESS or before == SIDE_COMMA:
        if after == SIDE_LETTER or after == SIDE_SPACELESS:
            return PLACE_SENTENCE
    if before == SIDE_SPACELESS:
        closer = code_at(text, skip(text, end, n, ascii.APOSTROPHE))[0]
        if closer in SPACELESS_CLOSERS or closer == ascii.CLOSE_PAREN or closer == ascii.CLOSE_BRACKET:
            return PLACE_SENTENCE
    return PLACE_ELSEWHERE


@lean_kernel
def is_on_one_line(text, start, end):
    """Return True if a call is short, and all of it on one line."""
    return end - start <= LONGEST_CALL and find_any(text, start, end, NEWLINES) == end


@lean_kernel
def may_name_template(text, start, end):
    """Return True if text[start:end] can be a template's name; that of a parser function or another namespace
    cannot.
    """
    return end > start and find_any(text, start, end, NOT_IN_NAMES) == end


@lean_kernel
def has_word(text, start, end, domain, tables):
    """Return True if one of the words of the name text[start:end] is a key of a domain."""
    word = start
    for i in range(start, end + 1):
        if i == end or text[i] == ascii.SPACE or text[i] == ascii.UNDERSCORE:
            if find(tables, domain, text, word, i) >= 0:
                return True
            word = i + 1
    return False


@lean_kernel
def may_name_text(text, start, end, tables):
    """Return True if text[start:end] can be the name of a template that shows its argument.

    What wikis keep their data in cannot: subpages, names that end in codes (`Population GER-BE`), and names with a word
    for what a database holds (`UN_Population`).
    """
    if has_word(text, start, end, codes.DOMAIN_LOOKED_UP, tables):
        return False
    word = start
    for i in range(start, end):
        c = text[i]
        if c == ascii.SLASH:
            return False
        if c == ascii.SPACE or c == ascii.UNDERSCORE:
            word = i + 1
        elif word > start and i > start and is_capital(c) and is_capital(text[i - 1]):
            return False
    return True


@lean_kernel
def names_code(text, start, end, tables):
    """Return True if a number under the name text[start:end] is not text.

    The names of catalogues have a capital or a digit after their first letter, those of templates that compute a word.
    """
    if has_word(text, start, end, codes.DOMAIN_COMPUTED, tables):
        return True
    i = start
    while i < end:
        code, size = code_at(text, i)
        if i > start and (is_digit(code) or (code < codes.CASED and tables.lower[code] != code)):
            return True
        i += size
    return False


@inlined_kernel
def argument_places(call, a):
    """Return (start, end, start of the name, end of the name) of an argument in the output, without the blanks around
    it.
    """
    argument = call.arguments[a]
    first, last = trim(call.out, np.int64(argument.start), np.int64(argument.end))
    return first, last, np.int64(argument.name_start), np.int64(argument.name_end)


@lean_kernel
def only_argument(call):
    """Return (start, end) in the output of a call's one argument; an empty range if others may matter."""
    start, end = np.int64(0), np.int64(0)
    for a in range(call.first, call.last):
        first, last, name, name_end = argument_places(call, a)
        if first >= last:
            continue
        if call.arguments[a].number == 1:
            start, end = first, last
            continue
        if name < 0 or find(call.tables, codes.DOMAIN_UNREAD, call.out, name, name_end) < 0:
            return np.int64(0), np.int64(0)
    return start, end


@lean_kernel
def may_quote(text, start, end, tables):
    """Return True if the call whose arguments text[start:end] are, the first pipe included, may hold a quotation.

    It tells so without rendering them, as infoboxes are long.
    """
    i = start
    while i < end:
        name = skip_any(text, i + 1, end, BLANKS)
        stop = find_any(text, name, end, ENDS_OF_NAMES)
        if stop < end and text[stop] == ascii.EQUALS:
            _, name_end = trim(text, name, stop)
            is_first = name_end - name == 1 and text[name] == ascii.ONE
            if is_first or find(tables, codes.DOMAIN_QUOTED, text, name, name_end) >= 0:
                return True
        elif i == start and end - name >= SHORTEST_QUOTATION:
            return True
        i = find_any(text, stop, end, PIPES)
    return False


@lean_kernel
def quoted(call):
    """Return (start, end) in the output of the quotation that a call holds; an empty range if there is none."""
    unnamed = 0
    start, end = np.int64(0), np.int64(0)
    for a in range(call.first, call.last):
        first, last, name, name_end = argument_places(call, a)
        if first >= last:
            continue
        unnamed += call.arguments[a].number > 0
        named = name >= 0 and find(call.tables, codes.DOMAIN_QUOTED, call.out, name, name_end) >= 0
        if call.arguments[a].number == 1 or named:
            if has_several_sentences(call.out, first, last, call.tables):
                start, end = first, last
    return (start, end) if unnamed <= MOST_UNNAMED else (np.int64(0), np.int64(0))


@inlined_kernel
def is_file_name(out, start, end):
    """Return True if out[start:end] ends in a period and the three or four letters of a kind of file."""
    i = end
    while i > start and is_alphanumeric(out[i - 1]):
        i -= 1
    if end - i not in FILE_EXTENSION or i - start < 2:
        return False
    return is_letter(out[i]) and out[i - 1] == ascii.PERIOD and not is_blank(out[i - 2])


@lean_kernel
def is_foreign_digit(code):
    """Return True if a code point is a digit of a script with digits of its own, or a wide one."""
    for zero in FOREIGN_ZEROS:
        if zero <= code < zero + 10:
            return True
    return False


@lean_kernel
def is_foreign_number(out, start, end):
    """Return True if out[start:end] is nothing but digits that are not those of ASCII."""
    while start < end:
        code, size = code_at(out, start)
        if not is_foreign_digit(code):
            return False
        start += size
    return True


@lean_kernel
def reads_as_text(out, start, end, code_name):
    """Return True if out[start:end], not empty and trimmed, reads as a part of a sentence.

    code_name: whether a number is not text, by the template's name; see `names_code`.
    """
    if is_list_mark(out[start]) or ends_as_sentence(out, start, end) or is_file_name(out, start, end):
        return False
    letters = digits = capitals = marks = wide = 0
    for i in range(start, end):
        c = out[i]
        is_address = c == ascii.SLASH and out[i - 1] == ascii.SLASH and out[i - 2] == ascii.COLON
        if c == ascii.NEWLINE or c == ascii.PIPE or is_address:
            return False
        letters += is_letter(c)
        capitals += is_capital(c)
        digits += is_digit(c)
        wide += c >= ascii.NOT_ASCII
        marks += is_blank(c) or c == ascii.HYPHEN or c == ascii.UNDERSCORE
    if letters + wide == 0:
        if digits == end - start and not FIRST_YEAR <= read_integer(out, start, end) <= LAST_YEAR:
            return False
        return FEWEST_DIGITS <= digits <= MOST_DIGITS and marks == 0 and not code_name
    if wide > 0:
        return not is_foreign_number(out, start, end)
    if find_any(out, start, end, BLANKS) < end:
        return True
    if digits > 0 or find_any(out, start, end, IN_PATHS) < end:
        return False
    return end - start > LONGEST_CODE or (capitals < end - start and (capitals > 0 or letters != LANGUAGE_CODE))
