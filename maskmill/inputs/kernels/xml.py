"""Kernels that find the parts of a page in a MediaWiki export, and undo XML's escaping of text.

Layout. `data` is uint8[n], and `words` the same bytes as uint64[n // 8], the first byte lowest, so that one step tests
eight bytes. `marks`, int64[N_MARKS], describes a page by indexes into `data` and numbers:

  TITLE, TITLE_END                    the title, still escaped; -1 where there is none
  PAGE_ID, REVISION_ID                numbers; -1 where there is none, BAD_ID where it is no number
  NAMESPACE                           a number; NO_NAMESPACE, BAD_NAMESPACE
  IS_REDIRECT                         0 or 1
  TIMESTAMP, TIMESTAMP_END            of the last revision; -1 where there is none
  MODEL, MODEL_END                    of the last revision; -1 where there is none
  REVISION                            where the last revision starts; -1 where there is none
  TEXT_TAG, TEXT, TEXT_END            of the last revision: <text …>, the text after it, its end; -1 where missing
  TEXT_FLAGS                          HAS_MARKUP, HAS_SECTIONS; IS_ESCAPED and NOT_ASCII, which may be set where they do
                                      not hold
  END                                 the last tag that was looked at
"""

import numpy as np
import numpy.typing as npt

from maskmill.characters.kernels.characters import put_code_point
from maskmill.kernels import kernel, wraps_around

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Marks = npt.NDArray[np.int64]

(
    TITLE, TITLE_END, PAGE_ID, REVISION_ID, NAMESPACE, IS_REDIRECT, TIMESTAMP, TIMESTAMP_END, MODEL, MODEL_END,
    REVISION, TEXT_TAG, TEXT, TEXT_END, TEXT_FLAGS, END, N_MARKS,
) = range(17)  # fmt: skip

BAD_ID = -2
NO_NAMESPACE = 1 << 40
BAD_NAMESPACE = NO_NAMESPACE + 1

IS_ESCAPED = 1
NOT_ASCII = 2
HAS_MARKUP = 4
HAS_SECTIONS = 8  # CDATA sections, comments or processing instructions

# What scan_page returns.
COMPLETE = 0
NEED_MORE = 1  # the page goes on after the data
NOT_CLOSED = 2  # another page starts inside this one


_LT, _GT, _AMP, _QUOTE, _APOSTROPHE, _SLASH, _MINUS, _HASH, _SEMICOLON = b"<>&\"'/-#;"
_EXCLAMATION, _QUESTION, _CLOSE_BRACKET = b"!?]"
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"
_ZERO, _NINE, _LOWER_A, _LOWER_F, _LOWER_X = b"09afx"
_TO_LOWER = 0x20

_MOST_DIGITS = 18  # of a number that fits int64
_LAST_CODE_POINT = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


def _packed(tag: bytes) -> np.uint64:
    """Return the first eight bytes after a tag's "<", as `_name_at` gives them."""
    return np.uint64(int.from_bytes(tag, "little"))


def _reference_name(name: bytes) -> np.uint64:
    """Return a reference's name with its semicolon, as `_reference` packs it."""
    return np.uint64(int.from_bytes(name, "big"))


_TITLE = _packed(b"title>")
_NS = _packed(b"ns>")
_ID = _packed(b"id>")
_REDIRECT = _packed(b"redirect")
_REVISION = _packed(b"revision")
_TIMESTAMP = _packed(b"timestam")
_MODEL = _packed(b"model>")
_CONTRIBUTOR = _packed(b"contribu")
_TEXT = _packed(b"text")
_TEXT_END = _packed(b"/text>")
_PAGE = _packed(b"page>")
_PAGE_END = _packed(b"/page>")
_CDATA = _packed(b"![CDATA[")
_COMMENT = _packed(b"!--")
_CDATA_BYTES = len(b"<![CDATA[")
_COMMENT_BYTES = len(b"<!--")
_PAGE_TAG_BYTES = len(b"<page>")
_TEXT_END_TAG_BYTES = len(b"</text>")
_TITLE_BYTES = len(b"title>")
_ID_BYTES = len(b"id>")
_NS_BYTES = len(b"ns>")
_TIMESTAMP_BYTES = len(b"timestamp>")
_MODEL_BYTES = len(b"model>")

