"""TensorFlow's files of a vocabulary: what is in them, who reads them, and what can go wrong."""

import os
import signal
import subprocess
import sys
import time
from functools import cache

import apache_beam as beam
import learned_vocabularies
import numpy as np
import psutil
import pytest
import tensorflow as tf
import tensorflow_transform as tft

from maskmill.errors import RunFailedError
from maskmill.vocabularies.learning import WordCounts
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.transform_fn import process
from maskmill.vocabularies.transform_fn.word_vocabulary import write_word_vocabulary
from pipelines import LocalRunner
from transforms import WriteTransformFn

pytestmark = pytest.mark.elsewhere

TEXTS = ["The dogs' foxes don't jump!", "", "Zwölf 色は"]
OPTIONS = [VocabularyOptions(size=400), VocabularyOptions(kind="bpe", size=600)]
# Counts that no 32 or 64 bits of floating point hold; words with spaces, with bytes that end lines elsewhere, with NUL.
WORDS = {
    b" the": 2**62 + 1,
    b"b": 2**53 + 1,
    b"a": 2**53 + 1,
    b"a\0": 2**53,
    " \u2028\x85\t".encode(): 7,
    b"  ": 7,
    b"rare": 1,
}


def table(counts):
    words = sorted(counts)
    return WordCounts(
        text=np.frombuffer(b"".join(words), np.uint8),
        ends=np.cumsum([len(word) for word in words]),
        counts=np.array([counts[word] for word in words], np.int64),
    )


@cache
def learn(options):
    return learned_vocabularies.learn(options)


@cache
def files_of(options):
    return process.transform_fn_files(table(WORDS), 2, learn(options)[0], options)


@pytest.fixture(scope="module", params=OPTIONS, ids=["wordpiece", "bpe"])
def made(request, tmp_path_factory):
    """Options, and the folder of the files that are made with them."""
    directory = tmp_path_factory.mktemp("vocabulary")
    for name, content in files_of(request.param).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return request.param, str(directory / process.FOLDER)


def expected(options):
    theirs = learn(options)[1]
    return [theirs.encode(text).ids for text in TEXTS]


class TestFiles:
    def test_tensorflow_transform_makes_ids_of_text(self, made):
        options, folder = made
        output = tft.TFTransformOutput(folder)
        layer = output.transform_features_layer()
        assert layer({"text": tf.constant(TEXTS)})["ids"].to_list() == expected(options)
        assert output.transform_raw_features({"text": tf.constant(TEXTS)})["ids"].to_list() == expected(options)
        data = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(lambda text: layer({"text": text})["ids"])
        assert [ids for batch in data for ids in batch.to_list()] == expected(options)

    def test_tensorflow_alone_makes_ids_of_text(self, made):
        options, folder = made
        # In a process that has nothing but TensorFlow: no operations of another package.
        program = f"""if True:
            import tensorflow as tf
            saved = tf.saved_model.load({folder + "/transform_fn"!r})
            served = saved.signatures["serving_default"](tf.constant({TEXTS!r}))
            ids = saved.transform_fn({{"text": tf.constant({TEXTS!r})}})["ids"]
            assert ids.values.numpy().tolist() == served["ids"].numpy().tolist()
            assert ids.row_splits.numpy().tolist() == served["row_splits"].numpy().tolist()
            print(ids.to_list())
        """
        printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        assert printed.splitlines()[-1] == str(expected(options))

    def test_the_output_is_described(self, made):
        options, folder = made
        output = tft.TFTransformOutput(folder)
        assert output.num_buckets_for_transformed_feature("ids") == len(learn(options)[0].pieces)
        assert output.transformed_feature_spec() == {
            "ids": tf.io.RaggedFeature(tf.int64, "ids", row_splits_dtype=tf.int64)
        }

    def test_the_pieces_and_the_words_are_vocabularies(self, made):
        options, folder = made
        output = tft.TFTransformOutput(folder)
        pieces = [piece.decode() for piece in output.vocabulary_by_name(process.VOCABULARY)]
        assert pieces == list(learn(options)[0].pieces)
        assert output.vocabulary_by_name(process.WORDS) == [
            b"4611686018427387905  the",
            b"9007199254740993 b",
            b"9007199254740993 a",
            b"9007199254740992 a\0",
            "7  \u2028\x85\t".encode(),
            b"7   ",
        ]

    def test_the_step_of_a_pipeline_writes_them(self, tmp_path):
        text, words = tmp_path / "part-00000-of-00001", str(tmp_path / "words")
        text.write_text("A dog jumps.\nTwo dogs jump.\n\n")
        with beam.Pipeline(runner=LocalRunner(0)) as pipeline:
            pipeline | WriteTransformFn(words, input=str(text), size=64)
        output = tft.TFTransformOutput(os.path.join(words, process.FOLDER))
        assert output.vocabulary_by_name(process.WORDS)[0].startswith(b"2 ")

    def test_names_are_those_that_are_swept(self, made):
        options, _ = made
        folders = {pattern.removesuffix("/*") for pattern in process.PATTERNS}
        assert {name.rpartition("/")[0] for name in files_of(options)} == folders

    def test_the_same_vocabulary_gives_the_same_bytes(self):
        again = process.transform_fn_files(table(WORDS), 2, learn(OPTIONS[0])[0], OPTIONS[0])
        assert again == files_of(OPTIONS[0])


