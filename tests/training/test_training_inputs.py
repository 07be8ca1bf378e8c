"""The order of the examples, resumption, sharing among hosts, and messages for unusable examples."""

import contextlib
import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from training_helpers import BACKEND, small_config

from maskmill.errors import UnusableInputError
from maskmill.reading import opening
from maskmill.reading.byte_ranges import LocalRanges
from training import inputs
from training.options import TrainOptions

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")

FEATURES = {"input_ids": inputs.Feature(4), "next_sentence_labels": inputs.Feature(1, scalar=True)}


def write(path, numbers, *, length=4, options=None, without=()):
    """Examples whose input_ids are [number, 0, …]."""
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for number in numbers:
            example = tf.train.Example()
            values = {"input_ids": [number] + [0] * (length - 1), "next_sentence_labels": [number % 2]}
            for name, value in values.items():
                if name not in without:
                    example.features.feature[name].int64_list.value.extend(value)
            writer.write(example.SerializeToString())
    return str(path)


@pytest.fixture
def files(tmp_path):
    """1,000 examples in five files of very different sizes."""
    cuts = [0, 3, 400, 401, 900, 1000]
    return [write(tmp_path / f"part-{i}", range(a, b)) for i, (a, b) in enumerate(itertools.pairwise(cuts))]


def opened(*paths, features=FEATURES):
    """The data set of TFRecords, as a training with these features reads it."""
    data_set = opening.open_data_set(",".join(map(str, paths)), ranges=LocalRanges())
    return inputs.fitted({"training": data_set}, features).data_sets["training"]


def stream(files, batch=32, features=FEATURES, **settings):
    return inputs.TrainingInput(data_set=opened(*files, features=features), features=features, batch=batch, **settings)


def take(made, count, start=0):
    with contextlib.closing(made(start)) as batches:
        return [next(batches)["input_ids"][:, 0].tolist() for _ in range(count)]


def evaluation(*paths, features=FEATURES, **settings):
    """The batches of an evaluation set."""
    return list(inputs.EvaluationInput(opened(*paths, features=features), features, **settings)())


def test_without_shuffling_examples_come_in_file_order(files):
    got = take(stream(files, shuffle=False), 40)
    assert list(itertools.chain(*got)) == [i % 1000 for i in range(1280)]


def test_each_example_comes_once_in_each_epoch(files):
    # 250 batches of 16 are 4 epochs, whose ends are within a batch.
    got = np.concatenate(take(stream(files, batch=16, shuffle_buffer=256), 250)).reshape(4, 1000)
    assert [sorted(epoch) for epoch in got.tolist()] == [list(range(1000))] * 4
    assert len({tuple(epoch) for epoch in got.tolist()}) == 4


@pytest.mark.parametrize("buffer", [64, 100000])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_resumed_input_goes_on_where_it_was(files, buffer, shuffle):
    made = stream(files, shuffle=shuffle, shuffle_buffer=buffer, seed=5)
    whole = take(made, 40)
    for start in (1, 31, 32):
        assert take(made, 40 - start, start) == whole[start:]


@pytest.mark.parametrize(("hosts", "shuffle"), [(2, True), (16, True), (2, False)])
def test_hosts_share_the_batches_of_one_host(files, hosts, shuffle):
    whole = take(stream(files, shuffle=shuffle), 5)
    parts = [take(stream(files, host=h, hosts=hosts, shuffle=shuffle), 5) for h in range(hosts)]
    assert [list(itertools.chain(*(p[i] for p in parts))) for i in range(5)] == whole


def test_the_seed_gives_the_order(files):
    assert take(stream(files, seed=1), 5) == take(stream(files, seed=1), 5)
    assert take(stream(files, seed=1), 5) != take(stream(files, seed=2), 5)
    # Neighbours in a file are seldom neighbours in a batch.
    first = sorted(take(stream(files, seed=1), 1)[0])
    assert np.mean(np.diff(first) == 1) < 0.5


def test_fewer_examples_than_a_batch_are_repeated(tmp_path):
    path = write(tmp_path / "few", range(5))
    got = take(stream([path], batch=32), 4)
    assert set(got[0]) == set(range(5))
    assert [len(b) for b in got] == [32] * 4


