"""Tests of whether the text of a line that is not a paragraph (a list's item, an indented line) reads as sentences."""

from maskmill.characters.kernels.characters import character_before, code_at
from maskmill.extraction.kernels.text import byte_set, is_digit, is_letter, is_mark, is_separator, is_stop, trim
from maskmill.kernels import ascii, inlined_kernel, lean_kernel

SHORTEST_SENTENCE = 20  # bytes that an item must have to be taken for a sentence
SHORTEST_PARAGRAPH = 60  # bytes that an indented line must have to be taken for a paragraph
PROSE_PERCENT = 88  # bytes of that line that must be letters and single spaces, in percent
PARAGRAPH_BYTES_A_GAP = 40  # bytes of that line for each space after a space
LONGEST_SET_LINE = 100  # characters of a line whose end somebody has set, as those of code and drawings
CONTINUATION_BITS = 0xC0  # the bits of a byte that tell whether it continues a character of UTF-8
CONTINUATION = 0x80

# How much of a sentence some text is: a word in small letters counts WORD_POINTS, a letter of a script without capitals
# LETTER_POINTS, an ideograph, a kana or a Hangul syllable SIGN_POINTS.
WORD_POINTS = 7
LETTER_POINTS = 1
SIGN_POINTS = 3
SENTENCE_POINTS = 28
SHORTEST_LAST_WORD = 3  # letters and digits before a full stop; shorter ones may be abbreviations
LONGEST_SIGNATURE = 120  # bytes after a quotation that name its author
SMALL_WORDS = 4  # in a row, and as many again: sentences have them, and titles and rows of names do not
UNSTOPPED_LETTERS = 60  # of Thai or Lao, whose sentences end with nothing, that make a sentence
UNSTOPPED_PERCENT = 75  # of a line's characters that must be such letters then

# Marks beyond ASCII that end sentences: the characters of Unicode's property Sentence_Terminal that are in use today,
# the ellipses, and what stands for a danda in Bengali.
STOPS = tuple(map(ord, "։؞؟۔܀܁܂߹।॥৷෴།༎။።፧፨។៕᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᱾᱿‥…‼‽⁇⁈⁉。！．？｡꓿꘎꘏꛳꛷꡶꡷꣎꣏꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗"))
FIRST_BYTE_OF_STOPS = min(chr(stop).encode()[0] for stop in STOPS)  # in UTF-8
ELLIPSES = tuple(map(ord, "‥…"))  # of these stops, those that also stand in the middle of sentences
# Quotes and brackets beyond ASCII that close; quotes that open in one language close in another.
CLOSERS = tuple(map(ord, "«»‘’‚‛“”„‟‹›′″⁾₎〉》」』】〕〗〙〛〞〟︶︸﹂﹄﹈﹚﹜﹞＂＇）］｝｠｣⟩⟫"))
ASCII_CLOSERS = byte_set(b"\"')]}")
# Brackets that set apart what does not count for the sentence around it, and those of titles.
OPENING_BRACKETS = tuple(map(ord, "([（［〔【《〈『"))
CLOSING_BRACKETS = tuple(map(ord, ")]）］〕】》〉』"))
DIVIDERS = tuple(map(ord, "·•∙⋅"))  # between names in a row, besides the bar
FEWEST_DIVIDERS = 2
LONGEST_NAME = 60  # characters
DASHES = tuple(map(ord, "‐‑‒–—―−－"))
# Scripts whose sentences end with nothing but a space.
FIRST_UNSTOPPED = ord("\u0e00")
LAST_UNSTOPPED = ord("\u0eff")

OTHER = 0
SMALL = 1
CAPITAL = 2
UNCASED = 3  # a letter of a script without capitals
SIGN = 4
ATTACHED = 5  # belongs to the letter before


@lean_kernel
def is_gap(code):
    """Return True for white space, the mark of something dropped, and characters that take no room."""
    if code < ascii.NOT_ASCII:
        return code <= ascii.SPACE or code == ascii.DELETE
    return (
        code <= 0xA0
        or code == 0xAD
        or 0x2000 <= code <= 0x200F
        or 0x2028 <= code <= 0x202F
        or 0x205F <= code <= 0x206F
        or code == 0x3000
        or code == 0xFEFF
        or code == 0x61C
        or code == 0x180E
    )


