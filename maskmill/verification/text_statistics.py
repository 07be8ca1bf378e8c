"""What the text of a file looks like: counted article by article, in bounded memory."""

import collections
import unicodedata

import numpy as np
import numpy.typing as npt

from maskmill.verification.pieces import TextStatistics

LONG_LINE = 10  # words; shorter lines are often the same: headings, names
_SHOWN = 200  # bytes of a repeated line that are kept
_MOST_LINES = 200_000  # distinct lines that are counted at a time
_REPEATED = 64  # most repeated lines of a file
_SPACE, _NEWLINE = 32, 10
_UNBROKEN = 60  # bytes of a line without a space, where it is ASCII: no script that has no spaces
_NEIGHBOUR = 20  # bytes of a line that is the same as the one before; shorter ones are refrains, marks of a dialogue
_CHUNK = 1 << 16  # bytes that are counted at a time: np.bincount makes eight of each
_LEAD, _FIRST_LEAD = 0xC3, 0xC0  # the first byte of À to ÿ, and the first that starts a character beyond ASCII
_CONTINUING, _CONTINUING_BITS = 0x80, 0xC0  # what other bytes of it have in common
_SIZES = 64  # of document_lines
_LENGTHS = 1024  # of unended
_BEGINNING = 200  # characters of a document whose letters are counted
_MARKS = (b"[[", b"]]", b"{{", b"}}", b"'''", b"</", b"&amp;", b"&quot;", b"&nbsp;", b"&lt;", b"&gt;", b"&#")
_REPLACEMENT = "\ufffd".encode()
_C1 = (0xC2, 0x80, 0x9F)  # the first byte of a control character that no text has, and from where to where the second
_LEADS = (0x82, 0x83, 0x90, 0x91)  # of Â, Ã, Ð and Ñ the second byte; behind them none of U+00A0 to U+00BF stands
_EURO = "â€".encode()  # a quotation mark or a dash, read as Windows-1252
_ENDS = np.frombuffer(b".!?:;,)]}\"'*-", np.uint8)

_SUMS = ("replaced", "garbled", "markup", "letters", "capitals", "unbroken", "doubled")

Counts = npt.NDArray[np.int64]