_LT_NAME = _reference_name(b"lt;")
_GT_NAME = _reference_name(b"gt;")
_AMP_NAME = _reference_name(b"amp;")
_QUOT_NAME = _reference_name(b"quot;")
_APOS_NAME = _reference_name(b"apos;")
_LONGEST_NAME = len(b"quot;")

_WORD_BYTES = 8
_SHORT_COPY = 32  # bytes; a loop copies fewer than these faster than a slice does
_3_BYTES = np.uint64((1 << 24) - 1)
_4_BYTES = np.uint64((1 << 32) - 1)
_5_BYTES = np.uint64((1 << 40) - 1)
_6_BYTES = np.uint64((1 << 48) - 1)

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_ALL_LT = np.uint64(0x3C3C3C3C3C3C3C3C)
_ALL_AMP = np.uint64(0x2626262626262626)
_ALL_CR = np.uint64(0x0D0D0D0D0D0D0D0D)


@kernel
@wraps_around
def _zero_bytes(word: np.uint64) -> np.uint64:
    """Return a word with the top bit of its lowest zero byte set (and perhaps of some above it); 0 where no byte is
    zero.
    """
    return (word - _ONES) & ~word & _TOPS


@kernel
def _next_tag(data: Bytes, words: Words, begin: int) -> tuple[int, int]:
    """Return the first "<" at or after `begin`, else the size of `data`; and the flags of the bytes in between."""
    i = begin
    word = i >> 3
    amps = np.uint64(0)
    highs = np.uint64(0)
    if word < words.size:
        # Bytes in front of `begin` count as no "<".
        before = (np.uint64(1) << np.uint64(8 * (i & 7))) - np.uint64(1)
        found = _zero_bytes((words[word] ^ _ALL_LT) | before)
        amps = _zero_bytes(words[word] ^ _ALL_AMP) | _zero_bytes(words[word] ^ _ALL_CR)
        highs = words[word]
        while not found:
            word += 1
            if word >= words.size:
                break
            found = _zero_bytes(words[word] ^ _ALL_LT)
            amps |= _zero_bytes(words[word] ^ _ALL_AMP) | _zero_bytes(words[word] ^ _ALL_CR)
            highs |= words[word]
        i = max(i, word * 8)
    while i < data.size and data[i] != _LT:
        if word >= words.size:
            amps |= np.uint64((data[i] == _AMP) | (data[i] == _CARRIAGE_RETURN))
            highs |= np.uint64(data[i])
        i += 1
    flags = 0
    if amps:
        flags |= IS_ESCAPED
    if highs & _TOPS:
        flags |= NOT_ASCII
    return i, flags


@kernel
def _digits(data: Bytes, begin: int, end: int) -> np.int64:
    """Return the number that data[begin:end] writes in 1 to 18 digits, or -1."""
    if end - begin < 1 or end - begin > _MOST_DIGITS:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(begin, end):
        if data[i] < _ZERO or data[i] > _NINE:
            return np.int64(-1)
        value = value * 10 + np.int64(data[i]) - _ZERO
    return value


@kernel
def _name_at(data: Bytes, at: int) -> np.uint64:
    """Return the eight bytes after the "<" at data[at], packed; zeros after the end of the data."""
    name = np.uint64(0)
    for k in range(min(_WORD_BYTES, data.size - at - 1)):
        name |= np.uint64(data[at + 1 + k]) << np.uint64(8 * k)
    return name


