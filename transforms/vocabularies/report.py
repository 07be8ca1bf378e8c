"""How well a vocabulary suits a text, and how well others do: the figures of report.json and report.md.

A word is one of BERT's basic tokenizer, whatever the vocabulary, so that vocabularies of different kinds compare. Words
are taken as they stand in the text; each vocabulary lower-cases them or not.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.storage import files
from transforms.tokenization import unicode_tables
from transforms.tokenization.kernels import wordpiece as wordpiece_kernels
from transforms.tokenization.text_blocks import PaddedText, TextBlock, not_utf8, read_blocks
from transforms.tokenization.tokenized_text import TextTokenizer
from transforms.tokenization.tokenizers import load_tokenizer
from transforms.tokenization.vocabulary import Vocabulary, load_vocabulary
from transforms.tokenization.wordpiece import Tokenizer
from transforms.vocabularies.counting import UNICODE
from transforms.vocabularies.kernels import word_counts as kernels
from transforms.vocabularies.options import VocabularyOptions
from transforms.vocabularies.word_tables import WordTable

# So much text tells all figures to a tenth of a per cent. Every vocabulary is measured on the same text.
MOST_BYTES = 16 << 20
_MOST_WORDS = 1 << 17  # distinct words that are held in memory
OURS = "this vocabulary"


@dataclasses.dataclass(kw_only=True)
class _Measured:
    """A vocabulary, and what was found so far.

    Attributes:
      name: what the report calls it.
      vocabulary, tokenizer: its pieces, and what splits text into them.
      do_lower_case: whether a vocab.txt is used with lower-cased text; None for a tokenizer.json, which says it itself.
      tokens: pieces of the text.
      whole: words that are one piece, other than [UNK], when a space and nothing else is before them.
      unknown: words with [UNK].
      covered: characters of the other words.
    """

    name: str
    vocabulary: Vocabulary
    tokenizer: TextTokenizer
    do_lower_case: bool | None
    tokens: int = 0
    whole: int = 0
    unknown: int = 0
    covered: int = 0

    def add_text(self, block: TextBlock) -> None:
        """Splits a block of text."""
        self.tokens += len(self.tokenizer.tokenize_bytes(bytes(block.content), block.path).ids)

    def add_words(self, words: Sequence[bytes], counts: npt.NDArray[np.int64]) -> None:
        """Splits distinct words, each of which occurs so many times."""
        pieces, unknown = _pieces_of(self.tokenizer, words, self.vocabulary.unknown_id)
        self.whole += int(counts[(pieces == 1) & ~unknown].sum())
        self.unknown += int(counts[unknown].sum())
        self.covered += int((counts * _lengths(words))[~unknown].sum())

    def figures(self, size: int, words: int, characters: int) -> dict[str, Any]:
        """The entry of the report, for text of so many bytes and words, and so many characters in words."""
        return {
            "name": self.name,
            "pieces": len(self.vocabulary.pieces),
            "do_lower_case": self.do_lower_case,
            "tokens": self.tokens,
            "pieces_per_word": _ratio(self.tokens, words),
            "bytes_per_token": _ratio(size, self.tokens),
            "whole_words": _ratio(self.whole, words),
            "unknown_words": _ratio(self.unknown, words),
            "coverage": _ratio(self.covered, characters),
        }


def _ratio(part: int, whole: int) -> float:
    return round(part / max(1, whole), 6)


def measure(
    path: str, options: VocabularyOptions, compare: Sequence[str], texts: Sequence[str], *, kind: str
) -> dict[str, Any]:
    """Measures a vocabulary, and others beside it, on the first MOST_BYTES of some text.

    Memory: a block of text, up to _MOST_WORDS words, and the tokenizers.

    Args:
      path: the vocabulary: vocab.txt or, with bpe, tokenizer.json.
      options: the options that it was learnt with.
      compare: the files of the others. A vocab.txt whose pieces have no capital letter is used with lower-cased
        text, as BERT's own are.
      texts: paths of text shards.
      kind: of the shards: "eval" for held-out text, "train" for text that the vocabulary was learnt from.

    Returns:
      text: kind and files as given; bytes, lines and words that were measured; `all`, whether that is the whole text.
      vocabularies: for each name, pieces, do_lower_case, tokens; pieces_per_word and bytes_per_token of the running
      text; and of its words the share that is one piece (whole_words) or has [UNK] (unknown_words), and the share of
      their characters that is in words without [UNK] (coverage).

    Raises:
      UnusableInputError: a file is missing, or is no vocabulary; or a text is not UTF-8.
    """
    ours = _load(OURS, path, options.decided.do_lower_case)
    measured = [ours, *(_load(other, other, None) for other in compare)]
    words = _Words()
    size = lines = characters = 0
    for block in _first_blocks(texts):
        size += len(block.content) - block.content.count(b"\n")
        lines += block.content.count(b"\n") + (not block.content.endswith(b"\n"))
        for one in measured:
            one.add_text(block)
        words.add(block)
        if len(words) > _MOST_WORDS:
            characters += _add_words(words, measured)
    characters += _add_words(words, measured)
    return {
        "text": {
            "kind": kind,
            "files": len(texts),
            "bytes": size,
            "lines": lines,
            "words": words.total,
            "all": size + lines >= sum(files.size(text) for text in texts),
        },
        "vocabularies": [one.figures(size, words.total, characters) for one in measured],
    }


def as_table(report: dict[str, Any]) -> str:
    """What `measure` gave, as a Markdown page."""
    text = report["text"]
    part = "" if text["all"] else "the first part of "
    if text["kind"] == "eval":
        source = f"{part}the held-out text"
    else:
        source = (
            f"{part}a training shard, because no text is held out: unseen text is split into more pieces (extract "
            "holds articles out with --eval_fraction or --num_eval_articles)"
        )
    rows = [_TITLES, ["---"] + ["---:"] * (len(_TITLES) - 1)]
    rows += [
        [
            f"`{one['name']}`" if one["name"] != OURS else OURS,
            f"{one['pieces']:,}",
            f"{one['pieces_per_word']:.4f}",
            f"{one['bytes_per_token']:.3f}",
            *(f"{100 * one[share]:.3f} %" for share in ("whole_words", "unknown_words", "coverage")),
        ]
        for one in report["vocabularies"]
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"# How well the vocabulary suits the text\n\nMeasured on {text['bytes']:,} bytes, {text['lines']:,} lines and "
        f"{text['words']:,} words: {source}.\n\n{table}\n\n{_LEGEND}"
    )


_TITLES = ["vocabulary", "pieces", "pieces a word", "bytes a token", "whole words", "words with [UNK]", "coverage"]
_LEGEND = """\
A word is one of BERT's basic tokenizer, for every vocabulary. Pieces a word and bytes a token: of the running text.
Whole words: the share of all words that are one piece each. Words with [UNK]: the share that has no pieces in the
vocabulary. Coverage: the share of the words' characters that is in words without [UNK].
"""


class _Words:
    """Words of text, with their counts, and how many there are in all."""

    def __init__(self) -> None:
        table = unicode_tables.load(UNICODE, False)
        scratch = np.empty(wordpiece_kernels.SCRATCH, np.uint8)
        self._arrays = kernels.CodePointArrays(table.pages, table.blocks, table.pool, scratch, False)
        self._text = PaddedText()
        self._table = WordTable()

    def __len__(self) -> int:
        """The number of distinct words since the last `take`."""
        return len(self._table)

    @property
    def total(self) -> int:
        """How many words all text had."""
        return int(self._table.state[kernels.READ])

    def add(self, block: TextBlock) -> None:
        """Counts the words of a block.

        Raises:
          UnusableInputError: it is not UTF-8.
        """
        size, at = self._text.load(block.content), 0
        while at < size:
            kernels.count_words(self._text.text, size, at, self._arrays, self._table.arrays, self._table.state)
            at = int(self._table.state[kernels.AT])
            if (bad := int(self._table.state[kernels.BAD_BYTE])) >= 0:
                raise not_utf8(block, bad)
            if at < size:
                self._table.grow()

    def take(self) -> tuple[list[bytes], npt.NDArray[np.int64]]:
        """Takes the words and their counts out."""
        text, ends = self._table.arrays.text.tobytes(), self._table.arrays.ends[: len(self) + 1].tolist()
        taken = [text[start:end] for start, end in itertools.pairwise(ends)], self._table.counts.copy()
        self._table.clear()
        return taken


def _add_words(words: _Words, measured: Sequence[_Measured]) -> int:
    """Splits the words with every vocabulary; returns how many characters all their occurrences have."""
    distinct, counts = words.take()
    for one in measured:
        one.add_words(distinct, counts)
    return int((counts * _lengths(distinct)).sum())


def _lengths(words: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The characters of each word."""
    return np.array([len(word.decode()) for word in words], np.int64)


