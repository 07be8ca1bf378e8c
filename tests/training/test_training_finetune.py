"""Fine-tuning: examples from TSV and TFRecords, limits for each text, metrics, and a run that learns."""

import contextlib

import numpy as np
import pytest
from training_helpers import BACKEND, logged, small_config, write_config

from maskmill.errors import UnusableInputError
from training import command, finetune, inputs
from training.options import TrainOptions

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the steps are tested on both backends elsewhere")

WORDS = ["good", "bad", "red", "blue", "film", "plot"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
START, END = SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")


@pytest.fixture
def vocab(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(SPECIAL + WORDS) + "\n")
    return str(path)


def ids(text):
    return np.array([(SPECIAL + WORDS).index(w) for w in text.split()], np.int32)


def options(tmp_path, vocab, **changes):
    settings = {
        "output_dir": str(tmp_path / "run"),
        "bert_config_file": write_config(tmp_path, vocab_size=len(SPECIAL + WORDS), max_position_embeddings=32),
        "vocab_file": vocab,
        "task": "classify",
        "max_seq_length": 16,
        "train_batch_size": 16,
        "eval_batch_size": 16,
        "num_train_steps": 60,
        "num_warmup_steps": 10,
        "learning_rate": 0.01,
        "eval_every_samples": 10**6,
    }
    return TrainOptions(**(settings | changes))


def test_single_texts_are_learnt_from_tsv(tmp_path, vocab):
    draw = np.random.default_rng(0)
    rows = ["text\tlabel"]
    for _ in range(200):
        label = int(draw.integers(2))
        rows.append(f"{draw.choice(WORDS[2:])} {WORDS[1 - label]} {draw.choice(WORDS[2:])}\t{label}")
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    train = (str(tmp_path / "train.tsv"),)
    assert command.run(options(tmp_path, vocab, input_file=train, eval_file=train)) == 0
    last = [x for x in logged(tmp_path / "run") if x["event"] == "eval"][-1]
    assert last["accuracy"] > 0.95
    assert last["f1"] > 0.95


def first_batch(examples, count):
    """The first examples of training, in file order."""
    made = inputs.EvaluationInput(examples.data_sets["training"], examples.features, batch=count)
    with contextlib.closing(made()) as batches:
        return next(batches)


def test_pairs_become_ids_with_a_limit_each(tmp_path, vocab):
    (tmp_path / "pairs.tsv").write_text(
        "query_id\tquery\tdocument\tlabel\n"
        "q7\tgood film\tthe\t1\n"  # `the` is no word of the vocabulary
        "q7\tgood film red blue plot\tbad plot bad plot bad\t0\n"
        "q8\t\tgood\t0\n"
    )
    chosen = options(
        tmp_path, vocab, input_file=(str(tmp_path / "pairs.tsv"),), max_query_length=4, max_document_length=4,
    )  # fmt: skip
    found = finetune.find_examples(chosen, small_config(vocab_size=12, max_position_embeddings=32))
    batch = first_batch(found, 3)
    unknown = SPECIAL.index("[UNK]")
    good, film, bad, plot = (int(ids(w)[0]) for w in ("good", "film", "bad", "plot"))
    expected = [
        [START, good, film, END, unknown, END],
        [START, good, film, END, bad, plot, bad, END],
        [START, END, good, END],
    ]
    for row, wanted in enumerate(expected):
        assert batch["input_ids"][row].tolist() == wanted + [0] * (16 - len(wanted))
        assert batch["input_mask"][row].sum() == len(wanted)
    assert batch["segment_ids"][0].tolist() == [0] * 4 + [1] * 2 + [0] * 10
    assert batch["query_ids"].tolist() == [0, 0, 1]
    assert batch["label_ids"].tolist() == [1, 0, 0]


def test_tfrecords_are_taken_as_they_are(tmp_path, vocab):
    # TSV becomes TFRecords of the form that run_classifier.py writes.
    from maskmill.tokenization.vocabulary import load_vocabulary
    from maskmill.tokenization.wordpiece import Tokenizer

    (tmp_path / "train.tsv").write_text("text\tlabel\ngood film\t1\nbad plot\t0\n")
    layout = finetune.PairLayout(length=8, first=None, second=None, start=START, end=END)
    records = str(tmp_path / "train.tfrecord")
    assert (
        finetune.write_examples(str(tmp_path / "train.tsv"), records, Tokenizer(load_vocabulary(vocab)), layout, 2) == 2
    )
    config = small_config(vocab_size=12, max_position_embeddings=32)
    # The sequence length is taken from the data.
    found = finetune.find_examples(options(tmp_path, None, input_file=(records,), max_seq_length=None), config)
    assert found.paths == [records]
    batch = first_batch(found, 2)
    assert batch["input_ids"].tolist() == [
        [START, *ids("good film"), END] + [0] * 4,
        [START, *ids("bad plot"), END] + [0] * 4,
    ]
    assert batch["label_ids"].tolist() == [1, 0]
    with pytest.raises(UnusableInputError, match="input_ids has length 8, but this training needs 16"):
        finetune.find_examples(options(tmp_path, None, input_file=(records,)), config)


def test_without_limits_the_longer_text_loses_its_end():
    layout = finetune.PairLayout(length=8, first=None, second=None, start=1, end=2)
    got, segments = layout(np.arange(10, 14), np.arange(20, 23))
    # There is room for 5 tokens, and of two texts of equal length the second loses one (_truncate_seq_pair).
    assert got == [1, 10, 11, 12, 2, 20, 21, 2]
    assert segments == [0] * 5 + [1] * 3
    assert layout(np.arange(10, 30), None)[0] == [1, *range(10, 16), 2]


def test_metrics():
    labels, predicted = np.array([1, 1, 0, 0, 1]), np.array([1, 0, 0, 1, 1])
    assert finetune.f1(labels, predicted, 2) == pytest.approx(2 / 3)
    assert finetune.f1(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1]), 3) == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    # The first relevant rank is 2 for query 0, 11 (too late) for query 1 and 1 for query 3; query 2 has none.
    queries = np.array([0] * 3 + [1] * 11 + [2] * 2 + [3] * 2)
    scores = np.array([3.0, 2.0, 1.0, *range(11, 0, -1), 1.0, 2.0, 5.0, 4.0])
    relevant = np.array([0, 1, 0] + [0] * 10 + [1] + [0, 0] + [1, 1], bool)
    assert finetune.mean_reciprocal_rank(queries, scores, relevant) == pytest.approx((0.5 + 0 + 0 + 1) / 4)
    shuffled = np.random.default_rng(0).permutation(len(queries))
    again = finetune.mean_reciprocal_rank(queries[shuffled], scores[shuffled], relevant[shuffled])
    assert again == pytest.approx(1.5 / 4)


