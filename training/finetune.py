"""Fine-tuning for classification and ranking: the task, its metrics, and its examples from TFRecords or TSV.

A TSV file has a header line with the names of its columns: `text` (or `text_a`, or `query`) is the first or only text,
`text_b` (or `document`) the second, and `label` a number from 0. The optional `query_id` groups examples for the metric
of ranking. TSV is tokenized once, into TFRecords, which are then read like any others.

The TFRecords are those of google-research/bert run_classifier.py, with int64 `input_ids`, `input_mask`, `segment_ids`
and `label_ids`; for ranking they also have `query_ids`.
"""

import atexit
import codecs
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from maskmill.errors import UnusableInputError
from maskmill.records import example_proto
from maskmill.records.file_names import lies_beside
from maskmill.records.tfrecord import frame
from maskmill.storage import files
from training import inputs, storage
from training.config import ModelConfig
from training.encoders import Tensors
from training.inputs import Examples, Feature
from training.logs import say
from training.model import BuiltModel
from training.options import TrainOptions
from training.tasks import cross_entropy

if TYPE_CHECKING:
    from maskmill.tokenization.wordpiece import Tokenizer

# The names that a TSV file's header may give the columns of the two texts.
_FIRST_COLUMNS, _SECOND_COLUMNS = ("text", "text_a", "query"), ("text_b", "document")
# The ranks that count for MRR@10.
_MRR_DEPTH = 10
_TSV = ".tsv"
# Lines of a TSV file that are tokenized together.
_LINES = 4096
# The shortest lengths: [CLS] a token [SEP]; a token [SEP]; both.
_SHORTEST_FIRST, _SHORTEST_SECOND, _SHORTEST_PAIR = 3, 2, 5
# The length of examples made from TSV unless --max_seq_length gives another.
_DEFAULT_LENGTH = 128