@kernel
def scan_page(data: Bytes, words: Words, start: int, marks: Marks) -> int:
    """Find the parts of the page whose <page> stands at `start`.

    Of several revisions the last one counts. Fills `marks` for as much of the page as `data` holds.

    Returns: COMPLETE, NEED_MORE or NOT_CLOSED.
    """
    marks[:] = -1
    marks[NAMESPACE] = NO_NAMESPACE
    marks[IS_REDIRECT] = 0
    marks[TEXT_FLAGS] = 0
    at = start + _PAGE_TAG_BYTES
    in_text = False
    while True:
        at, flags = _next_tag(data, words, at)
        marks[END] = at
        if at >= data.size:
            return NEED_MORE
        name = _name_at(data, at)
        first = data[at + 1] if at + 1 < data.size else 0
        if first == _EXCLAMATION or first == _QUESTION:
            behind = _behind_section(data, at, name)
            if behind < 0:
                marks[END] = -behind
                return NOT_CLOSED
            if behind >= data.size:
                return NEED_MORE
            if behind > at:
                marks[TEXT_FLAGS] |= HAS_SECTIONS | NOT_ASCII if in_text else 0
                at = behind
                continue
        if in_text:
            marks[TEXT_FLAGS] |= flags
            if (name & _6_BYTES) == _TEXT_END:
                marks[TEXT_END] = at
                in_text = False
                at += _TEXT_END_TAG_BYTES
                continue
            if (name & _6_BYTES) != _PAGE_END and (name & _5_BYTES) != _PAGE:
                marks[TEXT_FLAGS] |= HAS_MARKUP
                at += 1
                continue
        if (name & _6_BYTES) == _PAGE_END:
            return COMPLETE
        if (name & _5_BYTES) == _PAGE:
            return NOT_CLOSED
        at += 1
        if name == _REVISION:
            _start_revision(marks, at - 1)
        elif marks[REVISION] < 0:
            _scan_page_field(data, words, name, at, marks)
        elif (name & _4_BYTES) == _TEXT and marks[TEXT] < 0:
            at = _enter_text(data, at, marks)
            if at >= data.size:
                return NEED_MORE
            in_text = marks[TEXT] >= 0 and marks[TEXT_END] < 0
        else:
            _scan_revision_field(data, words, name, at, marks)


@kernel
def _behind_section(data: Bytes, at: int, name: np.uint64) -> int:
    """Return the index after the CDATA section, comment or processing instruction that starts at data[at].

    `at` where none of them does, the size of `data` or more where it goes on after the data, and the negative index of
    a <page> that comes before its end: a section that is never closed hides no more than its page.
    """
    if at + _CDATA_BYTES > data.size:
        return data.size
    if name == _CDATA:
        mark = _CLOSE_BRACKET
        i = at + _CDATA_BYTES + 2
    elif (name & _3_BYTES) == _COMMENT:
        mark = _MINUS
        i = at + _COMMENT_BYTES + 2
    elif data[at + 1] == _QUESTION:
        mark = _QUESTION
        i = at + 3
    else:
        return at
    while i < data.size:
        if data[i] == _GT and data[i - 1] == mark and (mark == _QUESTION or data[i - 2] == mark):
            return i + 1
        if data[i] == _LT and (_name_at(data, i) & _5_BYTES) == _PAGE:
            return -i
        i += 1
    return data.size


@kernel
def _title_end(data: Bytes, words: Words, begin: int) -> int:
    """Return the tag that ends the title that starts at `begin`; sections and comments belong to the title."""
    end, _ = _next_tag(data, words, begin)
    while end + 1 < data.size and (data[end + 1] == _EXCLAMATION or data[end + 1] == _QUESTION):
        behind = _behind_section(data, end, _name_at(data, end))
        if behind <= end or behind >= data.size:
            break
        end, _ = _next_tag(data, words, behind)
    return end


