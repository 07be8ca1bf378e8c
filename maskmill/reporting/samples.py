"""How the data looks: the beginning of some texts and some examples."""

import collections
import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.inspection.decoding import DecodedExample
from maskmill.inspection.opened_examples import OpenedExamples, open_examples
from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage
from maskmill.reporting.measured import RowFacts
from maskmill.storage import files

_MOST_BYTES = 1 << 20
_MOST_LINES = 8
_MOST_CHARACTERS = 400
_TEXTS = 2
_COUNTED_EXAMPLES = 64
_MOST_PIECES = 10  # of a word that are told apart
_EXAMPLES = {"train": 2, "eval": 1}


class SampleText(NamedTuple):
    """The first document of a text shard: the shard's path, its first sentences, and how many stand behind them; None:
    it is not known.
    """

    file: str
    lines: tuple[str, ...]
    more: int | None


@dataclasses.dataclass(frozen=True)
class Samples:
    """How the data looks at each stage.

    Attributes:
      texts: the beginning of some documents.
      examples: some rows.
      word_pieces: how many words of some rows have so many pieces: (pieces, words); empty if it is not known.
      unread: why some of it cannot be shown, a sentence each: files that are missing or damaged.
    """

    texts: tuple[SampleText, ...] = ()
    examples: tuple[DecodedExample, ...] = ()
    word_pieces: tuple[tuple[int, int], ...] = ()
    unread: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class FrequentPiece:
    """A piece of the vocabulary, and how often it occurs."""

    id: int
    text: str
    count: int


def frequent_pieces(rows: Mapping[str, RowFacts], directory: str) -> Iterator[FrequentPiece]:
    """The most frequent pieces of the first split, by their names in the vocabulary of a directory's examples."""
    for split, facts in list(rows.items())[:1]:
        with contextlib.closing(_opened(directory, split)) as opened:
            words = opened.decoder.words
        for id, count in facts.frequent:
            yield FrequentPiece(id, words.piece(id), count)


def _opened(directory: str, split: str) -> OpenedExamples:
    return open_examples(directory, split="eval" if split == "eval" else "train")


@contextlib.contextmanager
def noting(unread: list[str]) -> Iterator[None]:
    """Notes why something cannot be read: what is damaged is just what a page has to tell of."""
    try:
        yield
    except (UnusableInputError, RunFailedError) as error:
        unread.append(str(error))


def samples_of(
    stages: Sequence[MadeStage],
    path: str,
    unread: Sequence[str],
) -> Samples:
    """How the data of stages looks, as far as it can be read.

    Args:
      stages: of a build.
      path: the build's directory, or that of the one stage.
      unread: why something else cannot be read.
    """
    texts: list[SampleText] = []
    examples: list[DecodedExample] = []
    word_pieces: list[tuple[int, int]] = []
    texts_of, examples_of = ([stage for stage in stages if stage.name == name] for name in ("extract", "examples"))

    def take_texts(reasons: list[str]) -> None:
        for stage in texts_of:
            with noting(reasons):
                texts.extend(_texts(stage))

    def take_examples(reasons: list[str]) -> None:
        for stage in examples_of:
            with contextlib.ExitStack() as stack:

                @functools.cache
                def opened(split: str, stage: MadeStage = stage, stack: contextlib.ExitStack = stack) -> OpenedExamples:
                    return stack.enter_context(contextlib.closing(_opened(stage.directory, split)))

                with noting(reasons):
                    examples.extend(_examples(stage, opened))
                with noting(reasons):
                    word_pieces.extend(_word_pieces(stage, opened))

    takes = (take_texts, take_examples)
    reasons: list[list[str]] = [[] for _ in takes]
    files.each(path, lambda take, found: take(found), takes, reasons)  # each reads other files, and waits for a store
    found = dict.fromkeys(itertools.chain(unread, *reasons))
    return Samples(tuple(texts), tuple(examples), tuple(word_pieces), tuple(found))


def _first(lines: Sequence[str]) -> tuple[str, ...]:
    """The first sentences, none too long."""
    return tuple(shown.beginning(line, _MOST_CHARACTERS) for line in lines[:_MOST_LINES])


def _texts(stage: MadeStage) -> Iterator[SampleText]:
    """The first documents of the first shard, and of the first of the eval set."""
    first: dict[str, str] = {}
    for shard in stage.shards:
        if shard.get("documents", 1):
            first.setdefault(str(shard.get("kind")), str(shard["name"]))
    for name in list(first.values())[:_TEXTS]:
        with contextlib.suppress(MissingFileError):
            yield _first_document(files.join(stage.directory, name))


def _first_document(path: str) -> SampleText:
    content = files.read_range(path, 0, _MOST_BYTES)
    document, end, _ = content.lstrip(b"\n").partition(b"\n\n")
    lines = document.decode("utf-8", "replace").split("\n")
    return SampleText(path, _first(lines), max(0, len(lines) - _MOST_LINES) if end else None)


def _examples(stage: MadeStage, opened_of: Callable[[str], OpenedExamples]) -> Iterator[DecodedExample]:
    """The first and the middle row of training, and the first of eval."""
    for split, most in _EXAMPLES.items():
        if stage.counted(split, "examples"):
            opened = opened_of(split)
            for sample in (0, opened.count // 2)[:most]:
                yield opened.decoded(sample)


def _word_pieces(stage: MadeStage, opened_of: Callable[[str], OpenedExamples]) -> list[tuple[int, int]]:
    """How many words of the first training rows have so many pieces."""
    if not stage.counted("train", "examples"):
        return []
    opened = opened_of("train")
    if opened.vocabulary is None:
        return []
    examples = list(itertools.islice(opened.all(), _COUNTED_EXAMPLES))
    sizes: list[int] = []
    for example in examples:
        in_word = False
        for piece in example.pieces:
            if piece.role == "special":
                in_word = False
            elif piece.goes_on and in_word:
                sizes[-1] += 1
            else:
                sizes.append(1)
                in_word = True
    counts = collections.Counter(min(size, _MOST_PIECES) for size in sizes)
    return [(size, counts[size]) for size in range(1, max(counts, default=0) + 1)]
