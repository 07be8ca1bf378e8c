"""Compares maskmill's objectives with the code of those who introduced them, run on the same text shard.

    python -m benchmarks.peer_objectives SHARD --vocab vocab.txt [--scratch DIR]
        [--albert DIR] [--tf_models DIR] [--tensorflow PYTHON]
        [--fairseq DIR] [--spanbert DIR] [--run_mlm FILE] [--peers PYTHON]

Each peer whose checkout is named runs with its own defaults and the vocabulary; the others are left out.

--albert     google-research/albert; the folder must be called albert. Without a SentencePiece model its
             create_pretraining_data.py takes a WordPiece vocabulary and splits as BERT does.
--tf_models  tensorflow/models, or the folder into which the wheel tf-models-official was unpacked.
--tensorflow a Python with TensorFlow 2, tf_keras, tensorflow_hub, setuptools below 80 (tensorflow_hub needs it),
             sentencepiece and six, for these two.
--fairseq    facebookresearch/fairseq with its extension fairseq/data/token_block_utils_fast built for --peers.
--spanbert   facebookresearch/SpanBERT.
--run_mlm    examples/pytorch/language-modeling/run_mlm.py of huggingface/transformers.
--peers      a Python with numpy and, for --run_mlm, datasets and transformers.

Two sets of rows are the same if their number differs by 1 % at most, and their lengths by a total variation distance
(half the sum of the differences of shares) of 1 % at most. Where lengths are drawn, they are counted in 16 bins, and
the peer runs a second time with other draws: what it differs from itself is the noise of the measurement. Sequences
that are short on purpose are left out (--short_seq_prob=0): each document draws once whether its sequences are short
and how short, so the number of rows differs by 5 % from seed to seed.
"""

import argparse
import collections
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import print_machine
from benchmarks.reference import VOCABULARY
from maskmill.masking.objective_options import MaskUnit, ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.drawing import DrawnRows, RowBlocks, draw_rows
from maskmill.records.example_proto import parse_example
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tfrecord import read_records
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.vocabulary import Vocabulary, load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

PEER_CODE = Path(__file__).parent / "peer_code.py"
LENGTHS = (512, 128)
PROBABILITY = 0.15
SEEDS = (12345, 54321)
_BINS = 16
_SPANBERT_ROWS = 5000  # its masks take some 15 ms a row
_LONGEST_RUN = 12  # words; longer runs of masked words are counted together

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class MaskedRows:
    """Rows with masks, one after the other.

    Attributes:
      ids: int64[pieces], before masking. written: int64[pieces], as the model reads them.
      masked: bool[pieces], whether a piece is to be predicted. ends: int64[rows], where each row ends.
      labels: int64[rows], next_sentence_labels; empty for objectives without them.
    """

    ids: Array
    written: Array
    masked: Array
    ends: Array
    labels: Array

    def lengths(self) -> Array:
        return np.diff(self.ends, prepend=0)


def from_records(path: str) -> MaskedRows:
    """The rows of a TFRecord file of tf.train.Examples."""
    pieces, originals, masks, lengths, labels = [], [], [], [], []
    for record in read_records(path):
        features = parse_example(record)
        values = {name: np.array(feature.int64_list.value) for name, feature in features.items()}
        length = int(values["input_mask"].sum())
        weights = np.array(features["masked_lm_weights"].float_list.value)
        count = int(weights.sum())
        at = values["masked_lm_positions"][:count]
        ids = values["input_ids"][:length]
        original, masked = ids.copy(), np.zeros(length, bool)
        original[at] = values["masked_lm_ids"][:count]
        masked[at] = True
        pieces.append(ids)
        originals.append(original)
        masks.append(masked)
        lengths.append(length)
        labels.append(int(values["next_sentence_labels"][0]))
    joined = (np.concatenate(parts) for parts in (originals, pieces, masks))
    return MaskedRows(*joined, np.cumsum(lengths), np.array(labels))