@kernel
def _scan_page_field(data: Bytes, words: Words, name: np.uint64, at: int, marks: Marks) -> None:
    """Mark a field in front of the first revision; `name` is that of its tag and stands at data[at]."""
    if (name & _6_BYTES) == _TITLE and marks[TITLE] < 0:
        marks[TITLE] = at + _TITLE_BYTES
        marks[TITLE_END] = _title_end(data, words, at + _TITLE_BYTES)
    elif (name & _3_BYTES) == _ID and marks[PAGE_ID] == -1:
        marks[PAGE_ID] = _id_at(data, words, at + _ID_BYTES)
    elif (name & _3_BYTES) == _NS:
        marks[NAMESPACE] = _namespace_at(data, words, at + _NS_BYTES)
    elif name == _REDIRECT:
        marks[IS_REDIRECT] = 1


@kernel
def _id_at(data: Bytes, words: Words, begin: int) -> np.int64:
    """Return the number that stands at `begin`, up to the next tag; BAD_ID where none does."""
    end, _ = _next_tag(data, words, begin)
    value = _digits(data, begin, end)
    return value if value >= 0 else np.int64(BAD_ID)


@kernel
def _namespace_at(data: Bytes, words: Words, begin: int) -> np.int64:
    """Return the number, perhaps negative, that stands at `begin`, up to the next tag; BAD_NAMESPACE where none
    does.
    """
    end, _ = _next_tag(data, words, begin)
    is_negative = begin < data.size and data[begin] == _MINUS
    value = _digits(data, begin + is_negative, end)
    if is_negative and value >= 0:
        return -value
    return value if 0 <= value < NO_NAMESPACE else np.int64(BAD_NAMESPACE)


@kernel
def _start_revision(marks: Marks, start: int) -> None:
    """Forget the revision before the one that starts at `start`."""
    marks[REVISION] = start
    marks[REVISION_ID] = -1
    marks[TIMESTAMP] = -1
    marks[MODEL] = -1
    marks[TEXT] = -1
    marks[TEXT_END] = -1
    marks[TEXT_FLAGS] = 0


@kernel
def _scan_revision_field(data: Bytes, words: Words, name: np.uint64, at: int, marks: Marks) -> None:
    """Mark a field of a revision, but not its text; `name` is that of its tag and stands at data[at]."""
    if (name & _3_BYTES) == _ID and marks[REVISION_ID] == -1:
        marks[REVISION_ID] = _id_at(data, words, at + _ID_BYTES)
    elif name == _CONTRIBUTOR and marks[REVISION_ID] == -1:
        marks[REVISION_ID] = BAD_ID  # the next id is the contributor's
    elif name == _TIMESTAMP and marks[TIMESTAMP] < 0:
        marks[TIMESTAMP] = at + _TIMESTAMP_BYTES
        marks[TIMESTAMP_END], _ = _next_tag(data, words, at + _TIMESTAMP_BYTES)
    elif (name & _6_BYTES) == _MODEL and marks[MODEL] < 0:
        marks[MODEL] = at + _MODEL_BYTES
        marks[MODEL_END], _ = _next_tag(data, words, at + _MODEL_BYTES)


@kernel
def _enter_text(data: Bytes, at: int, marks: Marks) -> int:
    """Mark the text whose <text …> has its name at data[at]; return where the text starts.

    It returns the size of `data` where the tag goes on after it, and the next "<" where the tag is not closed: then
    there is no text.
    """
    marks[TEXT_TAG] = at - 1
    while at < data.size and data[at] != _GT and data[at] != _LT:
        at += 1
    if at >= data.size or data[at] == _LT:
        return at
    at += 1
    marks[TEXT] = at
    if data[at - 2] == _SLASH:
        marks[TEXT_END] = at
    return at