def test_padded_examples_do_not_count():
    task = finetune.ClassificationTask(None, num_labels=2)
    part = {
        "logits": np.array([[0.0, 2.0], [2.0, 0.0], [9.0, 0.0]], np.float32),
        "label_ids": np.array([1, 0, 1]),
        "query_ids": np.array([0, 0, 5]),
        "example_weights": np.array([1.0, 1.0, 0.0], np.float32),
    }
    metrics = task.metrics([part])
    assert metrics["accuracy"] == metrics["f1"] == metrics["mrr_at_10"] == 1.0
    assert metrics["loss"] == pytest.approx(float(np.log1p(np.exp(-2.0))))


def test_bad_options_are_one_sentence(tmp_path, vocab):
    """The mistakes table has bad TSV files."""
    (tmp_path / "x.tsv").write_text("text\tlabel\nx\t1\n")
    (tmp_path / "empty.tsv").write_text("text\tlabel\n")
    config = small_config(vocab_size=12, max_position_embeddings=32)
    given = {"input_file": (str(tmp_path / "x.tsv"),)}
    with pytest.raises(UnusableInputError, match="together exceed --max_seq_length 16; lower one of them"):
        finetune.find_examples(options(tmp_path, vocab, **given, max_query_length=9, max_document_length=8), config)
    with pytest.raises(UnusableInputError, match="give --vocab_file"):
        finetune.find_examples(options(tmp_path, None, **given), config)
    with pytest.raises(UnusableInputError, match="64 tokens long, but the model has only 32 positions"):
        finetune.find_examples(options(tmp_path, vocab, **given, max_seq_length=64), config)
    with pytest.raises(UnusableInputError, match="there is no example in this file"):
        finetune.find_examples(options(tmp_path, vocab, input_file=(str(tmp_path / "empty.tsv"),)), config)


def test_a_label_beyond_the_models_is_refused(tmp_path, vocab):
    from maskmill.tokenization.vocabulary import load_vocabulary
    from maskmill.tokenization.wordpiece import Tokenizer

    (tmp_path / "train.tsv").write_text("text\tlabel\ngood\t1\nfilm\t4\nbad\t0\n")
    layout = finetune.PairLayout(length=8, first=None, second=None, start=2, end=3)
    records = str(tmp_path / "made.tfrecord")
    finetune.write_examples(str(tmp_path / "train.tsv"), records, Tokenizer(load_vocabulary(vocab)), layout, 5)
    chosen = options(tmp_path, vocab, input_file=(records,), max_seq_length=8)
    examples = finetune.find_examples(chosen, small_config(vocab_size=12, max_position_embeddings=32))
    sentence = (
        "made.tfrecord, record 2: label_ids is 4, but it must be from 0 to 1: --num_labels is 2, and labels count"
    )
    with pytest.raises(UnusableInputError, match=sentence):
        first_batch(examples, 2)


def test_a_spreadsheets_mark_at_the_start_of_a_tsv_file_is_no_text(tmp_path, vocab):
    (tmp_path / "train.tsv").write_bytes("\ufefftext\tlabel\r\ngood film\t1\r\n".encode())
    chosen = options(tmp_path, vocab, input_file=(str(tmp_path / "train.tsv"),))
    examples = finetune.find_examples(chosen, small_config(vocab_size=12, max_position_embeddings=32))
    assert examples.data_sets["training"].width == 16
