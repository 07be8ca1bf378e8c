"""The order of the examples, resumption, sharing among hosts, and messages for unusable examples."""

import gzip
import itertools
import shutil

import numpy as np
import pytest
import tensorflow as tf
from training_helpers import BACKEND

from training import inputs, training_input
from transforms.errors import UnusableInputError

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


def stream(files, batch=32, **settings):
    return training_input.TrainingInput(
        blocks=training_input.find_blocks(files), features=FEATURES, batch=batch, **settings
    )


def take(made, count, start=0):
    batches = made(start)
    return [next(batches)["input_ids"][:, 0].tolist() for _ in range(count)]


def test_without_shuffling_examples_come_in_file_order(files):
    got = take(stream(files, shuffle=False), 40)
    assert list(itertools.chain(*got)) == [i % 1000 for i in range(1280)]


def test_each_example_comes_once_in_each_epoch_of_its_lane(files):
    # 250 batches of 16 are 4 epochs; a lane may be some blocks ahead of another.
    got = np.concatenate(take(stream(files, batch=16, shuffle_buffer=1024), 250))
    counts = np.bincount(got, minlength=1000)
    assert counts.min() >= 3
    assert counts.max() <= 5
    assert counts.sum() == 4000


@pytest.mark.parametrize("buffer", [64, 100000])
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_resumed_input_goes_on_where_it_was(files, buffer, shuffle):
    made = stream(files, shuffle=shuffle, shuffle_buffer=buffer, seed=5)
    whole = take(made, 40)
    for start in (1, 31, 32):
        assert take(made, 40 - start, start) == whole[start:]


@pytest.mark.parametrize("hosts", [2, 16])
def test_hosts_share_the_batches_of_one_host(files, hosts):
    whole = take(stream(files), 5)
    parts = [take(stream(files, host=h, hosts=hosts), 5) for h in range(hosts)]
    assert [list(itertools.chain(*(p[i] for p in parts))) for i in range(5)] == whole


def test_hosts_share_unshuffled_batches(files):
    parts = [take(stream(files, host=h, hosts=2, shuffle=False), 3) for h in range(2)]
    assert [a + b for a, b in zip(*parts, strict=True)] == take(stream(files, shuffle=False), 3)


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


def test_packed_files_give_the_same_batches(files, tmp_path):
    packed = []
    for path in files:
        packed.append(f"{path}.gz")
        with open(path, "rb") as plain, gzip.open(packed[-1], "wb") as file:
            shutil.copyfileobj(plain, file)
    assert take(stream(packed), 20) == take(stream(files), 20)


def test_an_index_is_used_where_it_fits(tmp_path):
    path = write(tmp_path / "part", range(10))
    offsets = training_input.record_offsets(path)
    size = (tmp_path / "part").stat().st_size
    ends = np.append(offsets[1:], size)
    index = tmp_path / "part.idx"
    index.write_text("".join(f"{o} {e - o}\n" for o, e in zip(offsets, ends, strict=True)))
    np.testing.assert_array_equal(training_input.record_offsets(path), offsets)
    # An index with two of the ten offsets, which ends where the file ends, is believed: so it is read.
    index.write_text(f"{offsets[0]} {offsets[5]}\n{offsets[5]} {size - offsets[5]}\n")
    np.testing.assert_array_equal(training_input.record_offsets(path), offsets[[0, 5]])
    # An index of an older version of the file is ignored.
    index.write_text(f"{offsets[0]} {offsets[1]}\n")
    np.testing.assert_array_equal(training_input.record_offsets(path), offsets)


def test_an_evaluation_set_is_taken_whole(files):
    batches = list(inputs.evaluation_batches(files, FEATURES, batch=64))
    assert [len(b["input_ids"]) for b in batches] == [64] * 16
    real = np.concatenate([b["input_ids"][b["example_weights"] > 0, 0] for b in batches])
    np.testing.assert_array_equal(real, np.arange(1000))
    halves = [list(inputs.evaluation_batches(files, FEATURES, batch=64, host=h, hosts=2)) for h in range(2)]
    both = [np.concatenate([a["input_ids"], b["input_ids"]]) for a, b in zip(*halves, strict=True)]
    np.testing.assert_array_equal(np.concatenate(both), np.concatenate([b["input_ids"] for b in batches]))


def test_files_are_found_without_their_indexes(files, tmp_path):
    (tmp_path / "part-0.idx").write_text("")
    (tmp_path / "manifest.json").write_text("{}")
    assert inputs.find_files(str(tmp_path / "*")) == files
    assert inputs.find_files(f"{files[1]},{files[0]}") == [files[1], files[0]]


# Bad input, with one sentence each


def test_a_pattern_without_files(tmp_path):
    with pytest.raises(UnusableInputError, match="no examples match; check the path"):
        inputs.find_files(str(tmp_path / "part-*"))


def test_a_missing_feature(tmp_path):
    path = write(tmp_path / "part", range(3), without=("next_sentence_labels",))
    with pytest.raises(UnusableInputError, match="part: the examples have no feature next_sentence_labels"):
        inputs.check_features([path], FEATURES)


def test_a_wrong_sequence_length(tmp_path):
    path = write(tmp_path / "part", range(3), length=8)
    with pytest.raises(UnusableInputError, match="part: input_ids has length 8, but this training needs 4"):
        inputs.check_features([path], FEATURES)


def test_an_example_unlike_the_first(tmp_path):
    path = write(tmp_path / "part", range(3))
    odd = write(tmp_path / "odd", range(1), length=8)
    (tmp_path / "both").write_bytes((tmp_path / "part").read_bytes() + (tmp_path / "odd").read_bytes())
    assert odd
    assert path
    with pytest.raises(UnusableInputError, match="both: an example has other features or lengths than the first"):
        list(inputs.evaluation_batches([str(tmp_path / "both")], FEATURES, batch=2))


def test_no_example_at_all(tmp_path):
    path = write(tmp_path / "part", [])
    with pytest.raises(UnusableInputError, match="there is no example in the training files"):
        training_input.find_blocks([path])
    with pytest.raises(UnusableInputError, match="the evaluation set has no example"):
        list(inputs.evaluation_batches([path], FEATURES, batch=2))


def test_no_tfrecord(tmp_path):
    (tmp_path / "part").write_text("Anarchism is a political philosophy and movement.\n")
    with pytest.raises(UnusableInputError, match="part: this is no TFRecord of examples"):
        inputs.check_features([str(tmp_path / "part")], FEATURES)


def test_a_file_that_is_cut_off(tmp_path):
    path = tmp_path / "part"
    write(path, range(3))
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UnusableInputError, match="part: this TFRecord is cut off after 2 examples"):
        training_input.find_blocks([str(path)])


def test_a_damaged_record(tmp_path):
    path = tmp_path / "part"
    write(path, range(3))
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    with pytest.raises(UnusableInputError, match="part: a record is damaged"):
        take(stream([str(path)], batch=3), 1)


def test_another_vocabulary():
    batch = {"input_ids": np.array([[1, 99]]), "masked_lm_ids": np.array([[1]])}
    inputs.check_ids(batch, 100)
    with pytest.raises(
        UnusableInputError, match="input_ids contain token 99, but the model's vocabulary has only 99 tokens"
    ):
        inputs.check_ids(batch, 99)


def test_a_batch_that_hosts_cannot_share(files):
    with pytest.raises(UnusableInputError, match="batch of 30 examples cannot be shared evenly by 4 hosts"):
        stream(files, batch=30, hosts=4)
