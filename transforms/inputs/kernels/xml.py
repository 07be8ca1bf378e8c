"""Kernels that find the parts of a page in a MediaWiki export, and undo what XML does to text.

Layout. `data` is uint8[n], and `words` the same bytes as uint64[n // 8], the first byte lowest: eight bytes are looked
at in one step for the few that matter. A page is described by `marks`, int64[N_MARKS], places in `data` and numbers:

  TITLE, TITLE_END                    the title, still escaped; -1 where there is none
  PAGE_ID, REVISION_ID                numbers; -1 where there is none, BAD_ID where it is no number
  NAMESPACE                           a number; NO_NAMESPACE, BAD_NAMESPACE
  IS_REDIRECT                         0 or 1
  TIMESTAMP, TIMESTAMP_END            of the last revision; -1 where there is none
  MODEL, MODEL_END                    of the last revision; -1 where there is none
  REVISION                            where the last revision starts; -1 where there is none
  TEXT_TAG, TEXT, TEXT_END            of the last revision: its <text …>, behind that tag, the end; -1 where missing
  TEXT_FLAGS                          IS_ESCAPED, NOT_ASCII, HAS_MARKUP (may be set needlessly, but for HAS_MARKUP)
  END                                 behind the last byte of the page looked at
"""

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

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

# What scan_page returns.
COMPLETE = 0
NEED_MORE = 1  # the page goes on behind the data
NOT_CLOSED = 2  # another page starts inside this one


def _packed(tag: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(tag, "little"))


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
def _zero_bytes(word: np.uint64) -> np.uint64:
    """Marks the lowest zero byte of a word at its top bit (and perhaps some above it); 0 where there is none."""
    return (word - _ONES) & ~word & _TOPS


@kernel
def _next_tag(data: Bytes, words: Words, begin: int) -> tuple[int, int]:
    """The first "<" at or behind `begin`, else the size of `data`; and flags of what stands in between."""
    i = begin
    word = i >> 3
    amps = np.uint64(0)
    highs = np.uint64(0)
    if word < words.size:
        # The bytes in front of `begin` are blotted out.
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
    while i < data.size and data[i] != 60:
        if word >= words.size:
            amps |= np.uint64((data[i] == 38) | (data[i] == 13))
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
    """The number that data[begin:end] writes in 1 to 18 digits, or -1."""
    if end - begin < 1 or end - begin > 18:
        return np.int64(-1)
    value = np.int64(0)
    for i in range(begin, end):
        if data[i] < 48 or data[i] > 57:
            return np.int64(-1)
        value = value * 10 + np.int64(data[i]) - 48
    return value


@kernel
def scan_page(data: Bytes, words: Words, start: int, marks: Marks) -> int:
    """Finds the parts of the page whose <page> stands at `start`.

    Of several revisions the last one counts. Fills `marks` as far as the page was seen.

    Returns: COMPLETE, NEED_MORE or NOT_CLOSED.
    """
    n = data.size
    marks[:] = -1
    marks[NAMESPACE] = NO_NAMESPACE
    marks[IS_REDIRECT] = 0
    marks[TEXT_FLAGS] = 0
    at = start + 6
    in_text = False
    while True:
        at, flags = _next_tag(data, words, at)
        marks[END] = at
        if at >= n:
            return NEED_MORE
        name = np.uint64(0)
        for k in range(min(8, n - at - 1)):
            name |= np.uint64(data[at + 1 + k]) << np.uint64(8 * k)
        if in_text:
            marks[TEXT_FLAGS] |= flags
            if (name & _6_BYTES) == _TEXT_END:
                marks[TEXT_END] = at
                in_text = False
                at += 7
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
        if marks[REVISION] < 0:
            if (name & _6_BYTES) == _TITLE and marks[TITLE] < 0:
                marks[TITLE] = at + 6
                marks[TITLE_END], _ = _next_tag(data, words, at + 6)
            elif (name & _3_BYTES) == _ID and marks[PAGE_ID] == -1:
                end, _ = _next_tag(data, words, at + 3)
                marks[PAGE_ID] = _digits(data, at + 3, end)
                if marks[PAGE_ID] < 0:
                    marks[PAGE_ID] = BAD_ID
            elif (name & _3_BYTES) == _NS:
                end, _ = _next_tag(data, words, at + 3)
                is_negative = data[at + 3] == 45
                value = _digits(data, at + 3 + is_negative, end)
                marks[NAMESPACE] = BAD_NAMESPACE if value < 0 or value >= NO_NAMESPACE else value
                if is_negative and value >= 0:
                    marks[NAMESPACE] = -value
            elif name == _REDIRECT:
                marks[IS_REDIRECT] = 1
        if name == _REVISION:
            marks[REVISION] = at - 1
            marks[REVISION_ID] = -1
            marks[TIMESTAMP] = -1
            marks[MODEL] = -1
            marks[TEXT] = -1
            marks[TEXT_END] = -1
            marks[TEXT_FLAGS] = 0
        elif marks[REVISION] >= 0:
            if (name & _3_BYTES) == _ID and marks[REVISION_ID] == -1:
                end, _ = _next_tag(data, words, at + 3)
                marks[REVISION_ID] = _digits(data, at + 3, end)
                if marks[REVISION_ID] < 0:
                    marks[REVISION_ID] = BAD_ID
            elif name == _CONTRIBUTOR and marks[REVISION_ID] == -1:
                marks[REVISION_ID] = BAD_ID  # the next id is the contributor's
            elif name == _TIMESTAMP and marks[TIMESTAMP] < 0:
                marks[TIMESTAMP] = at + 10
                marks[TIMESTAMP_END], _ = _next_tag(data, words, at + 10)
            elif (name & _6_BYTES) == _MODEL and marks[MODEL] < 0:
                marks[MODEL] = at + 6
                marks[MODEL_END], _ = _next_tag(data, words, at + 6)
            elif (name & _4_BYTES) == _TEXT and marks[TEXT] < 0:
                marks[TEXT_TAG] = at - 1
                while at < n and data[at] != 62 and data[at] != 60:
                    at += 1
                if at >= n:
                    return NEED_MORE
                if data[at] == 60:
                    continue
                at += 1
                marks[TEXT] = at
                if data[at - 2] == 47:
                    marks[TEXT_END] = at
                else:
                    in_text = True