def test_an_evaluation_set_is_taken_whole(files):
    batches = evaluation(*files, batch=64)
    assert [len(b["input_ids"]) for b in batches] == [64] * 16
    real = np.concatenate([b["input_ids"][b["example_weights"] > 0, 0] for b in batches])
    np.testing.assert_array_equal(real, np.arange(1000))
    halves = [evaluation(*files, batch=64, host=h, hosts=2) for h in range(2)]
    both = [np.concatenate([a["input_ids"], b["input_ids"]]) for a, b in zip(*halves, strict=True)]
    np.testing.assert_array_equal(np.concatenate(both), np.concatenate([b["input_ids"] for b in batches]))


def test_each_evaluation_starts_with_the_first_example_and_ends_where_it_is_told(files):
    made = inputs.EvaluationInput(opened(*files), FEATURES, batch=64, max_batches=2)
    for _ in range(2):
        assert np.concatenate([b["input_ids"][:, 0] for b in made()]).tolist() == list(range(128))


# Bad input, with one sentence each


def test_labels_of_pairs_that_are_missing_name_the_flag(tmp_path):
    path = write(tmp_path / "part", range(3), without=("next_sentence_labels",))
    sentence = (
        "part: the examples have no feature next_sentence_labels.*--next_sentence_prediction False for examples of"
    )
    with pytest.raises(UnusableInputError, match=sentence):
        opened(path)


def test_a_wrong_sequence_length(tmp_path):
    path = write(tmp_path / "part", range(3), length=8)
    with pytest.raises(UnusableInputError, match="part: input_ids has length 8, but this training needs 4"):
        opened(path)


def test_an_example_unlike_the_first(tmp_path):
    write(tmp_path / "part", range(3))
    write(tmp_path / "odd", range(1), length=8)
    (tmp_path / "both").write_bytes((tmp_path / "part").read_bytes() + (tmp_path / "odd").read_bytes())
    with pytest.raises(UnusableInputError, match="both, record 4: input_ids has length 8, but it must be 4"):
        evaluation(str(tmp_path / "both"), batch=2)


def test_no_example_at_all(tmp_path):
    path = write(tmp_path / "part", [])
    with pytest.raises(UnusableInputError, match="part: there is no example in these files"):
        opened(path)


GOOD = {
    "input_ids": [5, 6, 7, 0],
    "input_mask": [1, 1, 1, 0],
    "segment_ids": [0, 0, 1, 0],
    "masked_lm_positions": [1, 0],
    "masked_lm_ids": [8, 0],
    "masked_lm_weights": [1.0, 0.0],
    "next_sentence_labels": [1],
}


