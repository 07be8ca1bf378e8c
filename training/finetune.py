"""Fine-tuning for classification and ranking: the task, its metrics, and its examples from TFRecords or TSV.

A TSV file has a header line that names its columns: `text` (or `text_a`, or `query`) holds the only or first text,
`text_b` (or `document`) the second, `label` a number from 0; `query_id`, where there is one, groups examples for the
ranking's metric. TSV is tokenized once, into TFRecords, and then read as those are.

The TFRecords are those of google-research/bert run_classifier.py: int64 `input_ids`, `input_mask`, `segment_ids`,
`label_ids`; `query_ids` beside them for ranking.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from keras import ops

from training import inputs, storage
from training.config import ModelConfig
from training.inputs import Examples, Feature
from training.logs import say
from training.model import BuiltModel
from training.options import TrainOptions
from training.tasks import Tensors, cross_entropy
from transforms.errors import UnusableInputError

if TYPE_CHECKING:
    from transforms.tokenization.wordpiece import Tokenizer

_FIRST, _SECOND = ("text", "text_a", "query"), ("text_b", "document")
_MRR_DEPTH = 10
_LINES = 4096


class ClassificationTask:
    """Softmax classification of the pooled output (google-research/bert run_classifier.py).

    Batches hold `label_ids` [B] int32 and, for ranking, `query_ids` [B] int32.
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

    def check(self, batch: Mapping[str, np.ndarray]) -> None:
        inputs.check_ids(batch, self.built.config.vocab_size)
        worst = int(batch["label_ids"].max())
        if worst >= self.num_labels or batch["label_ids"].min() < 0:
            raise UnusableInputError(
                f"The examples have label {worst}, and --num_labels is {self.num_labels}: labels count from 0."
            )

    def evaluation(self, outputs: Tensors, batch: Tensors) -> dict[str, Any]:
        parts = {name: batch[name] for name in ("label_ids", "query_ids", "example_weights") if name in batch}
        return {"logits": ops.cast(outputs["logits"], "float32"), **parts}

    def metrics(self, batches: list[dict[str, np.ndarray]]) -> dict[str, float]:
        """`accuracy`, `loss`, `f1`, and `mrr_at_10` where the examples have query ids."""
        real = np.concatenate([b["example_weights"] for b in batches]) > 0
        parts = {name: np.concatenate([b[name] for b in batches])[real] for name in batches[0]}
        logits, labels = parts["logits"].astype(np.float64), parts["label_ids"]
        shifted = logits - logits.max(-1, keepdims=True)
        probable = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        predicted = logits.argmax(-1)
        metrics = {
            "accuracy": float(np.mean(predicted == labels)),
            "loss": float(-np.mean(probable[np.arange(len(labels)), labels])),
            "f1": f1(labels, predicted, self.num_labels),
        }
        if "query_ids" in parts:
            relevance = probable[:, 1:].max(-1) if self.num_labels > 1 else logits[:, 0]
            metrics["mrr_at_10"] = mean_reciprocal_rank(parts["query_ids"], relevance, labels > 0)
        return metrics


def f1(labels: np.ndarray, predicted: np.ndarray, num_labels: int) -> float:
    """F1 of label 1 where there are two labels, the mean of all labels' F1 where there are more. int [N] each."""
    scores = []
    for label in range(num_labels) if num_labels > 2 else (1,):
        right = np.sum((predicted == label) & (labels == label))
        total = np.sum(predicted == label) + np.sum(labels == label)
        scores.append(2.0 * right / total if total else 0.0)
    return float(np.mean(scores))