@kernel
def unescape(data: Bytes, words: Words, begin: int, end: int, out: Bytes) -> int:
    """Resolves references (&lt; &gt; &amp; &quot; &apos; &#10; &#xA;), once, and makes all line ends "\\n".

    Args:
      data: uint8[n], of which data[begin:end] is UTF-8 text, escaped.
      words: the same as uint64[n // 8].
      out: uint8[end - begin] at least; the result is never longer.

    Returns:
      The length of the result; -1 where an & starts none of these references: XML knows no others unless a document
      declares them, and an export declares none.
    """
    size = 0
    i = begin
    while True:
        special = _next_special(data, words, i, end)
        if special - i < 32:
            for k in range(special - i):
                out[size + k] = data[i + k]
        else:
            out[size : size + special - i] = data[i:special]
        size += special - i
        i = special
        if i >= end:
            return size
        if data[i] == 13:
            # "\r\n" and "\r" are "\n".
            if i + 1 >= end or data[i + 1] != 10:
                out[size] = 10
                size += 1
            i += 1
            continue
        value, length = _reference(data, i + 1, end)
        if length == 0:
            return -1
        size = _put(out, size, value)
        i += 1 + length


@kernel
def _next_special(data: Bytes, words: Words, begin: int, end: int) -> int:
    """The first "&" or carriage return in data[begin:end], else `end`."""
    i = begin
    while i < end and i & 7:
        if data[i] == 38 or data[i] == 13:
            return i
        i += 1
    while i + 8 <= end:
        word = words[i >> 3]
        if _zero_bytes(word ^ _ALL_AMP) | _zero_bytes(word ^ _ALL_CR):
            break
        i += 8
    while i < end and data[i] != 38 and data[i] != 13:
        i += 1
    return i


@kernel
def _reference(data: Bytes, start: int, end: int) -> tuple[np.int64, int]:
    """The code point of the reference behind an & and its length up to behind the semicolon; 0, 0 where it is none."""
    if start < end and data[start] == 35:
        value, length = _number(data, start + 1, end)
        return value, length + 1 if length else 0
    # The first five bytes up to the semicolon, packed.
    name = np.uint64(0)
    length = 0
    while length < 5 and start + length < end:
        byte = data[start + length]
        length += 1
        name = (name << np.uint64(8)) | np.uint64(byte)
        if byte == 59:
            break
    if name == np.uint64(0x6C743B):  # lt;
        return np.int64(60), length
    if name == np.uint64(0x67743B):  # gt;
        return np.int64(62), length
    if name == np.uint64(0x616D703B):  # amp;
        return np.int64(38), length
    if name == np.uint64(0x71756F743B):  # quot;
        return np.int64(34), length
    if name == np.uint64(0x61706F733B):  # apos;
        return np.int64(39), length
    return np.int64(0), 0


@kernel
def _number(data: Bytes, start: int, end: int) -> tuple[np.int64, int]:
    """The code point that digits (or x and digits) write, and their length with the semicolon; 0, 0 if none does."""
    i = start
    base = 10
    if i < end and data[i] == 120:
        base = 16
        i += 1
    first = i
    value = np.int64(0)
    while i < end and data[i] != 59:
        byte = np.int64(data[i])
        if 48 <= byte <= 57:
            digit = byte - 48
        elif base == 16 and 97 <= (byte | 32) <= 102:
            digit = (byte | 32) - 87
        else:
            return np.int64(0), 0
        value = value * base + digit
        if value > 0x10FFFF:
            return np.int64(0), 0
        i += 1
    if i == first or i >= end or value == 0 or 0xD800 <= value <= 0xDFFF:
        return np.int64(0), 0
    return value, i + 1 - start


@kernel
def _put(out: Bytes, size: int, value: int) -> int:
    """Writes a code point as UTF-8; returns the new size. A reference is never shorter than its character."""
    if value < 0x80:
        out[size] = value
        return size + 1
    if value < 0x800:
        out[size] = 0xC0 | (value >> 6)
        out[size + 1] = 0x80 | (value & 63)
        return size + 2
    if value < 0x10000:
        out[size] = 0xE0 | (value >> 12)
        out[size + 1] = 0x80 | ((value >> 6) & 63)
        out[size + 2] = 0x80 | (value & 63)
        return size + 3
    out[size] = 0xF0 | (value >> 18)
    out[size + 1] = 0x80 | ((value >> 12) & 63)
    out[size + 2] = 0x80 | ((value >> 6) & 63)
    out[size + 3] = 0x80 | (value & 63)
    return size + 4


def views_of(data: bytes) -> tuple[Bytes, Words]:
    """`data` as these kernels take it."""
    view = np.frombuffer(data, np.uint8)
    return view, view[: view.size // 8 * 8].view(np.uint64)


def warm_up() -> None:
    """Compiles what this module's callers use."""
    data, words = views_of(b"<page></page> ")
    scan_page(data, words, 0, np.empty(N_MARKS, np.int64))
    unescape(data, words, 0, data.size, np.empty(data.size, np.uint8))
