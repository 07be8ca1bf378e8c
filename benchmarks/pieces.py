"""How vocabularies cut text into pieces, all read by `tokenizers`, so that none is judged by its own program."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

UNKNOWN = ("[UNK]", "<unk>")
TITLES = ("vocabulary", "size", "pieces a word", "bytes a piece", "[UNK] a word")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cut:
    """A text that a vocabulary cut. size: pieces of the vocabulary. bytes, words, pieces, unknown: of the text."""

    name: str
    size: int
    bytes: int
    words: int
    pieces: int
    unknown: int

    def row(self) -> str:
        """A row of a Markdown table with the columns TITLES."""
        shares = f"{self.pieces / self.words:.4f} | {self.bytes / self.pieces:.3f} | {self.unknown / self.words:.3%}"
        return f"| {self.name} | {self.size:,} | {shares} |"


def load(path: Path, *, lower_case: bool = True) -> Any:
    """The tokenizer of a tokenizer.json, or of BERT's kind with a vocab.txt."""
    if path.suffix == ".txt":
        return BertWordPieceTokenizer(str(path), lowercase=lower_case)
    return Tokenizer.from_file(str(path))


def held_out_lines(text: Path) -> list[str]:
    """The lines of the held-out articles in a folder that `maskmill extract` wrote."""
    return [line for line in (text / "eval.txt").read_text(encoding="utf-8").split("\n") if line]


def cut(name: str, tokenizer: Any, lines: Sequence[str]) -> Cut:
    """Cuts lines. A word is one of BERT's basic tokenizer, whatever the tokenizer."""
    normalizer, splitter = BertNormalizer(lowercase=False), BertPreTokenizer()
    encoded = [tokenizer.encode(line, add_special_tokens=False) for line in lines]
    return Cut(
        name=name,
        size=tokenizer.get_vocab_size(),
        bytes=sum(len(line.encode()) for line in lines),
        words=sum(len(splitter.pre_tokenize_str(normalizer.normalize_str(line))) for line in lines),
        pieces=sum(len(line.ids) for line in encoded),
        unknown=sum(piece in UNKNOWN for line in encoded for piece in line.tokens),
    )


def table(cuts: Sequence[Cut]) -> str:
    """A Markdown table of vocabularies."""
    return "\n".join([f"| {' | '.join(TITLES)} |", "|---" * len(TITLES) + "|", *(one.row() for one in cuts)])