@lean_kernel
def ends_sentence(code):
    """Return True for the marks that end sentences."""
    return is_stop(code) if code < ascii.NOT_ASCII else code in STOPS


@lean_kernel
def is_closer(code):
    """Return True for quotes and brackets that can stand after the mark that ends a sentence."""
    return ASCII_CLOSERS[code] if code < ascii.NOT_ASCII else code in CLOSERS


@lean_kernel
def is_dash(code):
    """Return True for hyphens and dashes."""
    return code == ascii.HYPHEN or code in DASHES


@lean_kernel
def letter_kind(code, tables):
    """Return SMALL, CAPITAL, UNCASED, SIGN, ATTACHED or OTHER for a code point."""
    if code < ascii.NOT_ASCII:
        if not is_letter(code):
            return OTHER
        return SMALL if code >= 0x61 else CAPITAL
    if code < len(tables.upper):
        if code < 0xC0 or code == 0xD7 or code == 0xF7:
            return OTHER
        if 0x300 <= code < 0x370:
            return ATTACHED
        if tables.upper[code] != code:
            return SMALL
        return CAPITAL if tables.lower[code] != code else UNCASED
    if 0x1E00 <= code < 0x1F00:
        return SMALL if code & 1 else CAPITAL
    if 0x2000 <= code < 0x2C00 or 0x3000 <= code <= 0x3004 or 0x3008 <= code <= 0x3020 or 0xFE10 <= code < 0xFE70:
        return OTHER
    if code == 0x60C or code == 0x61B or 0x660 <= code < 0x66E or 0x6F0 <= code < 0x6FA:
        return OTHER
    if 0x900 <= code < 0xE00 and 0x64 <= code & 0x7F <= 0x70:
        return OTHER  # digits and dandas stand at the same place in each of these blocks
    if 0xFF00 <= code < 0xFF66:
        return OTHER
    if 0x2E80 <= code < 0xA000 or 0xAC00 <= code < 0xD7B0 or 0xF900 <= code < 0xFB00 or code >= 0x20000:
        return SIGN
    return UNCASED


@lean_kernel
def reads_as_prose(out, start, end):
    """Return True if an indented line is a paragraph somebody indented by accident: long, and letters nearly all of it.

    Some people set two spaces between sentences; so do code and drawings, but their lines are
    short or have more spaces.
    """
    start, end = trim(out, start, end)
    if end - start < SHORTEST_PARAGRAPH:
        return False
    letters = 0
    gaps = 0  # spaces after a space
    characters = 0
    for i in range(start, end):
        c = out[i]
        characters += c & CONTINUATION_BITS != CONTINUATION
        if is_letter(c) or c >= ascii.NOT_ASCII:
            letters += 1
        elif c == ascii.SPACE:
            gaps += out[i - 1] == ascii.SPACE
            letters += 1
    if gaps > 0 and (characters <= LONGEST_SET_LINE or gaps * PARAGRAPH_BYTES_A_GAP > end - start):
        return False
    return letters * 100 >= (end - start) * PROSE_PERCENT


@lean_kernel
def ends_as_sentence(out, start, end):
    """Return True if a line ends with a mark that ends sentences; quotes, brackets and white space may follow it."""
    start, end = trim(out, start, end)
    if end - start < SHORTEST_SENTENCE:
        return False
    while end > start:
        at = character_before(out, end, start)
        code, _ = code_at(out, at)
        if ends_sentence(code):
            return True
        if not (is_gap(code) or is_closer(code)):
            return False
        end = at
    return False


