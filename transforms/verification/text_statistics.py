"""What the text of a file looks like: counted article by article, in bounded memory."""

import collections

import numpy as np
import numpy.typing as npt

from transforms.verification.pieces import TextStatistics

LONG_LINE = 10  # words; shorter lines are often the same: headings, names
_SHOWN = 200  # bytes of a repeated line that are kept
_MOST_LINES = 200_000  # distinct lines that are counted at a time
_REPEATED = 64  # most repeated lines of a file
_SPACE, _NEWLINE = 32, 10
_SIZES = 64  # of document_lines

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
        sizes = np.array([sum(map(bool, article.split(b"\n"))) for article in articles], np.int64)
        sizes = sizes[sizes > 0]
        self._document_lines += np.bincount(np.log2(sizes).astype(np.int64), minlength=_SIZES)
        self._longest_line = max(self._longest_line, int((ends - starts).max(initial=0)))
        self._sums.update(documents=len(sizes), lines=int(is_line.sum()), characters=characters, words=int(words.sum()))

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
    )