def from_blocks(blocks: RowBlocks, labelled: bool) -> MaskedRows:
    """The rows of blocks of RowArrays."""
    pieces, originals, masks, lengths, labels = [], [], [], [], []
    for rows, count in blocks:
        ids, original = rows.input_ids[:count].astype(np.int64), rows.input_ids[:count].astype(np.int64)
        masked = np.zeros(ids.shape, bool)
        row, place = np.nonzero(np.arange(rows.positions.shape[1]) < rows.masked[:count, None])
        at = rows.positions[row, place]
        original[row, at] = rows.labels[row, place]
        masked[row, at] = True
        used = np.arange(ids.shape[1]) < rows.lengths[:count, None]
        pieces.append(ids[used])
        originals.append(original[used])
        masks.append(masked[used])
        lengths.append(rows.lengths[:count].copy())
        labels.append(rows.next_sentence_labels[:count, 0].copy() if labelled else np.empty(0, np.uint8))
    joined = (np.concatenate(parts) for parts in (originals, pieces, masks))
    return MaskedRows(*joined, np.cumsum(np.concatenate(lengths)), np.concatenate(labels))


@dataclasses.dataclass(frozen=True)
class Text:
    """A text shard as both sides read it."""

    path: str
    vocabulary_path: str
    vocabulary: Vocabulary
    tokens: TokenizedText

    def rows(self, length: int, objective: ObjectiveOptions) -> MaskedRows:
        """The rows that maskmill makes of it."""
        return from_blocks(self.blocks(length, objective), objective.objective in ("nsp", "sop"))

    def blocks(self, length: int, objective: ObjectiveOptions) -> RowBlocks:
        """The same as blocks of rows, in the order in which they are written."""
        drawn = self._draw(length, objective)
        return drawn.lay_out(drawn.order, length)

    def lengths(self, length: int, objective: ObjectiveOptions) -> Array:
        """How many pieces each row has that maskmill makes of it."""
        return self._draw(length, objective).lengths

    def _draw(self, length: int, objective: ObjectiveOptions) -> DrawnRows:
        masking = MaskingOptions(
            max_seq_length=length,
            max_predictions_per_seq=predictions(length),
            dupe_factor=1,
            short_seq_prob=0.0,
            random_seed=SEEDS[0],
        )
        return draw_rows(self.tokens, self.vocabulary, ExamplesPlan(masking=masking, objective=objective))

    def starts_word(self) -> Array:
        """bool[ids]: whether a piece starts a word; special pieces do."""
        starts = np.ones(self.vocabulary.size, bool)
        starts[self.vocabulary.ids] = [not piece.startswith("##") for piece in self.vocabulary.pieces]
        return starts


