"""What each objective makes of a text, in plain Python on lists of pieces, as an oracle for the tests of the kernels.

Documents are lists of sentences, which are lists of pieces. CLS and SEP stand for [CLS] and [SEP]. Written from the
papers and the peers' files that are named at each function; random numbers are Python's own.
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence

CLS, SEP = -1, -2

Document = Sequence[Sequence[int]]


@dataclasses.dataclass(frozen=True)
class Pair:
    """A pair as the model reads it. chosen: whether a coin decided its label, not the text."""

    pieces: list[int]
    segments: list[int]
    label: int
    chosen: bool


def full_sentences(documents: Sequence[Document], length: int, cross_documents: bool) -> list[list[int]]:
    """RoBERTa's FULL-SENTENCES (Liu et al. 2019, section 4.2), or DOC-SENTENCES where documents are not crossed.

    A sentence that no sequence holds is cut, as if it were several.
    """
    sequences: list[list[int]] = []
    open_sequence: list[int] = []
    for document in documents:
        if open_sequence and not cross_documents:
            sequences.append([*open_sequence, SEP])
            open_sequence = []
        separator = [SEP] if open_sequence else []
        for sentence in _cut_sentences(document, length - 2):
            if len(open_sequence) + len(separator) + len(sentence) + 1 > length:
                sequences.append([*open_sequence, SEP])
                open_sequence = []
            open_sequence += [*separator, *sentence] if open_sequence else [CLS, *sentence]
            separator = []
    return [*sequences, [*open_sequence, SEP]] if open_sequence else sequences


def _cut_sentences(document: Document, most: int) -> Iterator[Sequence[int]]:
    for sentence in document:
        for start in range(0, len(sentence), most):
            yield sentence[start : start + most]


def recipe_blocks(documents: Sequence[Document], length: int, batch: int | None) -> list[list[int]]:
    """What group_texts of Hugging Face's run_mlm.py (transformers 4.50 to 5) gives for a data set of a row a document.

    batch: the rows that it gets at a time; None: all of them, and the last block is kept, unless it is only a [SEP].
    """
    blocks = []
    for first in range(0, len(documents), batch or len(documents)):
        rows = documents[first : first + (batch or len(documents))]
        joined = [piece for row in rows for piece in (CLS, *_joined(row), SEP)]
        cut = [joined[start : start + length] for start in range(0, len(joined), length)]
        blocks += [block for block in cut if len(block) == length or (batch is None and block != [SEP])]
    return blocks


def filled(documents: Sequence[Document], length: int, cross_documents: bool) -> list[list[int]]:
    """Sequences that are filled to the last piece: blocks of all documents together, or of each."""
    if cross_documents:
        return blocks(documents, length, True, None)
    return [sequence for document in documents for sequence in blocks([document], length, True, None)]


def blocks(documents: Sequence[Document], length: int, separated: bool, batch: int | None) -> list[list[int]]:
    """Blocks that begin with [CLS] and end with [SEP], and have separators only between two documents.

    batch: after how many documents what does not fill a block is dropped; None: never.
    """
    made = []
    for first in range(0, len(documents), batch or len(documents)):
        open_block: list[int] = []
        full_blocks: list[list[int]] = []
        for document in documents[first : first + (batch or len(documents))]:
            if separated and open_block:
                if len(open_block) + 3 > length:  # [SEP], a piece, and the [SEP] of the end
                    full_blocks.append([*open_block, SEP])
                    open_block = []
                else:
                    open_block.append(SEP)
            for piece in _joined(document):
                open_block = [*(open_block or [CLS]), piece]
                if len(open_block) + 1 == length:
                    full_blocks.append([*open_block, SEP])
                    open_block = []
        made += full_blocks
        if open_block and batch is None:
            made.append([*open_block, SEP])
    return made


def _joined(document: Document) -> list[int]:
    return [piece for sentence in document for piece in sentence]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairRules:
    """How pairs are drawn.

    kind: "reference": create_pretraining_data.py of google-research/bert; "strict": a pair is random only if its second
    part is from another document; "ordered": create_pretraining_data.py of google-research/albert without
    --random_next_sentence, but a segment that is alone is split. continuing: the pieces that go on a word.
    """

    kind: str
    length: int
    short_seq_prob: float
    dupe_factor: int
    seed: int
    continuing: frozenset[int] = frozenset()


def pairs(documents: Sequence[Document], rules: PairRules) -> list[Pair]:
    """The pairs of all passes, in the order in which they are made."""
    rng = random.Random(rules.seed)
    shuffled = list(documents)
    rng.shuffle(shuffled)
    made = []
    for _ in range(rules.dupe_factor):
        for index in range(len(shuffled)):
            made += _pairs_of_document(shuffled, index, rules, rng)
    return made


def _pairs_of_document(
    documents: Sequence[Document], index: int, rules: PairRules, rng: random.Random
) -> Iterator[Pair]:
    document, most = documents[index], rules.length - 3
    target = rng.randint(2, most) if rng.random() < rules.short_seq_prob else most
    start = 0
    while start < len(document):
        end = start + 1
        while end < len(document) and sum(map(len, document[start:end])) < target:
            end += 1
        chunk = document[start:end]
        start = end
        lone = len(chunk) == 1
        if lone and (rules.kind == "ordered" or (rules.kind == "strict" and len(documents) == 1)):
            if len(chunk[0]) == 1:
                continue
            point = _start_of_word(chunk[0], rng.randint(1, len(chunk[0]) - 1), rules.continuing)
            chunk = [chunk[0][:point], chunk[0][point:]]
            a_end = 1
        else:
            a_end = 1 if lone else rng.randint(1, len(chunk) - 1)
        a, b, label, chosen = _joined(chunk[:a_end]), _joined(chunk[a_end:]), False, rules.kind == "ordered"
        if rules.kind == "ordered":
            label = rng.random() < 0.5
            if label:
                a, b = b, a
        else:
            others = [other for other in range(len(documents)) if other != index]
            chosen = not lone and (rules.kind == "reference" or bool(others))
            if not lone:
                label = rng.random() < 0.5
            elif rules.kind == "reference" or others:
                label = True
            if rules.kind == "strict" and not others:
                label = False
            if label:
                other = _another(documents, index, rng) if rules.kind == "reference" else rng.choice(others)
                b = _part_of(documents[other], target - len(a), rng)
                start -= len(chunk) - a_end
        _truncate(a, b, most, rng)
        segments = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        yield Pair([CLS, *a, SEP, *b, SEP], segments, int(label), chosen)


def _start_of_word(sentence: Sequence[int], drawn: int, continuing: frozenset[int]) -> int:
    """Where the sentence is split: at the first word from the place on that is drawn, else at the last before it."""
    starts = [place for place in range(1, len(sentence)) if sentence[place] not in continuing]
    behind = [place for place in starts if place >= drawn]
    return behind[0] if behind else starts[-1] if starts else drawn


def _another(documents: Sequence[Document], index: int, rng: random.Random) -> int:
    """Another document, most likely."""
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    return other


def _part_of(document: Document, wanted: int, rng: random.Random) -> list[int]:
    part: list[int] = []
    for segment in document[rng.randint(0, len(document) - 1) :]:
        part += segment
        if len(part) >= wanted:
            break
    return part


def _truncate(a: list[int], b: list[int], most: int, rng: random.Random) -> None:
    while len(a) + len(b) > most:
        longer = a if len(a) > len(b) else b
        longer.pop(0 if rng.random() < 0.5 else -1)
