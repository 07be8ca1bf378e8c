"""Measures how well a vocabulary suits a text, compared with others: the figures of report.json and report.md.

A word is one of BERT's basic tokenizer, for every vocabulary, so that different kinds can be compared. Words are
counted as in the text; each vocabulary's tokenizer lower-cases them or not.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import files
from maskmill.tokenization import tokenizer_json
from maskmill.tokenization.text_blocks import TextBlock, read_blocks
from maskmill.tokenization.tokenized_text import TextTokenizer
from maskmill.tokenization.vocabulary import Vocabulary, load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer
from maskmill.vocabularies.counting import UNICODE, WordCounter, WordRules
from maskmill.vocabularies.learning import WordCounts
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.word_tables import WordTable

# Every vocabulary is measured on the same text, up to so many bytes: enough for all the digits that are shown.
MOST_BYTES = 2 << 20
OURS = "this vocabulary"

_WORDS_AT_ONCE = 1 << 16
_DIGITS = 6
_COLUMNS = {
    "pieces": ("pieces", "{:,}"),
    "pieces_per_word": ("pieces a word", "{:.4f}"),
    "bytes_per_token": ("bytes a token", "{:.3f}"),
    "whole_words": ("whole words", "{:.3%}"),
    "unknown_words": ("words with [UNK]", "{:.3%}"),
    "coverage": ("coverage", "{:.3%}"),
}
_LEGEND = """\
A word is one of BERT's basic tokenizer, for every vocabulary. Pieces a word and bytes a token are those of the running
text, in which [UNK] is a piece, too. Whole words: the share of all words that are one piece. Words with [UNK]: the
share that has no pieces in the vocabulary. Coverage: the share of the words' characters that is in words without [UNK].
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Text:
    """The text that vocabularies are measured on.

    Attributes:
      blocks: whole lines.
      is_all: whether this is the whole text.
      bytes: without the ends of lines.
      lines: their number.
      words: distinct words, with their counts; without words of more than 100 characters.
      all_words: the number of words, long ones included.
    """

    blocks: Sequence[TextBlock]
    is_all: bool
    bytes: int
    lines: int
    words: WordCounts
    all_words: int


def measure(
    path: str, options: VocabularyOptions, compare: Sequence[str], texts: Sequence[str], *, kind: str
) -> dict[str, Any]:
    """Measure a vocabulary, and others for comparison, on the first MOST_BYTES of some text.

    Memory: this text, its distinct words, and one tokenizer at a time.

    Args:
      path: the vocabulary: vocab.txt or, with bpe, tokenizer.json.
      options: the options that it was learnt with.
      compare: the files of the others. For a vocab.txt, text is lower-cased if the tokenizer.json beside it says so;
        without one, if no piece has a capital letter.
      texts: paths of text shards.
      kind: of the shards: "eval" for held-out text, "train" for text that the vocabulary was learnt from.

    Returns:
      text: kind and number of files; the bytes, lines and words that were measured; `all`, whether they are the whole
        text. vocabularies: for each its name, pieces, do_lower_case and tokens; pieces_per_word and bytes_per_token of
        the running text; the share of words that are one piece (whole_words) and of those with [UNK] (unknown_words),
        each word with only a space before it; and the share of their characters that is in words without [UNK]
        (coverage).

    Raises:
      UnusableInputError: a file is missing, or is not a vocabulary; or a text is not UTF-8.
    """
    text = _read(texts)
    return {
        "text": {
            "kind": kind,
            "files": len(texts),
            "bytes": text.bytes,
            "lines": text.lines,
            "words": text.all_words,
            "all": text.is_all,
        },
        "vocabularies": [
            _figures(OURS, path, options.decided.do_lower_case, text),
            *(_figures(other, other, None, text) for other in compare),
        ],
    }


def as_table(report: Mapping[str, Any]) -> str:
    """Return the result of `measure` as a Markdown page."""
    text = report["text"]
    source = "held-out text" if text["kind"] == "eval" else "training text"
    measured = (
        f"Measured on {text['words']:,} words of {source} ({text['lines']:,} lines, {text['bytes']:,} bytes"
        f"{'' if text['all'] else ', the first part of it'})."
    )
    if text["kind"] != "eval":
        measured += (
            " No text is held out, so the figures are better than those of unseen text would be; extract holds "
            "articles out with --eval_fraction or --num_eval_articles."
        )
    names = [one["name"] if one["name"] == OURS else f"`{one['name']}`" for one in report["vocabularies"]]
    rows = [["vocabulary", *(title for title, _ in _COLUMNS.values())], ["---", *["---:"] * len(_COLUMNS)]]
    for name, one in zip(names, report["vocabularies"], strict=True):
        rows.append([name, *(form.format(one[column]) for column, (_, form) in _COLUMNS.items())])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"# How well the vocabulary suits the text\n\n{measured}\n\n{table}\n\n{_LEGEND}"