@lean_kernel
def is_row_of_names(out, start, end):
    """Return True if a line is not a sentence but names between bars or dots, as calendars and links to other pages
    have them.

    A line with an equals sign is a formula.
    """
    if ends_as_sentence(out, start, end):
        return False
    dividers = 0
    characters = 0  # since the last divider
    i = start
    while i < end:
        code, size = code_at(out, i)
        characters += 1
        if characters > LONGEST_NAME or code == ascii.EQUALS:
            return False
        if (code == ascii.PIPE or code in DIVIDERS) and start < i and i + size < end:
            before, behind = out[i - 1], out[i + size]
            if (before == ascii.SPACE or is_mark(before)) and (behind == ascii.SPACE or is_mark(behind)):
                dividers += 1
                characters = 0
        i += size
    return dividers >= FEWEST_DIVIDERS


@lean_kernel
def skip_behind_stop(out, i, end):
    """Return (the first character after the stop at i that is not a stop, closer or space, whether a space is
    there).
    """
    gap = False
    while i < end:
        code, size = code_at(out, i)
        if is_gap(code):
            gap = gap or not is_mark(code)
        elif not (ends_sentence(code) or is_closer(code)):
            break
        i += size
    return i, gap


@inlined_kernel
def starts_sentence(out, i, end, word, tables):
    """Return True if a sentence can start at i, after a full stop and a word of so many letters and digits.

    None starts with a small letter or after an abbreviation; a dash can stand before the author of a quotation.
    """
    if i >= end:
        return False
    code, _ = code_at(out, i)
    if is_dash(code):
        return word >= SHORTEST_LAST_WORD - 1
    if word < SHORTEST_LAST_WORD:
        return False
    if is_separator(code) or code == ascii.OPEN_PAREN or is_digit(code):
        return False
    return letter_kind(code, tables) != SMALL


@inlined_kernel
def is_prose(points, small, capitals):
    """Return True if a piece of text reads as a sentence: not too short, and not a title, whose words have capitals."""
    return points >= SENTENCE_POINTS and small * 2 >= capitals


@inlined_kernel
def may_hold_sentences(out, start, end):
    """Return False if a line is too short to hold sentences, or certainly has no stop before its end. It takes little
    time.
    """
    if end - start < SHORTEST_SENTENCE:
        return False
    for i in range(start, end - 1):
        c = out[i]
        if c >= FIRST_BYTE_OF_STOPS or is_stop(c):
            return True
    return False


@lean_kernel
def next_piece(out, i, end, tables):
    """Read on from i up to where a sentence ends for sure, at most to `end`.

    Returns (where the next sentence starts, whether a stop ends this one, whether it reads as a sentence, its letters
    of scripts without stops, all its characters). What stands in brackets counts for none of these.
    """
    points = 0
    small = 0  # words that start with a small letter, with a capital
    capitals = 0
    word = 0  # letters and digits of the present word
    depth = 0  # of brackets
    unstopped = 0
    characters = 0
    while i < end:
        code, size = code_at(out, i)
        i += size
        if code in OPENING_BRACKETS:
            depth += 1
        elif code in CLOSING_BRACKETS:
            depth = max(depth - 1, 0)
        if depth > 0:
            continue
        kind = letter_kind(code, tables)
        characters += not is_gap(code)
        if kind != OTHER or is_digit(code):
            if word == 0:
                small += kind == SMALL
                capitals += kind == CAPITAL
                points += WORD_POINTS * (kind == SMALL)
            points += LETTER_POINTS * (kind == UNCASED) + SIGN_POINTS * (kind == SIGN)
            unstopped += FIRST_UNSTOPPED <= code <= LAST_UNSTOPPED
            word += kind != ATTACHED
            continue
        if ends_sentence(code):
            behind, gap = skip_behind_stop(out, i, end)
            sure = code >= ascii.NOT_ASCII and code not in ELLIPSES
            if sure or (gap and starts_sentence(out, behind, end, word, tables)):
                return behind, True, is_prose(points, small, capitals), unstopped, characters
        # After a bracket or a quote that closes there is no abbreviation.
        word = SHORTEST_LAST_WORD if is_closer(code) else 0
    return i, False, is_prose(points, small, capitals), unstopped, characters


@inlined_kernel
def starts_signature(out, i, end, tables):
    """Return True if a dash stands at i, and a name after it."""
    code, size = code_at(out, i)
    if not is_dash(code):
        return False
    while i + size < end:
        i += size
        code, size = code_at(out, i)
        if not (is_gap(code) or is_dash(code)):
            break
    kind = letter_kind(code, tables)
    return kind != SMALL and kind != OTHER