def mean_reciprocal_rank(queries: np.ndarray, scores: np.ndarray, relevant: np.ndarray) -> float:
    """MRR@10, as MS MARCO's: for each query 1 / the rank of its first relevant document, 0 beyond rank 10; the mean.

    Args:
      queries: which query each example belongs to, [N].
      scores: higher ranks first; equal scores keep the examples' order, [N].
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
    """The files and features of a classification run; TSV files are made into TFRecords in a temporary directory.

    Raises:
      UnusableInputError: a file, a column, a label or a feature is missing or wrong.
    """
    training = [] if options.eval_only else inputs.find_files(",".join(options.input_file))
    evaluation = inputs.find_files(",".join(options.eval_file)) if options.eval_file else []
    texts = [p for p in (*training, *evaluation) if p.endswith(".tsv")]
    if texts:
        made = _tokenized(texts, options, config)
        training, evaluation = [made.get(p, p) for p in training], [made.get(p, p) for p in evaluation]
    paths = [*training, *evaluation]
    lengths: Mapping[str, int] = next((found for found in map(inputs.example_lengths, paths) if found), {})
    if not lengths:
        raise UnusableInputError(f"{(texts or paths)[0]}: there is no example in these files.")
    length = options.max_seq_length or lengths.get("input_ids", 0)
    names = ["input_ids", "input_mask"] + (["segment_ids"] if config.model_type == "bert" else [])
    features = {name: Feature(length) for name in names} | {"label_ids": Feature(1, scalar=True)}
    if "query_ids" in lengths:
        features["query_ids"] = Feature(1, scalar=True)
    inputs.check_features(paths, features)
    if length > config.max_position_embeddings:
        raise UnusableInputError(
            f"{paths[0]}: the sequences are {length} tokens long, and the model has "
            f"{config.max_position_embeddings} positions (max_position_embeddings)."
        )
    return Examples(training=training, evaluation=evaluation, features=features)


def _tokenized(paths: Sequence[str], options: TrainOptions, config: ModelConfig) -> dict[str, str]:
    """Makes a TFRecord of each TSV file. Returns where it is, by the TSV's path."""
    from transforms.tokenization.vocabulary import load_vocabulary
    from transforms.tokenization.wordpiece import Tokenizer

    if options.vocab_file is None:
        raise UnusableInputError(f"{paths[0]}: give --vocab_file, the vocabulary that tokenizes TSV files.")
    if config.model_type != "bert":
        raise UnusableInputError(f"{paths[0]}: TSV is tokenized with WordPiece, for BERT; give TFRecords instead.")
    vocabulary = load_vocabulary(options.vocab_file)
    tokenizer = Tokenizer(vocabulary, do_lower_case=options.do_lower_case)
    layout = PairLayout(
        length=options.max_seq_length or 128,
        first=options.max_query_length,
        second=options.max_document_length,
        start=vocabulary.id_of("[CLS]"),
        end=vocabulary.id_of("[SEP]"),
    )
    directory = tempfile.mkdtemp(prefix="maskmill-examples-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    made = {}
    for i, path in enumerate(dict.fromkeys(paths)):
        made[path] = os.path.join(directory, f"{i:05d}.tfrecord")
        count = write_examples(path, made[path], tokenizer, layout, options.num_labels)
        say(f"{path}: {count:,} examples tokenized")
    return made


class PairLayout:
    """How one or two texts become `length` ids: [CLS] first [SEP], or [CLS] first [SEP] second [SEP], then zeros.

    `first` counts the first text with its [CLS] and [SEP], `second` the second with its [SEP]; a text that is longer
    loses its end. Without these limits the longer text loses tokens, one at a time (run_classifier.py,
    _truncate_seq_pair).

    Raises:
      UnusableInputError: the limits do not fit into the length.
    """

    def __init__(self, *, length: int, first: int | None, second: int | None, start: int, end: int) -> None:
        self.length, self.first, self.second = length, first, second
        self.start, self.end = start, end
        if (first or 0) + (second or 0) > length:
            raise UnusableInputError(
                f"--max_query_length {first} and --max_document_length {second} together pass --max_seq_length "
                f"{length}."
            )
        if length < 5 or (first or 3) < 3 or (second or 2) < 2:
            raise UnusableInputError("A limit on the length leaves no room for a text and its [CLS] and [SEP].")

    def __call__(self, first: np.ndarray, second: np.ndarray | None) -> tuple[list[int], list[int]]:
        """Ids of both texts → (ids, segments), without the zeros that fill them up."""
        a, b = first.tolist(), [] if second is None else second.tolist()
        room = self.length - (2 if second is None else 3)
        if self.first is not None:
            a = a[: self.first - 2]
        if self.second is not None:
            b = b[: self.second - 1]
        if self.first is not None:
            b = b[: room - len(a)]
        while len(a) + len(b) > room:
            (a if len(a) > len(b) else b).pop()
        ids, segments = [self.start, *a, self.end], [0] * (len(a) + 2)
        return (ids, segments) if second is None else ([*ids, *b, self.end], segments + [1] * (len(b) + 1))


def write_examples(source: str, target: str, tokenizer: "Tokenizer", layout: PairLayout, num_labels: int) -> int:
    """Tokenizes a TSV file into a TFRecord. Returns the number of examples.

    Raises:
      UnusableInputError: a column is missing, or a line has no proper label; the sentence names the line.
    """
    queries: dict[str, int] = {}
    count = 0
    with tf.io.TFRecordWriter(target) as writer:
        for columns in _rows(source, num_labels):
            first = _token_ids(tokenizer, columns["first"])
            second = _token_ids(tokenizer, columns["second"]) if "second" in columns else [None] * len(first)
            for i, (a, b) in enumerate(zip(first, second, strict=True)):
                ids, segments = layout(a, b)
                rest = [0] * (layout.length - len(ids))
                features = {
                    "input_ids": ids + rest,
                    "input_mask": [1] * len(ids) + rest,
                    "segment_ids": segments + rest,
                    "label_ids": [int(columns["label"][i])],
                }
                if "query_id" in columns:
                    features["query_ids"] = [queries.setdefault(columns["query_id"][i], len(queries))]
                example = tf.train.Example()
                for name, values in features.items():
                    example.features.feature[name].int64_list.value.extend(values)
                writer.write(example.SerializeToString(deterministic=True))
            count += len(first)
    return count


def _token_ids(tokenizer: "Tokenizer", texts: Sequence[str]) -> list[np.ndarray]:
    """The ids of each text, int32. Texts are tokenized together, a line each."""
    # A line without tokens would not count as a segment: each begins with a word, whose only piece is dropped.
    joined = "".join(f"a {text}\n" for text in texts).encode()
    tokenized = tokenizer.tokenize_bytes(joined)
    return [ids[1:] for ids in np.split(tokenized.ids, tokenized.segment_ends[:-1])]


def _rows(path: str, num_labels: int) -> Iterator[dict[str, list[str]]]:
    """Columns of a TSV file, some thousand lines at a time: `first`, `label`; `second`, `query_id` where there are."""
    with storage.local_copy(path) as copy, open(copy, encoding="utf-8", newline="\n") as file:
        header = file.readline().rstrip("\r\n").split("\t")
        places = {
            "first": next((header.index(n) for n in _FIRST if n in header), None),
            "second": next((header.index(n) for n in _SECOND if n in header), None),
            "label": header.index("label") if "label" in header else None,
            "query_id": header.index("query_id") if "query_id" in header else None,
        }
        if places["first"] is None or places["label"] is None:
            missing = "label" if places["label"] is None else "text, text_a or query"
            raise UnusableInputError(
                f"{path}: the header line names no column {missing}; it names {', '.join(header) or 'nothing'}."
            )
        held: dict[str, list[str]] = {name: [] for name, place in places.items() if place is not None}
        for number, line in enumerate(file, 2):
            cells = line.rstrip("\r\n").split("\t")
            if len(cells) != len(header):
                raise UnusableInputError(
                    f"{path}, line {number}: there are {len(cells)} columns, and the header has {len(header)}."
                )
            for name, values in held.items():
                values.append(cells[places[name] or 0])
            label = held["label"][-1]
            if not label.isdecimal() or int(label) >= num_labels:
                raise UnusableInputError(
                    f"{path}, line {number}: label {label!r} is no number from 0 to {num_labels - 1} (--num_labels)."
                )
            if len(held["label"]) == _LINES:
                yield held
                held = {name: [] for name in held}
        if held["label"]:
            yield held