class ClassificationTask:
    """Softmax classification of the pooled output (google-research/bert run_classifier.py).

    Batches have `label_ids` [B] int32 and, for ranking, `query_ids` [B] int32. The methods are described in
    `training.tasks.Task`.
    """

    def __init__(self, built: BuiltModel, *, num_labels: int) -> None:
        self.built = built
        self.num_labels = num_labels

    def weights(self, batch: Tensors) -> dict[str, Any]:
        return {"classification_loss": ops.sum(ops.ones_like(batch["label_ids"], dtype="float32"))}

    def epsilon(self, loss: str) -> float:
        return 0.0

    def sums(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        return {"classification_loss": ops.sum(cross_entropy(batch["label_ids"], outputs["logits"]))}

    def evaluation(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        features = {name: batch[name] for name in ("label_ids", "query_ids", "example_weights") if name in batch}
        return {"logits": ops.cast(outputs["logits"], "float32"), **features}

    def metrics(self, batches: list[dict[str, np.ndarray]]) -> dict[str, float]:
        """Return `accuracy`, `loss`, `f1`, and `mrr_at_10` if the examples have query ids."""
        is_example = np.concatenate([b["example_weights"] for b in batches]) > 0
        examples = {name: np.concatenate([b[name] for b in batches])[is_example] for name in batches[0]}
        logits, labels = examples["logits"].astype(np.float64), examples["label_ids"]
        shifted = logits - logits.max(-1, keepdims=True)
        log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        predicted = logits.argmax(-1)
        metrics = {
            "accuracy": float(np.mean(predicted == labels)),
            "loss": float(-np.mean(log_probabilities[np.arange(len(labels)), labels])),
            "f1": f1(labels, predicted, self.num_labels),
        }
        if "query_ids" in examples:
            relevance = log_probabilities[:, 1:].max(-1) if self.num_labels > 1 else logits[:, 0]
            metrics["mrr_at_10"] = mean_reciprocal_rank(examples["query_ids"], relevance, labels > 0)
        return metrics


def f1(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """Return F1 of label 1 for two labels, or the mean F1 of all labels for more. Arrays are int [N]."""
    scores = []
    for label in range(num_labels) if num_labels > 2 else (1,):
        true_positives = np.sum((predicted == label) & (labels == label))
        total = np.sum(predicted == label) + np.sum(labels == label)
        scores.append(2.0 * true_positives / total if total else 0.0)
    return float(np.mean(scores))


def mean_reciprocal_rank(queries: np.ndarray, scores: np.ndarray, relevant: np.ndarray) -> float:
    """Return MRR@10 as in MS MARCO: the mean over queries of 1 / the first relevant document's rank, 0 beyond 10.

    Args:
      queries: the query of each example, int [N].
      scores: float [N]; the highest ranks first, and equal scores keep the order of the examples.
      relevant: bool [N].
    """
    order = np.lexsort((-scores, queries))
    _, starts, group = np.unique(queries[order], return_index=True, return_inverse=True)
    rank = np.arange(len(order)) - starts[group] + 1
    hits = relevant[order] & (rank <= _MRR_DEPTH)
    best = np.zeros(len(starts))
    np.maximum.at(best, group[hits], 1.0 / rank[hits])
    return float(best.mean())


def find_examples(options: TrainOptions, config: ModelConfig) -> Examples:
    """Return the data sets and features of a classification run. TSV files become TFRecords in a temporary directory.

    Raises:
      UnusableInputError: a file, a column, a label or a feature is missing or wrong.
    """
    data_sets = inputs.open_data_sets(_with_tokenized(options, config), config)
    first = next(iter(data_sets.values()))
    length = options.max_seq_length or first.width
    names = ["input_ids", "input_mask"] + (["segment_ids"] if config.has_segments else [])
    features = {name: Feature(length) for name in names} | {"label_ids": Feature(1, scalar=True)}
    if any(column.feature == "query_ids" for column in first.columns):
        features["query_ids"] = Feature(1, scalar=True)
    inputs.check_sequence_length(first.path, length, config)
    return inputs.fitted(data_sets, inputs.with_ranges(features, config, num_labels=options.num_labels))


def _with_tokenized(options: TrainOptions, config: ModelConfig) -> TrainOptions:
    """Return the options with a TFRecord in place of each TSV file."""
    training = [] if options.eval_only else _expanded(options.input_file)
    evaluation = _expanded(options.eval_file)
    tsv_paths = [path for path in (*training, *evaluation) if path.endswith(_TSV)]
    if not tsv_paths:
        return options
    tokenized = _tokenized(tsv_paths, options, config)
    return dataclasses.replace(
        options,
        input_file=tuple(tokenized.get(path, path) for path in training),
        eval_file=tuple(tokenized.get(path, path) for path in evaluation),
    )


def _expanded(patterns: Sequence[str]) -> list[str]:
    """Return patterns, with those that match TSV files replaced by the files."""
    paths = []
    for pattern in (part.strip() for named in patterns for part in named.split(",")):
        matches = [file.path for file in files.match([pattern], may_be_missing=True)]
        has_tsv = any(path.endswith(_TSV) for path in matches)
        paths += [path for path in matches if not lies_beside(path)] if has_tsv else [pattern]
    return paths


def _tokenized(paths: Sequence[str], options: TrainOptions, config: ModelConfig) -> dict[str, str]:
    """Make a TFRecord of each TSV file. Return the TFRecords' paths by those of the TSV files."""
    from maskmill.tokenization.vocabulary import load_vocabulary
    from maskmill.tokenization.wordpiece import Tokenizer

    if options.vocab_file is None:
        raise UnusableInputError(f"{paths[0]}: a TSV file must be tokenized; give --vocab_file, the vocabulary.")
    if config.model_type != "bert":
        raise UnusableInputError(
            f"{paths[0]}: a TSV file is tokenized with WordPiece, which only BERT uses; give TFRecords instead."
        )
    vocabulary = load_vocabulary(options.vocab_file)
    tokenizer = Tokenizer(vocabulary, do_lower_case=options.do_lower_case)
    layout = PairLayout(
        length=options.max_seq_length or _DEFAULT_LENGTH,
        first=options.max_query_length,
        second=options.max_document_length,
        start=vocabulary.id_of("[CLS]"),
        end=vocabulary.id_of("[SEP]"),
    )
    directory = tempfile.mkdtemp(prefix="maskmill-examples-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    tokenized = {}
    for i, path in enumerate(dict.fromkeys(paths)):
        tokenized[path] = os.path.join(directory, f"{i:05d}.tfrecord")
        count = write_examples(path, tokenized[path], tokenizer, layout, options.num_labels)
        if not count:
            raise UnusableInputError(f"{path}: there is no example in this file; leave it out.")
        say(f"{path}: {count:,} examples tokenized")
    return tokenized


class PairLayout:
    """The layout of one or two texts in `length` ids: [CLS] first [SEP], or [CLS] first [SEP] second [SEP], then zeros.

    A text over its limit is cut at its end. The limit `first` counts the first text with its [CLS] and [SEP], `second`
    the second text with its [SEP]. Without limits, the longer text loses one token at a time from its end until both
    fit (run_classifier.py, _truncate_seq_pair). `start` and `end` are the ids of [CLS] and [SEP].

    Raises:
      UnusableInputError: the limits do not fit into the length.
    """

    def __init__(self, *, length: int, first: int | None, second: int | None, start: int, end: int) -> None:
        self.length, self.first, self.second = length, first, second
        self.start, self.end = start, end
        if (first or 0) + (second or 0) > length:
            raise UnusableInputError(
                f"--max_query_length {first} and --max_document_length {second} together exceed --max_seq_length "
                f"{length}; lower one of them."
            )
        short_limit = (first or _SHORTEST_FIRST) < _SHORTEST_FIRST or (second or _SHORTEST_SECOND) < _SHORTEST_SECOND
        if length < _SHORTEST_PAIR or short_limit:
            raise UnusableInputError(
                f"--max_seq_length must be at least {_SHORTEST_PAIR}, --max_query_length {_SHORTEST_FIRST} and "
                f"--max_document_length {_SHORTEST_SECOND}: a text needs room beside [CLS] and [SEP]."
            )

    def __call__(self, first: np.ndarray, second: np.ndarray | None) -> tuple[list[int], list[int]]:
        """Return the ids and segments of both texts (each int32 [N]), without padding."""
        first_ids, second_ids = first.tolist(), [] if second is None else second.tolist()
        room = self.length - (2 if second is None else 3)
        if self.first is not None:
            first_ids = first_ids[: self.first - 2]
        if self.second is not None:
            second_ids = second_ids[: self.second - 1]
        if self.first is not None:
            second_ids = second_ids[: room - len(first_ids)]
        while len(first_ids) + len(second_ids) > room:
            (first_ids if len(first_ids) > len(second_ids) else second_ids).pop()
        ids, segments = [self.start, *first_ids, self.end], [0] * (len(first_ids) + 2)
        if second is None:
            return ids, segments
        return [*ids, *second_ids, self.end], segments + [1] * (len(second_ids) + 1)


def write_examples(source: str, target: str, tokenizer: "Tokenizer", layout: PairLayout, num_labels: int) -> int:
    """Tokenize a TSV file into a TFRecord. Return the number of examples.

    Raises:
      UnusableInputError: a column is missing, or a line has no valid label; the message names the line.
    """
    query_numbers: dict[str, int] = {}
    count = 0
    with open(target, "wb") as file:
        for columns in _column_batches(source, num_labels):
            first = _token_ids(tokenizer, columns["first"])
            second = _token_ids(tokenizer, columns["second"]) if "second" in columns else [None] * len(first)
            for i, texts in enumerate(zip(first, second, strict=True)):
                features = _text_features(layout, *texts) | {"label_ids": [int(columns["label"][i])]}
                if "query_id" in columns:
                    query = columns["query_id"][i]
                    features["query_ids"] = [query_numbers.setdefault(query, len(query_numbers))]
                lists = {n: example_proto.Feature(int64_list={"value": values}) for n, values in features.items()}
                file.write(frame(example_proto.encode_example(lists)))
            count += len(first)
    return count


def _text_features(layout: PairLayout, first: np.ndarray, second: np.ndarray | None) -> dict[str, list[int]]:
    """Return an example's features from its texts, each of the layout's length."""
    ids, segments = layout(first, second)
    zeros = [0] * (layout.length - len(ids))
    return {"input_ids": ids + zeros, "input_mask": [1] * len(ids) + zeros, "segment_ids": segments + zeros}


def _token_ids(tokenizer: "Tokenizer", texts: Sequence[str]) -> list[np.ndarray]:
    """Return the token ids of each text (int32 [N]). All texts are tokenized in one call, a line each."""
    # The tokenizer skips a line without tokens. So each line begins with the word `a`, whose id is dropped.
    joined = "".join(f"a {text}\n" for text in texts).encode()
    tokenized = tokenizer.tokenize_bytes(joined)
    return [ids[1:] for ids in np.split(tokenized.ids, tokenized.segment_ends[:-1])]


def _column_batches(path: str, num_labels: int) -> Iterator[dict[str, list[str]]]:
    """Yield the columns of a TSV file by their roles (see `_column_places`), some thousand lines at a time."""
    with storage.local_copy(path) as copy, open(copy, "rb") as file:
        # Spreadsheets begin a file with a mark that does not belong to the first column's name.
        header = _cells(path, 1, file.readline().removeprefix(codecs.BOM_UTF8))
        places = _column_places(path, header)
        columns: dict[str, list[str]] = {role: [] for role in places}
        for number, line in enumerate(file, 2):
            cells = _cells(path, number, line)
            if len(cells) != len(header):
                raise UnusableInputError(
                    f"{path}, line {number}: there are {len(cells)} columns, but the header has {len(header)}."
                )
            for role, place in places.items():
                columns[role].append(cells[place])
            label = columns["label"][-1]
            if not label.isdecimal() or int(label) >= num_labels:
                raise UnusableInputError(
                    f"{path}, line {number}: label {label!r} is no number from 0 to {num_labels - 1} (--num_labels)."
                )
            if len(columns["label"]) == _LINES:
                yield columns
                columns = {role: [] for role in places}
        if columns["label"]:
            yield columns


def _cells(path: str, number: int, line: bytes) -> list[str]:
    """Return the cells of a line of a TSV file."""
    try:
        return line.decode().rstrip("\r\n").split("\t")
    except UnicodeDecodeError as error:
        raise UnusableInputError(
            f"{path}, line {number}: this TSV file is not UTF-8 (byte 0x{line[error.start]:02x}); convert it, for "
            "example with iconv -f latin1 -t utf-8."
        ) from None


def _column_places(path: str, header: Sequence[str]) -> dict[str, int]:
    """Return the column numbers of `first` and `label` in a TSV file, and of `second` and `query_id` if present."""
    names = {"first": _FIRST_COLUMNS, "second": _SECOND_COLUMNS, "label": ("label",), "query_id": ("query_id",)}
    places = {}
    for role, role_names in names.items():
        place = next((header.index(name) for name in role_names if name in header), None)
        if place is not None:
            places[role] = place
    missing = "label" if "label" not in places else None if "first" in places else "text, text_a or query"
    if missing is not None:
        raise UnusableInputError(
            f"{path}: the header line has no column {missing}; it has {', '.join(header) or 'nothing'}."
        )
    return places