@lean_kernel
def holds_sentences(out, start, end, tables):
    """Return True if a line that does not end like a sentence holds some all the same.

    It is one of these: sentences of which the last lacks its stop, a quotation that ends with its author's name after
    a dash, or much text of a script that ends its sentences with nothing. Works of a bibliography hold stops, too, but
    little that reads as a sentence between them.
    """
    start, end = trim(out, start, end)
    if not may_hold_sentences(out, start, end):
        return False
    i = start
    piece = start
    sentences = 0
    sentence_bytes = 0
    prose = False
    unstopped = 0
    characters = 0
    while i < end:
        piece = i
        i, stopped, prose, more_unstopped, more_characters = next_piece(out, i, end, tables)
        unstopped += more_unstopped
        characters += more_characters
        if stopped and prose:
            sentences += 1
            sentence_bytes += i - piece
    if unstopped >= UNSTOPPED_LETTERS and unstopped * 100 >= characters * UNSTOPPED_PERCENT:
        return True
    if sentences == 0:
        return False
    signed = end - piece <= LONGEST_SIGNATURE and starts_signature(out, piece, end, tables)
    return prose or signed or (sentences > 1 and sentence_bytes * 2 >= end - start)


@lean_kernel
def has_several_sentences(out, start, end, tables):
    """Return True if text starts with a sentence that a stop ends, and goes on with another."""
    if not may_hold_sentences(out, start, end):
        return False
    i, stopped, first, _, _ = next_piece(out, start, end, tables)
    return stopped and first and i < end and next_piece(out, i, end, tables)[2]


@lean_kernel
def holds_prose(out, start, end, tables):
    """Return True if a piece of a line, from one end of a sentence to the next, reads as a sentence."""
    start, end = trim(out, start, end)
    i = start
    while i < end:
        i, _, prose, _, _ = next_piece(out, i, end, tables)
        if prose:
            return True
    return False


@lean_kernel
def is_unstopped_sentence(out, start, end, tables):
    """Return True if an item of a list reads as a sentence that lacks its stop: a capital, and long runs of small
    words.
    """
    start, end = trim(out, start, end)
    if end - start < SHORTEST_PARAGRAPH or not (is_letter(out[end - 1]) or out[end - 1] >= ascii.NOT_ASCII):
        return False
    if letter_kind(code_at(out, start)[0], tables) != CAPITAL:
        return False
    words = run = flowing = word = 0  # flowing: small words after SMALL_WORDS others in a row
    i = start
    while i < end:
        code, size = code_at(out, i)
        i += size
        kind = letter_kind(code, tables)
        if kind != OTHER:
            if word == 0:
                words += 1
                run = run + 1 if kind == SMALL else 0
                flowing += run > SMALL_WORDS
            word += 1
        else:
            word = 0
            if not (is_gap(code) or is_digit(code) or code == ascii.APOSTROPHE or code == ascii.HYPHEN):
                run = 0
    return flowing >= SMALL_WORDS and flowing * 2 >= words


@lean_kernel
def has_small_words(out, start, end, tables):
    """Return True if a line has two small words, or a word of a script without capitals: it is not a bare name or
    number.
    """
    start, end = trim(out, start, end)
    small = 0
    word = 0
    i = start
    while i < end:
        code, size = code_at(out, i)
        i += size
        kind = letter_kind(code, tables)
        if kind == UNCASED or kind == SIGN:
            return True
        if kind == OTHER:
            word = 0
            continue
        small += word == 0 and kind == SMALL
        word += 1
    return small > 1


@lean_kernel
def is_paragraph(out, start, end, tables):
    """Return True if a line is a paragraph whose first and last sentences read as such, and no work of a
    bibliography.
    """
    start, end = trim(out, start, end)
    if not reads_as_prose(out, start, end):
        return False
    i, _, first, _, _ = next_piece(out, start, end, tables)
    last = first
    while first and i < end:
        i, _, last, _, _ = next_piece(out, i, end, tables)
    return first and last