def _first_blocks(texts: Sequence[str]) -> Iterator[TextBlock]:
    """The blocks of texts, up to the one with which they have MOST_BYTES."""
    left = MOST_BYTES
    for text in texts:
        for block in read_blocks(text):
            if left <= 0:
                return
            yield block
            left -= len(block.content)


def _load(name: str, path: str, do_lower_case: bool | None) -> _Measured:
    """A vocabulary that is to be measured.

    Raises:
      UnusableInputError: there is none.
    """
    if path.endswith(".json"):
        loaded = load_tokenizer(path, files.read_bytes(path))
        return _Measured(name=name, vocabulary=loaded.vocabulary, tokenizer=loaded.tokenizer(), do_lower_case=None)
    vocabulary = load_vocabulary(path)
    lower = vocabulary.capital_share == 0 if do_lower_case is None else do_lower_case
    tokenizer = Tokenizer(vocabulary, do_lower_case=lower, unicode=UNICODE)
    return _Measured(name=name, vocabulary=vocabulary, tokenizer=tokenizer, do_lower_case=lower)


def _pieces_of(
    tokenizer: TextTokenizer, words: Sequence[bytes], unknown_id: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """How many pieces each word has, int64[words], and whether [UNK] is among them, bool[words].

    A line without pieces is no segment, so words that have none are found by halves.
    """
    if not words:
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    text = tokenizer.tokenize_bytes(b"".join(b" " + word + b"\n" for word in words), "words")
    ends = text.segment_ends
    if len(ends) == len(words):
        is_unknown = np.concatenate([[0], np.cumsum(text.ids == (-1 if unknown_id is None else unknown_id))])
        starts = np.concatenate([[0], ends[:-1]])
        return ends - starts, is_unknown[ends] > is_unknown[starts]
    if len(words) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    middle = len(words) // 2
    halves = [_pieces_of(tokenizer, part, unknown_id) for part in (words[:middle], words[middle:])]
    return np.concatenate([pieces for pieces, _ in halves]), np.concatenate([unknown for _, unknown in halves])