@kernel
def unescape(data: Bytes, words: Words, begin: int, end: int, out: Bytes) -> int:
    """Resolve references (&lt; &gt; &amp; &quot; &apos; &#10; &#xA;), once, and make all line ends "\\n".

    Args:
      data: uint8[n], of which data[begin:end] is UTF-8 text, escaped.
      words: the same as uint64[n // 8].
      out: uint8[end - begin] at least; receives the result, which is never longer, because no reference is shorter
        than its character.

    Returns:
      The length of the result; -1 where an & starts none of these references. XML knows only these unless a document
      declares others, and an export declares none.
    """
    size = 0
    i = begin
    while True:
        special = _next_special(data, words, i, end)
        if special - i < _SHORT_COPY:
            for k in range(special - i):
                out[size + k] = data[i + k]
        else:
            out[size : size + special - i] = data[i:special]
        size += special - i
        i = special
        if i >= end:
            return size
        if data[i] == _CARRIAGE_RETURN:
            # "\r\n" and "\r" become "\n".
            if i + 1 >= end or data[i + 1] != _LINE_FEED:
                out[size] = _LINE_FEED
                size += 1
            i += 1
            continue
        value, length = _reference(data, i + 1, end)
        if length == 0:
            return -1
        size = put_code_point(out, size, value)
        i += 1 + length


@kernel
def _next_special(data: Bytes, words: Words, begin: int, end: int) -> int:
    """Return the first "&" or carriage return in data[begin:end], else `end`."""
    i = begin
    while i < end and i & 7:
        if data[i] == _AMP or data[i] == _CARRIAGE_RETURN:
            return i
        i += 1
    while i + _WORD_BYTES <= end:
        word = words[i >> 3]
        if _zero_bytes(word ^ _ALL_AMP) | _zero_bytes(word ^ _ALL_CR):
            break
        i += _WORD_BYTES
    while i < end and data[i] != _AMP and data[i] != _CARRIAGE_RETURN:
        i += 1
    return i


@kernel
def _reference(data: Bytes, start: int, end: int) -> tuple[np.int64, int]:
    """Return the code point of the reference after an & and its length with the semicolon; 0, 0 where it is none."""
    if start < end and data[start] == _HASH:
        value, length = _number(data, start + 1, end)
        return value, length + 1 if length else 0
    name = np.uint64(0)
    length = 0
    while length < _LONGEST_NAME and start + length < end:
        byte = data[start + length]
        length += 1
        name = (name << np.uint64(8)) | np.uint64(byte)
        if byte == _SEMICOLON:
            break
    if name == _LT_NAME:
        return np.int64(_LT), length
    if name == _GT_NAME:
        return np.int64(_GT), length
    if name == _AMP_NAME:
        return np.int64(_AMP), length
    if name == _QUOT_NAME:
        return np.int64(_QUOTE), length
    if name == _APOS_NAME:
        return np.int64(_APOSTROPHE), length
    return np.int64(0), 0


@kernel
def _number(data: Bytes, start: int, end: int) -> tuple[np.int64, int]:
    """Return the code point that digits (or x and digits) write, and their length with the semicolon; 0, 0 if it is
    none.
    """
    i = start
    base = 10
    if i < end and data[i] == _LOWER_X:
        base = 16
        i += 1
    first = i
    value = np.int64(0)
    while i < end and data[i] != _SEMICOLON:
        byte = np.int64(data[i])
        if _ZERO <= byte <= _NINE:
            digit = byte - _ZERO
        elif base == 16 and _LOWER_A <= (byte | _TO_LOWER) <= _LOWER_F:
            digit = (byte | _TO_LOWER) - _LOWER_A + 10
        else:
            return np.int64(0), 0
        value = value * base + digit
        if value > _LAST_CODE_POINT:
            return np.int64(0), 0
        i += 1
    if i == first or i >= end or value == 0 or _FIRST_SURROGATE <= value <= _LAST_SURROGATE:
        return np.int64(0), 0
    return value, i + 1 - start


def views_of(data: bytes) -> tuple[Bytes, Words]:
    """Return `data` and `words` of these kernels, without a copy."""
    view = np.frombuffer(data, np.uint8)
    return view, view[: view.size // 8 * 8].view(np.uint64)


def warm_up() -> None:
    """Compile the kernels that other modules call."""
    data, words = views_of(b"<page></page> ")
    scan_page(data, words, 0, np.empty(N_MARKS, np.int64))
    unescape(data, words, 0, data.size, np.empty(data.size, np.uint8))
