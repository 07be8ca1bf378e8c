"""The tokenizer in an export makes the same tokens as ours."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer as TheirTokenizer
from training_helpers import BACKEND, DATA, small_config

from training import tokenizer_files
from transforms.errors import UnusableInputError
from transforms.tokenization.vocabulary import load_vocabulary
from transforms.tokenization.wordpiece import Tokenizer

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="no backend is used")

MODEL = small_config(vocab_size=30522)
TEXTS = [
    "Anarchism is a Political philosophy, and a movement.",
    "Zürich's cafés (naïve?) 東京 2026-11-22",
    "x" * 150 + " " + "y" * 201,
]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_the_exported_tokenizer_makes_our_tokens(tmp_path, do_lower_case):
    made = tokenizer_files.of_vocabulary(str(DATA / "vocab.txt"), do_lower_case, MODEL)
    theirs = TheirTokenizer.from_str(made["tokenizer.json"].decode())
    ours = Tokenizer(load_vocabulary(str(DATA / "vocab.txt")), do_lower_case=do_lower_case)
    for text in TEXTS:
        expected = ours.tokenize_bytes(text.encode()).ids
        got = theirs.encode(text)
        np.testing.assert_array_equal(got.ids, [101, *expected, 102])
    pair = theirs.encode("the people", "of the movement")
    assert pair.type_ids == [0] * 4 + [1] * 4
    assert (tmp_path / "x").write_bytes(made["vocab.txt"])
    assert load_vocabulary(str(tmp_path / "x")).pieces == load_vocabulary(str(DATA / "vocab.txt")).pieces


def write_vocabulary(path, *words, special=("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")):
    path.write_text("\n".join([*special, *words]) + "\n")
    return str(path)


@pytest.mark.parametrize(("words", "lower"), [(("apple", "##s"), True), (("apple", "Apple"), False)])
def test_case_follows_from_the_vocabulary(tmp_path, words, lower):
    made = tokenizer_files.of_vocabulary(write_vocabulary(tmp_path / "v.txt", *words), None, MODEL)
    config = json.loads(made["tokenizer_config.json"])
    assert config["do_lower_case"] is lower
    assert config["model_max_length"] == MODEL.max_position_embeddings
    assert json.loads(made["tokenizer.json"])["normalizer"]["lowercase"] is lower


def test_what_fills_examples_up_is_the_first_piece(tmp_path):
    path = write_vocabulary(tmp_path / "v.txt", "a", special=("[UNK]", "[CLS]", "[SEP]", "[MASK]"))
    made = tokenizer_files.of_vocabulary(path, None, MODEL)
    assert json.loads(made["special_tokens_map.json"])["pad_token"] == "[UNK]"


def of_conversion(directory, vocabulary=None, do_lower_case=None, run=None):
    return tokenizer_files.of_conversion(vocabulary, do_lower_case, beside=str(directory), run=run or {}, model=MODEL)


def test_the_vocabulary_comes_from_the_option_or_from_beside_the_input(tmp_path):
    with pytest.raises(UnusableInputError, match="--vocab_file is missing"):
        of_conversion(tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", "beside")
    assert "beside" in of_conversion(tmp_path)["vocab.txt"].decode()
    assert json.loads(of_conversion(tmp_path, run={"do_lower_case": False})["tokenizer_config.json"]) == (
        json.loads(of_conversion(tmp_path, do_lower_case=False)["tokenizer_config.json"])
    )
    given = write_vocabulary(tmp_path / "other.txt", "given")
    assert "given" in of_conversion(tmp_path, given)["vocab.txt"].decode()
    # A tokenizer of Hugging Face's is taken as it is.
    (tmp_path / "vocab.json").write_bytes(b"{}")
    (tmp_path / "merges.txt").write_bytes(b"a b")
    assert set(of_conversion(tmp_path)) == {"vocab.txt", "vocab.json", "merges.txt"}
    assert "given" in of_conversion(tmp_path, given)["vocab.txt"].decode()


def test_a_vocabulary_larger_than_the_models_is_refused():
    with pytest.raises(UnusableInputError, match="this vocabulary has 30522 tokens, but the model only 500"):
        tokenizer_files.of_vocabulary(str(DATA / "vocab.txt"), None, small_config())


def test_a_run_keeps_its_vocabulary(tmp_path):
    path = write_vocabulary(tmp_path / "words.txt", "a")
    for _ in range(2):
        tokenizer_files.keep_vocabulary(path, str(tmp_path / "run"))
    assert (tmp_path / "run/vocab.txt").read_bytes() == (tmp_path / "words.txt").read_bytes()
    write_vocabulary(tmp_path / "words.txt", "b")
    with pytest.raises(UnusableInputError, match="this run was begun with another vocabulary"):
        tokenizer_files.keep_vocabulary(path, str(tmp_path / "run"))