def predictions(length: int) -> int:
    """The most masked positions of a row: 15 % of it, rounded up."""
    return -int(-length * PROBABILITY // 1)


def distance(these: Array, those: Array) -> float:
    """The total variation distance of two histograms."""
    return float(np.abs(these / these.sum() - those / those.sum()).sum() / 2)


def length_histogram(lengths: Array, longest: int, bins: int | None = None) -> Array:
    """How many rows have each length, or a length in each of so many bins."""
    exact = np.bincount(np.minimum(lengths, longest), minlength=longest + 1)
    return exact if bins is None else np.add.reduceat(exact[1:], np.arange(bins) * longest // bins)


def runs_of_words(rows: MaskedRows, starts_word: Array, special_ids: Sequence[int]) -> tuple[Array, int]:
    """How many runs of masked pieces have 1, 2, … words, and how many words are masked in part."""
    first = np.zeros(len(rows.ids) + 1, bool)
    first[0] = True
    first[rows.ends] = True
    first[1:] |= np.isin(rows.ids, special_ids)  # no word and no run goes on behind a special piece
    first = first[:-1]
    before = np.concatenate([[False], rows.masked[:-1]])
    opens = rows.masked & (first | ~before)
    run = np.cumsum(opens)[rows.masked] - 1
    starts = starts_word[rows.ids] | first
    words = np.bincount(run, weights=(starts | opens)[rows.masked]).astype(np.int64)
    word = np.cumsum(starts) - 1
    masked_pieces = np.bincount(word, weights=rows.masked)
    partly = np.count_nonzero((masked_pieces > 0) & (masked_pieces < np.bincount(word)))
    return np.bincount(np.minimum(words, _LONGEST_RUN), minlength=_LONGEST_RUN + 1), partly


def kinds(rows: MaskedRows, mask_id: int) -> Array:
    """For each piece: 0 if the model reads [MASK] there, 1 if another piece, 2 if its own."""
    return np.where(rows.written == mask_id, 0, np.where(rows.written == rows.ids, 2, 1))


def one_kind(rows: MaskedRows, mask_id: int, starts_word: Array) -> tuple[float, float]:
    """How often two masked neighbours have the same kind: two pieces of one word, and of two words."""
    kind = kinds(rows, mask_id)
    same, next_word = kind[1:] == kind[:-1], starts_word[rows.ids[1:]]
    both = rows.masked[1:] & rows.masked[:-1]
    both[rows.ends[:-1] - 1] = False
    return float(same[both & ~next_word].mean()), float(same[both & next_word].mean())


def run(command: Sequence[str], path: str | None = None) -> str:
    """Runs a peer to its end; `path` goes before PYTHONPATH. Returns its output."""
    paths = [part for part in (path, os.environ.get("PYTHONPATH")) if part]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TF_USE_LEGACY_KERAS": "1", "CUDA_VISIBLE_DEVICES": ""}
    finished = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"{' '.join(command[:6])} …\n{finished.stderr[-2000:]}")
    return finished.stdout


def counts_row(name: str, peer: str, theirs: Array, ours: Array, longest: int, noise: str | None = None) -> str:
    """A line of the table of rows. noise: what two runs of the peer differ, where lengths are drawn."""
    exact, binned = (
        f"{distance(length_histogram(theirs, longest, bins), length_histogram(ours, longest, bins)):.2%}"
        for bins in (None, _BINS)
    )
    share = (len(ours) - len(theirs)) / len(theirs)
    return (
        f"| {name} | {peer} | {len(theirs):,} | {len(ours):,} | {share:+.2%} | {theirs.mean():.1f} | {ours.mean():.1f} "
        f"| {exact if noise is None else ''} | {binned} | {noise or ''} |"
    )


def masks_rows(name: str, peer: str, theirs: MaskedRows, ours: MaskedRows, text: Text) -> list[str]:
    """Two lines of the table of masks."""
    mask_id, *special_ids = (text.vocabulary.id_of(piece) for piece in ("[MASK]", "[CLS]", "[SEP]"))
    starts_word, lines, histograms = text.starts_word(), [], []
    for maker, rows in ((peer, theirs), ("maskmill", ours)):
        histogram, partly = runs_of_words(rows, starts_word, special_ids)
        histograms.append(histogram)
        by_kind = np.bincount(kinds(rows, mask_id)[rows.masked], minlength=3) / rows.masked.sum()
        cells = [
            f"{rows.masked.mean():.2%}",
            " / ".join(f"{share:.1%}" for share in by_kind),
            " / ".join(f"{share:.0%}" for share in one_kind(rows, mask_id, starts_word)),
            f"{partly / (np.arange(len(histogram)) * histogram).sum():.2%}",
            " / ".join(f"{share:.1%}" for share in histogram[1:5] / histogram.sum()),
        ]
        lines.append(f"| {name} | {maker} | {' | '.join(cells)} | |")
    lines[1] = lines[1].removesuffix("|") + f"{distance(*histograms):.2%} |"
    return lines


COUNTS_HEADER = """\
| rows | peer | theirs | ours | difference | mean length, theirs | ours | lengths apart | in 16 bins | noise |
|---|---|---|---|---|---|---|---|---|---|"""
MASKS_HEADER = """\
| masks | made by | masked | [MASK] / other / kept | one kind | in part | runs of 1 / 2 / 3 / 4 words | runs apart |
|---|---|---|---|---|---|---|---|"""
MASKS_KEY = """\
Masked: of all pieces. One kind: how often two masked neighbours are both [MASK], both another piece, or both kept:
pieces of one word / of two words. In part: masked words of which a piece is not masked. Runs: masked neighbours, in
words."""


@dataclasses.dataclass
class Tables:
    """The lines of both tables."""

    counts: list[str] = dataclasses.field(default_factory=list)
    masks: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


def with_fairseq(text: Text, arguments: argparse.Namespace, scratch: str, tables: Tables) -> None:
    """Full sentences, over documents and within them.

    fairseq ends each line with a separator. So it is run twice: with one a line, and with those of the paper and of
    maskmill, one between two documents and one behind the last piece. A sentence that is longer than a block makes a
    longer block.
    """
    for length in LENGTHS:
        for mode, joins in (("complete", True), ("complete_doc", False)):
            ours = text.lengths(length, ObjectiveOptions(objective="mlm", cross_documents=joins))
            name = f"mlm, {length}, {'over documents' if joins else 'within documents'}"
            for separators in ("document", "line"):
                peer = f"fairseq {mode}, a separator a {separators}"
                theirs = fairseq_lengths(text, arguments, scratch, (mode, separators, length))
                tables.counts.append(counts_row(name, peer, theirs, ours, length))
        longer = np.count_nonzero(theirs > length)
        tables.notes.append(f"mlm, {length}: {longer} of fairseq's last blocks are longer than {length}.")


def fairseq_lengths(text: Text, arguments: argparse.Namespace, scratch: str, how: tuple[str, str, int]) -> Array:
    """The lengths of fairseq's blocks as a model reads them. how: break mode, what a separator ends, length."""
    mode, separators, length = how
    sizes = np.diff(text.tokens.segment_ends, prepend=0)
    starts = np.concatenate([[0], text.tokens.document_ends[:-1]])
    block = length - 2  # a [CLS] and a [SEP] are added to each block
    if separators == "line":
        # An empty line behind each document; tasks/masked_lm.py adds only <s>.
        sizes, block, separator = np.insert(sizes + 1, text.tokens.document_ends, 1), length - 1, 1
    elif mode == "complete":
        sizes[starts[1:]] += 1
        separator = 1
    else:
        sizes, separator = np.insert(sizes, text.tokens.document_ends, 0), 0
    np.savez(f"{scratch}/sizes.npz", sizes=sizes)
    command = [arguments.peers, str(PEER_CODE), "fairseq", arguments.fairseq, f"{scratch}/sizes.npz", mode]
    run([*command, str(separator), str(block), f"{scratch}/blocks.npz"])
    blocks = np.load(f"{scratch}/blocks.npz")
    lengths = blocks["ends"] - blocks["starts"] + (length - block)
    if separators == "document" and mode == "complete":
        # A block that begins with a document needs no separator before it.
        places = np.concatenate([[0], np.cumsum(sizes)])
        lengths -= np.isin(blocks["starts"], places[starts[1:]])
    return np.asarray(lengths)


def with_albert(text: Text, arguments: argparse.Namespace, scratch: str, tables: Tables) -> None:
    """Pairs in their order or swapped, with n-gram masks."""
    length, rows = LENGTHS[0], []
    for seed in SEEDS:
        output = f"{scratch}/albert-{seed}.tfrecord"
        command = [arguments.tensorflow, "-m", "albert.create_pretraining_data", *flags(text, length, output, seed)]
        run(command, str(Path(arguments.albert).resolve().parent))
        rows.append(from_records(output))
    theirs = rows[0]
    objective = ObjectiveOptions(objective="sop", mask_unit="ngram")
    ours = text.rows(length, objective)
    lengths = [each.lengths() for each in (theirs, ours, rows[1])]
    noise = noise_of(lengths[0], lengths[2])
    tables.counts.append(counts_row(f"sop, {length}", "ALBERT", *lengths[:2], length, noise))
    tables.masks.extend(masks_rows(f"ngram, {length}", "ALBERT", theirs, ours, text))
    alone = sentences_alone(text, length)
    sep_id = text.vocabulary.id_of("[SEP]")
    found = np.array([first_part(theirs, row, sep_id) in alone for row in range(len(theirs.ends))]) & (
        theirs.labels == 1
    )
    others = length_histogram(theirs.lengths()[~found], length, _BINS)
    split = [min(len(sentence) // 8 + 3, length) for sentence in alone.elements()]
    ordered = length_histogram(ours.lengths(), length, _BINS) - length_histogram(np.array(split), length, _BINS)
    tables.notes.append(
        f"sop: labelled 1 are {theirs.labels.mean():.2%} of ALBERT's rows, {ours.labels.mean():.2%} of ours. "
        f"{alone.total():,} rows have one sentence, which is the last of its document or fills a row. ALBERT puts a "
        f"text of another document behind it and labels that 1 ({np.count_nonzero(found):,} were found); maskmill "
        f"splits it. Without these rows lengths are {distance(others, ordered):.2%} apart."
    )


def sentences_alone(text: Text, length: int) -> collections.Counter[bytes]:
    """The pieces of sentences, as int64, that make a row of pairs alone: documents are cut where a row is full."""
    sizes = np.diff(text.tokens.segment_ends, prepend=0).tolist()
    starts = (text.tokens.segment_ends - np.array(sizes)).tolist()
    alone: collections.Counter[bytes] = collections.Counter()
    first = 0
    for end in text.tokens.document_ends.tolist():
        begins, pieces = first, 0
        for segment in range(first, end):
            pieces += sizes[segment]
            if pieces >= length - 3 or segment == end - 1:
                if segment == begins:
                    sentence = text.tokens.ids[starts[segment] : starts[segment] + sizes[segment]]
                    alone[sentence.astype(np.int64).tobytes()] += 1
                begins, pieces = segment + 1, 0
        first = end
    return alone


def first_part(rows: MaskedRows, row: int, sep_id: int) -> bytes:
    """The pieces of the first part of a pair, as int64."""
    ids = rows.ids[rows.ends[row - 1] if row else 0 : rows.ends[row]]
    return bytes(ids[1 : int(np.argmax(ids == sep_id))].tobytes())


def with_tf_models(text: Text, arguments: argparse.Namespace, scratch: str, tables: Tables) -> None:
    """Word and n-gram masks on next sentence pairs, which are other ones in each run."""
    length, peer = LENGTHS[0], "TensorFlow Models"
    units: Mapping[MaskUnit, Sequence[str]] = {"word": [], "ngram": ["--max_ngram_size=3"]}
    theirs = {}
    for unit, more in units.items():
        output = f"{scratch}/tf-models-{unit}.tfrecord"
        module = "official.nlp.data.create_pretraining_data"
        given = [*flags(text, length, output, SEEDS[0]), "--do_whole_word_mask=True", *more]
        run([arguments.tensorflow, "-m", module, *given], str(Path(arguments.tf_models).resolve()))
        theirs[unit] = from_records(output)
    first, second = (rows.lengths() for rows in theirs.values())
    for unit, rows in theirs.items():
        ours = text.rows(length, ObjectiveOptions(objective="nsp", mask_unit=unit))
        tables.masks.extend(masks_rows(f"{unit}, {length}", peer, rows, ours, text))
    pairs = text.lengths(length, ObjectiveOptions(objective="nsp"))
    tables.counts.append(counts_row(f"nsp, {length}", peer, first, pairs, length, noise_of(first, second)))


def noise_of(first: Array, second: Array) -> str:
    """What two runs of a peer differ, of rows of these lengths."""
    apart = distance(*(length_histogram(lengths, LENGTHS[0], _BINS) for lengths in (first, second)))
    return f"{(len(second) - len(first)) / len(first):+.2%}, {apart:.2%}"


def flags(text: Text, length: int, output: str, seed: int) -> list[str]:
    """The flags of the scripts that descend from BERT's create_pretraining_data.py."""
    return [
        f"--input_file={text.path}",
        f"--output_file={output}",
        f"--vocab_file={text.vocabulary_path}",
        f"--max_seq_length={length}",
        f"--max_predictions_per_seq={predictions(length)}",
        f"--masked_lm_prob={PROBABILITY}",
        f"--random_seed={seed}",
        "--dupe_factor=1",
        "--short_seq_prob=0.0",
    ]


def with_spanbert(text: Text, arguments: argparse.Namespace, scratch: str, tables: Tables) -> None:
    """Span masks on the same rows: sentences within documents. SpanBERT masks rows without their special pieces."""
    length = LENGTHS[0]
    objective = ObjectiveOptions(objective="mlm", cross_documents=False, mask_unit="span")
    ours = text.rows(length, objective)
    ends = ours.ends[:_SPANBERT_ROWS]
    inside = np.ones(ends[-1], bool)
    inside[ends - 1] = False
    inside[np.concatenate([[0], ends[:-1]])] = False
    ids, written, masked = (values[: ends[-1]][inside] for values in (ours.ids, ours.written, ours.masked))
    ends = ends - 2 * np.arange(1, len(ends) + 1)
    mask_id = text.vocabulary.id_of("[MASK]")
    np.savez(f"{scratch}/rows.npz", ids=ids, ends=ends, starts_word=text.starts_word(), mask_id=mask_id)
    command = [arguments.peers, str(PEER_CODE), "spanbert", arguments.spanbert]
    run([*command, f"{scratch}/rows.npz", f"{scratch}/masks.npz"])
    masks = np.load(f"{scratch}/masks.npz")
    theirs = MaskedRows(ids, masks["written"], masks["masked"].astype(bool), ends, ours.labels)
    tables.masks.extend(
        masks_rows(f"span, {length}", "SpanBERT", theirs, MaskedRows(ids, written, masked, ends, ours.labels), text)
    )
    tables.notes.append(f"span: of {len(ends):,} rows that are the same on both sides.")


def with_run_mlm(text: Text, arguments: argparse.Namespace, scratch: str, tables: Tables) -> None:
    """Blocks, which must be the same, block for block, and the masks of the script's collator."""
    cut = ObjectiveOptions(objective="blocks", block_separators="recipe", block_remainder="drop", dynamic_masking=True)
    for length in LENGTHS:
        command = [arguments.peers, str(PEER_CODE), "run_mlm", arguments.run_mlm, text.path, text.vocabulary_path]
        figures = json.loads(run([*command, str(length), f"{scratch}/blocks.npz"]).splitlines()[-1])
        recipe = np.load(f"{scratch}/blocks.npz")
        theirs = recipe["blocks"]
        ours = np.concatenate([rows.input_ids[:count].copy() for rows, count in text.blocks(length, cut)])
        name = f"run_mlm.py ({', '.join(figures['versions'])})"
        lengths = [np.full(len(these), length) for these in (theirs, ours)]
        tables.counts.append(counts_row(f"blocks, {length}", name, *lengths, length))
        same = (theirs == ours).all(axis=1).sum() if theirs.shape == ours.shape else 0
        tables.notes.append(f"blocks, {length}: {same:,} of {len(theirs):,} blocks are the same, piece for piece.")
    written, masked = recipe["written"].ravel(), recipe["masked"].ravel()
    ends = np.arange(length, len(written) + 1, length)
    collated = MaskedRows(theirs[: len(ends)].ravel(), written, masked, ends, np.empty(0, np.uint8))
    drawn = text.rows(length, dataclasses.replace(cut, dynamic_masking=False))
    tables.masks.extend(masks_rows(f"piece, blocks of {length}", "run_mlm.py", collated, drawn, text))
    by_row = [np.add.reduceat(rows.masked, rows.ends - length, dtype=np.int64) for rows in (collated, drawn)]
    tables.notes.append(
        f"piece, blocks of {length}: a row has {by_row[0].min()} to {by_row[0].max()} masked pieces with run_mlm.py, "
        f"which draws for each piece alone, and {by_row[1].min()} to {by_row[1].max()} with maskmill."
    )


def main() -> None:
    """Prints the machine, both tables, and what they cannot say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    for name in ("albert", "tf_models", "fairseq", "spanbert"):
        parser.add_argument(f"--{name}", metavar="DIR")
    parser.add_argument("--run_mlm", metavar="FILE")
    for name in ("tensorflow", "peers"):
        parser.add_argument(f"--{name}", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--scratch", help="folder for what the peers write")
    arguments = parser.parse_args()
    print_machine()
    vocabulary = load_vocabulary(arguments.vocab)
    tokens = Tokenizer(vocabulary).tokenize_files([arguments.shard])
    text = Text(arguments.shard, arguments.vocab, vocabulary, tokens)
    print(
        f"{Path(arguments.shard).name}: {tokens.bytes / 1e6:.1f} MB, {len(tokens.document_ends):,} documents, "
        f"{len(tokens.segment_ends):,} sentences, {len(tokens.ids):,} pieces"
    )
    tables = Tables()
    steps = {
        "fairseq": with_fairseq,
        "albert": with_albert,
        "tf_models": with_tf_models,
        "spanbert": with_spanbert,
        "run_mlm": with_run_mlm,
    }
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        for name, step in steps.items():
            if getattr(arguments, name):
                step(text, arguments, scratch, tables)
            else:
                print(f"--{name} is not given, so it is left out.")
    print(
        "\n".join(
            ["", COUNTS_HEADER, *tables.counts, "", MASKS_HEADER, *tables.masks, "", MASKS_KEY, "", *tables.notes]
        )
    )


if __name__ == "__main__":
    main()