def write_pretraining(path, *changes, without=()):
    """Pre-training examples of four tokens, each the good one with some features changed."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for change in changes:
            example = tf.train.Example()
            for name, values in (GOOD | change).items():
                if name in without:
                    continue
                kind = "float_list" if any(isinstance(v, float) for v in values) else "int64_list"
                getattr(example.features.feature[name], kind).value.extend(values)
            writer.write(example.SerializeToString())
    return str(path)


def test_masks_that_are_not_stored_name_the_flag(tmp_path):
    path = write_pretraining(tmp_path / "part", {}, without=("masked_lm_positions",))
    with pytest.raises(UnusableInputError, match="for examples of --dynamic_masking, name their directory"):
        opened(path, features=inputs.pretraining_features(4, 2))


def test_segments_that_are_missing_are_zeros_where_no_pairs_are_learnt(tmp_path):
    path = write_pretraining(tmp_path / "part", *[{}] * 3, without=("segment_ids", "next_sentence_labels"))
    features = inputs.pretraining_features(4, 2, next_sentence=False)
    opened(path, features=features)
    (arrays,) = evaluation(path, features=features, batch=3)
    assert arrays["segment_ids"].shape == (3, 4)
    assert not arrays["segment_ids"].any()


def test_segments_are_needed_where_pairs_are_learnt(tmp_path):
    path = write_pretraining(tmp_path / "part", {}, without=("segment_ids",))
    with pytest.raises(UnusableInputError, match="no feature segment_ids"):
        opened(path, features=inputs.pretraining_features(4, 2))


def test_packed_rows_are_not_mixed_with_others(tmp_path):
    path = write_pretraining(tmp_path / "part", {"cu_seqlens": [0, 2, 4], "next_sentence_labels": [0, 1]})
    other = write_pretraining(tmp_path / "other", {})
    options = TrainOptions(output_dir="run", input_file=(path,), eval_file=(path,))
    found = inputs.find_pretraining_examples(options, small_config(vocab_size=9), next_sentence=True)
    assert found.features["cu_seqlens"].length == 3
    for given in ({"eval_file": (other,)}, {"input_file": (other,)}):
        with pytest.raises(UnusableInputError, match=r"part has several sequences in a row and .*other has one"):
            changed = dataclasses.replace(options, **given)
            inputs.find_pretraining_examples(changed, small_config(vocab_size=9), next_sentence=True)


def model_features():
    return inputs.with_ranges(inputs.pretraining_features(4, 2), small_config(vocab_size=9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_ids": [5, 9, 1, 0]}, "input_ids is 9, but it must be from 0 to 8: the model's vocabulary has only 9"),
        ({"input_ids": [5, -1, 1, 0]}, "input_ids is -1, but it must be from 0 to 8"),
        ({"input_ids": [5, 2**32 + 5, 1, 0]}, "input_ids is 4294967301, but it must be from 0 to 8"),
        ({"input_mask": [1, 2, 0, 0]}, "input_mask is 2, but it must be from 0 to 1"),
        ({"segment_ids": [0, 7, 0, 0]}, r"segment_ids is 7, .* the model has 2 segments \(type_vocab_size\)"),
        ({"masked_lm_positions": [5000, 0]}, "masked_lm_positions is 5000, .* an example has 4 tokens"),
        ({"masked_lm_positions": [1, -7]}, "masked_lm_positions is -7, but it must be from 0 to 3"),
        ({"masked_lm_ids": [9, 0]}, "masked_lm_ids is 9, but it must be from 0 to 8"),
        ({"masked_lm_weights": [float("nan"), 0.0]}, "masked_lm_weights is nan, but it must be a number"),
        ({"masked_lm_weights": [1.0, -1.0]}, "masked_lm_weights is -1.0, but it must be a number"),
        ({"masked_lm_weights": [1.0, float("inf")]}, "masked_lm_weights is inf, but it must be a number"),
        ({"next_sentence_labels": [5]}, "next_sentence_labels is 5, but it must be from 0 to 1"),
        ({"next_sentence_labels": []}, "next_sentence_labels has length 0, but it must be 1"),
        ({"masked_lm_ids": [8.0, 0.0]}, "masked_lm_ids must be integers"),
        ({"input_ids": [5, 6]}, "input_ids has length 2, but it must be 4"),
        ({"masked_lm_weights": [1, 0]}, "masked_lm_weights must be floats"),
    ],
)
def test_the_file_the_record_the_field_and_the_value_are_named(tmp_path, change, message):
    good = write_pretraining(tmp_path / "good", *[{}] * 5)
    bad = write_pretraining(tmp_path / "bad", {}, {}, change, {})
    sentence = f"bad, record 3: {message}"
    with pytest.raises(UnusableInputError, match=sentence):
        evaluation(good, bad, features=model_features(), batch=2)
    with pytest.raises(UnusableInputError, match=sentence):
        take(stream([good, bad], batch=4, features=model_features()), 8)


def test_a_missing_feature_of_a_later_record_is_named(tmp_path):
    path = write(tmp_path / "part", range(3))
    bare = write(tmp_path / "bare", range(1), without=("next_sentence_labels",))
    with open(path, "ab") as file, open(bare, "rb") as more:
        file.write(more.read())
    with pytest.raises(UnusableInputError, match="part, record 4: the feature next_sentence_labels is missing"):
        evaluation(path, batch=2)


def test_a_record_that_is_no_example_is_named(tmp_path):
    write(tmp_path / "part", range(3))
    with tf.io.TFRecordWriter(str(tmp_path / "text")) as writer:
        writer.write(b"Anarchism is a political philosophy.")
    (tmp_path / "both").write_bytes((tmp_path / "part").read_bytes() + (tmp_path / "text").read_bytes())
    with pytest.raises(UnusableInputError, match=r"both, record 4: this is no example \(tf\.train\.Example\)"):
        evaluation(str(tmp_path / "both"), batch=2)


def test_a_batch_that_hosts_cannot_share(files):
    with pytest.raises(UnusableInputError, match="batch of 30 examples cannot be shared evenly by 4 hosts"):
        stream(files, batch=30, hosts=4)