def _read(texts: Sequence[str]) -> _Text:
    """Read the first MOST_BYTES of text, up to the end of a block, and count its words."""
    blocks: list[TextBlock] = []
    left, is_all = MOST_BYTES, True
    for block in (block for text in texts for block in read_blocks(text)):
        if left <= 0:
            is_all = False
            break
        blocks.append(block)
        left -= len(block.content)
    newlines = sum(block.content.count(b"\n") for block in blocks)
    words, all_words = _count_words(blocks)
    return _Text(
        blocks=blocks,
        is_all=is_all,
        bytes=sum(len(block.content) for block in blocks) - newlines,
        lines=newlines + sum(not block.content.endswith(b"\n") for block in blocks),
        words=words,
        all_words=all_words,
    )


def _count_words(blocks: Sequence[TextBlock]) -> tuple[WordCounts, int]:
    """Return the words that BERT's basic tokenizer finds without lower-casing, and the number of all words."""
    counter = WordCounter(WordRules(kind="wordpiece", do_lower_case=False, add_prefix_space=False))
    # There is only one table: it has room for more than MOST_BYTES.
    tables = [table.word_counts() for table in counter.full_tables(blocks)]
    return tables[0] if tables else WordTable().word_counts(), counter.counts["words"]


def _load(path: str, do_lower_case: bool | None) -> tuple[Vocabulary, TextTokenizer, bool | None]:
    """Return a vocabulary, its tokenizer, and whether it lower-cases text (None: its tokenizer.json decides).

    Raises:
      UnusableInputError: there is no such vocabulary.
    """
    if path.endswith(".json"):
        # The import takes a moment, so it is made only when needed.
        from maskmill.tokenization.tokenizers import load_tokenizer

        loaded = load_tokenizer(path, files.read_bytes(path))
        return loaded.vocabulary, loaded.tokenizer(), None
    vocabulary = load_vocabulary(path)
    lower = _lower_cases(path, vocabulary) if do_lower_case is None else do_lower_case
    return vocabulary, Tokenizer(vocabulary, do_lower_case=lower, unicode=UNICODE), lower


def _lower_cases(path: str, vocabulary: Vocabulary) -> bool:
    """Return whether text is lower-cased for a vocab.txt: as a tokenizer.json beside it says; else if it has no
    capitals.
    """
    beside = files.join(files.parent(path), "tokenizer.json")
    if files.exists(beside):
        ids = dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True))
        lower_cased = tokenizer_json.lower_cases(files.read_bytes(beside), ids)
        if lower_cased is not None:
            return lower_cased
    return vocabulary.capital_share == 0


def _figures(name: str, path: str, do_lower_case: bool | None, text: _Text) -> dict[str, Any]:
    """Return the report's figures of a vocabulary, under this name."""
    vocabulary, tokenizer, do_lower_case = _load(path, do_lower_case)
    tokens = sum(len(tokenizer.tokenize_bytes(bytes(block.content), block.path).ids) for block in text.blocks)
    words = whole = unknown = characters = covered = 0
    for some, counts in _batches(text.words):
        pieces, is_unknown = _pieces_of(tokenizer, some, vocabulary.unknown_id)
        lengths = np.array([len(word.decode()) for word in some], np.int64)
        words += int(counts.sum())
        whole += int(counts[(pieces == 1) & ~is_unknown].sum())
        unknown += int(counts[is_unknown].sum())
        characters += int((counts * lengths).sum())
        covered += int((counts * lengths)[~is_unknown].sum())
    return {
        "name": name,
        "pieces": len(vocabulary.pieces),
        "do_lower_case": do_lower_case,
        "tokens": tokens,
        "pieces_per_word": _ratio(tokens, text.all_words),
        "bytes_per_token": _ratio(text.bytes, tokens),
        "whole_words": _ratio(whole, words),
        "unknown_words": _ratio(unknown, words),
        "coverage": _ratio(covered, characters),
    }


def _ratio(part: int, whole: int) -> float:
    return round(part / max(1, whole), _DIGITS)


def _batches(words: WordCounts) -> Iterator[tuple[list[bytes], npt.NDArray[np.int64]]]:
    """Yield words with their counts, in batches of _WORDS_AT_ONCE."""
    for first in range(0, len(words), _WORDS_AT_ONCE):
        ends = words.ends[first : first + _WORDS_AT_ONCE].tolist()
        starts = [int(words.ends[first - 1]) if first else 0, *ends[:-1]]
        some = [words.text[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]
        yield some, words.counts[first : first + _WORDS_AT_ONCE]


def _pieces_of(
    tokenizer: TextTokenizer, words: Sequence[bytes], unknown_id: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the number of pieces of each word, int64[words], and whether [UNK] is among them, bool[words].

    There must be at least one word.
    """
    # Each word is a document, so that only this space is before it.
    tokenized = tokenizer.tokenize_bytes(b"".join(b" " + word + b"\n\n" for word in words), "words")
    ends = tokenized.segment_ends
    if len(ends) == len(words):
        starts = np.concatenate([[0], ends[:-1]])
        unknown = np.concatenate([[0], np.cumsum(tokenized.ids == (-1 if unknown_id is None else unknown_id))])
        return ends - starts, unknown[ends] > unknown[starts]
    if len(words) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    # A line without pieces is not a segment: find the words without pieces by bisection.
    middle = len(words) // 2
    first, second = (_pieces_of(tokenizer, part, unknown_id) for part in (words[:middle], words[middle:]))
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