class TestWordVocabulary:
    def test_a_word_that_tensorflow_transform_drops_is_an_error(self, tmp_path):
        with pytest.raises(RunFailedError, match="kept 1 of 2 words"):
            write_word_vocabulary(table({b"line\nend": 3, b"word": 2}), 1, "words", str(tmp_path))

    def test_reads_more_than_one_block_of_words(self, tmp_path):
        counts = {b"%06d" % number: 1 + number % 3 for number in range(60_001)}
        path = write_word_vocabulary(table(counts), 2, "words", str(tmp_path))
        with open(path, "rb") as file:
            found = [line.split() for line in file]
        kept = sorted(((count, word) for word, count in counts.items() if count >= 2), reverse=True)
        assert found == [[b"%d" % count, word] for count, word in kept]


class TestProcess:
    def test_its_error_is_one_sentence(self, monkeypatch):
        monkeypatch.setattr(process, "_START", "raise ValueError('no such operation')")
        with pytest.raises(RunFailedError, match=r"could not be made \(ValueError: no such operation\); run the comm"):
            process.transform_fn_files(table(WORDS), 2, *learn(OPTIONS[0])[:1], OPTIONS[0])

    def test_says_so_if_it_is_killed(self, monkeypatch):
        monkeypatch.setattr(process, "_START", "import os; os.kill(os.getpid(), 9)")
        with pytest.raises(RunFailedError, match=r"Something killed the process .* \(SIGKILL\), often for want of mem"):
            process.transform_fn_files(table(WORDS), 2, *learn(OPTIONS[0])[:1], OPTIONS[0])

    def test_ends_with_its_parent(self, tmp_path):
        # A parent whose process makes files for ever.
        never = tmp_path / "never.py"
        never.write_text(
            "import time\nfrom maskmill.vocabularies.transform_fn import process\n"
            f"def wait(*_):\n    open({str(tmp_path / 'started')!r}, 'w').close()\n    time.sleep(600)\n"
            "process._make = wait\n"
        )
        program = (
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
            "from maskmill.vocabularies.transform_fn import process\n"
            "process._START = process._START.replace('process.serve', 'import never; process.serve')\n"
            f"process._run((), {str(tmp_path)!r})\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", program])
        while not os.path.exists(tmp_path / "started"):
            assert parent.poll() is None
            time.sleep(0.05)
        (child,) = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        child.wait(60)
        assert not child.is_running()