class TextCounter:
    """Counts what is in whole articles of text.

    Where a file has more than _MOST_LINES distinct lines at a time, those that were there once so far are forgotten, so
    the counts of rare repetitions are lower bounds (Manku and Motwani, "Approximate Frequency Counts over Data
    Streams", VLDB 2002).
    """

    def __init__(self) -> None:
        self._sums: collections.Counter[str] = collections.Counter()
        self._document_lines = np.zeros(_SIZES, np.int64)
        self._longest_line = 0
        self._lines: collections.Counter[bytes] = collections.Counter()
        self._longest_characters = 0
        self._unended = np.zeros(_LENGTHS, np.int64)
        self._bytes = np.zeros(256, np.int64)

    def add(self, articles: list[bytes], characters: int) -> None:
        """Adds articles, as they stand between blank lines; `characters` is how many they have, newlines aside."""
        text = b"\n\n".join(articles) + b"\n"
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        is_text = data > _SPACE
        begins_word = is_text.copy()
        begins_word[1:] &= ~is_text[:-1]
        words = np.add.reduceat(begins_word, starts, dtype=np.int64)
        is_line = ends > starts
        lines = text.split(b"\n")
        self._lines.update(lines[line][:_SHOWN] for line in np.flatnonzero(words >= LONG_LINE).tolist())
        self._forget()
        lengths = ends - starts
        unbroken = np.flatnonzero((words == 1) & (lengths >= _UNBROKEN)).tolist()
        same_length = np.flatnonzero((lengths[1:] == lengths[:-1]) & (lengths[1:] >= _NEIGHBOUR)).tolist()
        self._sums.update(
            unbroken=sum(lines[line].isascii() for line in unbroken),
            doubled=sum(lines[line] == lines[line + 1] for line in same_length),
        )
        sizes = np.array([sum(map(bool, article.split(b"\n"))) for article in articles], np.int64)
        sizes = sizes[sizes > 0]
        self._document_lines += np.bincount(np.log2(sizes).astype(np.int64), minlength=_SIZES)
        self._longest_line = max(self._longest_line, int(lengths.max(initial=0)))
        self._count_characters(text, data)
        self._count_letters(articles)
        self._count_lines(data, starts[is_line], ends[is_line])
        self._sums.update(documents=len(sizes), lines=int(is_line.sum()), characters=characters, words=int(words.sum()))

    def _count_characters(self, text: bytes, data: npt.NDArray[np.uint8]) -> None:
        """Counts bytes, characters that are broken, and marks."""
        for start in range(0, len(data), _CHUNK):
            self._bytes += np.bincount(data[start : start + _CHUNK], minlength=256)
        first, low, high = _C1
        garbled = np.count_nonzero((data[:-1] == first) & (data[1:] >= low) & (data[1:] <= high))
        places = np.flatnonzero(data[:-3] == _LEAD)
        behind = data[places + 1], data[places + 2], data[places + 3]
        garbled += np.count_nonzero(np.isin(behind[0], _LEADS) & (behind[1] == first) & (behind[2] > high))
        self._sums.update(
            replaced=text.count(_REPLACEMENT),
            garbled=int(garbled) + text.count(_EURO),
            markup=sum(map(text.count, _MARKS)),
        )

    def _count_letters(self, articles: list[bytes]) -> None:
        """Counts letters at the beginnings of documents, of scripts that have capitals."""
        for article in articles:
            beginning = article[:_BEGINNING].decode("utf-8", "ignore")
            capitals = sum(map(str.isupper, beginning))
            self._sums.update(capitals=capitals, letters=capitals + sum(map(str.islower, beginning)))

    def _count_lines(
        self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]
    ) -> None:
        """Counts lines that end within a sentence, by their characters."""
        if not len(starts):
            return
        before = np.concatenate([[0], np.cumsum((data & _CONTINUING_BITS) != _CONTINUING)])
        lengths = before[ends] - before[starts]
        last = data[ends - 1]
        is_within = ~np.isin(last, _ENDS) & (lengths < _LENGTHS)
        for line in np.flatnonzero(is_within & (last >= _CONTINUING)).tolist():
            character = data[ends[line] - min(4, ends[line]) : ends[line]].tobytes().decode("utf-8", "ignore")[-1:]
            is_within[line] = not character or unicodedata.category(character)[0] != "P"
        self._unended += np.bincount(lengths[is_within], minlength=_LENGTHS)
        self._longest_characters = max(self._longest_characters, int(lengths.max()))

    def _forget(self) -> None:
        """Forgets lines that were there once, where there are too many."""
        if len(self._lines) > _MOST_LINES:
            self._lines = collections.Counter({line: count for line, count in self._lines.items() if count > 1})
            if len(self._lines) > _MOST_LINES:
                self._lines = collections.Counter(dict(self._lines.most_common(_MOST_LINES // 2)))

    def statistics(self, *, empty: int, size: int) -> TextStatistics:
        """What was counted so far, of `size` bytes with so many empty documents."""
        repeated = [(count, line) for line, count in self._lines.items() if count > 1]
        repeated.sort(key=lambda entry: (-entry[0], entry[1]))
        sums = self._sums
        return TextStatistics(
            documents=sums["documents"],
            empty_documents=empty,
            lines=sums["lines"],
            characters=sums["characters"],
            words=sums["words"],
            size=size,
            document_lines=self._document_lines.copy(),
            longest_line=self._longest_line,
            repeated_lines=tuple((count, line.decode("utf-8", "ignore")) for count, line in repeated[:_REPEATED]),
            longest_characters=self._longest_characters,
            unended=self._unended.copy(),
            bytes=self._bytes.copy(),
            **{name: sums[name] for name in _SUMS},
        )


def add_statistics(parts: list[TextStatistics]) -> TextStatistics:
    """The statistics of several files together; of lines that are repeated, those are counted that each file names."""
    lines: collections.Counter[str] = collections.Counter()
    for part in parts:
        for count, line in part.repeated_lines:
            lines[line] += count
    repeated = sorted(((count, line) for line, count in lines.items()), key=lambda entry: (-entry[0], entry[1]))
    return TextStatistics(
        documents=sum(part.documents for part in parts),
        empty_documents=sum(part.empty_documents for part in parts),
        lines=sum(part.lines for part in parts),
        characters=sum(part.characters for part in parts),
        words=sum(part.words for part in parts),
        size=sum(part.size for part in parts),
        document_lines=np.sum([np.zeros(_SIZES, np.int64), *(part.document_lines for part in parts)], axis=0),
        longest_line=max((part.longest_line for part in parts), default=0),
        repeated_lines=tuple(repeated[:_REPEATED]),
        longest_characters=max((part.longest_characters for part in parts), default=0),
        unended=np.sum([np.zeros(_LENGTHS, np.int64), *(part.unended for part in parts)], axis=0),
        bytes=np.sum([np.zeros(256, np.int64), *(part.bytes for part in parts)], axis=0),
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMS},
    )
