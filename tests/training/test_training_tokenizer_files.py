"""The tokenizer in an export makes the same tokens as ours."""

import json

import numpy as np
import pytest
from tokenizers import Tokenizer as TheirTokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import ByteLevel
from training_helpers import BACKEND, DATA, small_config

from maskmill.errors import UnusableInputError
from maskmill.tokenization import tokenizer_json
from maskmill.tokenization.special_tokens import roles_of
from maskmill.tokenization.vocabulary import load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer
from training import tokenizer_files
from training.options import ConvertOptions

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


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_an_export_has_the_ids_of_the_examples(tmp_path, duplicates):
    """Of a vocabulary with blank and repeated lines, by MLPerf's rule or by that of all others."""
    path = write_vocabulary(tmp_path / "v.txt", "the", "", "", "cat", "the", "sat", "cat", "on")
    ours = load_vocabulary(path, duplicates)
    expected = dict(zip(ours.pieces, ours.ids.tolist(), strict=True))
    (tmp_path / "run").mkdir()
    tokenizer_files.keep_vocabulary(path, str(tmp_path / "run"), duplicates)
    tokenizer_files.keep_vocabulary(path, str(tmp_path / "run"), duplicates)  # as each start of a run does
    made = tokenizer_files.of_vocabulary(str(tmp_path / "run" / "vocab.txt"), True, MODEL)
    for name in ("vocab.txt", "tokenizer.json"):
        (tmp_path / name).write_bytes(made[name])
    assert WordPiece.read_file(str(tmp_path / "vocab.txt")) == expected
    theirs = TheirTokenizer.from_str(made["tokenizer.json"].decode())
    assert theirs.get_vocab() == expected
    assert theirs.encode("the cat sat on", add_special_tokens=False).ids == [
        expected[w] for w in ["the", "cat", "sat", "on"]
    ]


def of_conversion(directory, *, run=None, model=MODEL, **given):
    options = ConvertOptions(input=str(directory), output="out", format="huggingface", **given)
    return tokenizer_files.of_conversion(options, beside=str(directory), run=run or {}, model=model)


def test_the_vocabulary_comes_from_the_option_or_from_beside_the_input(tmp_path):
    with pytest.raises(UnusableInputError, match="--vocab_file is missing"):
        of_conversion(tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", "beside")
    assert "beside" in of_conversion(tmp_path)["vocab.txt"].decode()
    assert json.loads(of_conversion(tmp_path, run={"do_lower_case": False})["tokenizer_config.json"]) == (
        json.loads(of_conversion(tmp_path, do_lower_case=False)["tokenizer_config.json"])
    )
    given = write_vocabulary(tmp_path / "other.txt", "given")
    assert "given" in of_conversion(tmp_path, vocab_file=given)["vocab.txt"].decode()
    # A tokenizer of Hugging Face's is taken as it is.
    (tmp_path / "vocab.json").write_bytes(b"{}")
    (tmp_path / "merges.txt").write_bytes(b"a b")
    assert set(of_conversion(tmp_path)) == {"vocab.txt", "vocab.json", "merges.txt"}
    assert "given" in of_conversion(tmp_path, vocab_file=given)["vocab.txt"].decode()


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


def byte_level_tokenizer(pad="<pad>"):
    """The content of RoBERTa's tokenizer.json for a vocabulary of bytes; the padding is a token of its own."""
    special = ["<s>", pad, "</s>", "<unk>", "<mask>", "<doc>"]
    pieces = [*special, *sorted(ByteLevel.alphabet())]
    ids = {piece: number for number, piece in enumerate(pieces)}
    return tokenizer_json.byte_level_bpe(ids, [], special, roles_of(special), add_prefix_space=False)


def test_a_tokenizer_file_gets_what_transformers_wants_beside_it(tmp_path):
    content = tokenizer_json.to_bytes(byte_level_tokenizer())
    (tmp_path / "tokenizer.json").write_bytes(content)
    (tmp_path / "merges.txt").write_bytes(b"#version: 0.2\n")
    (tmp_path / "report.json").write_bytes(b"{}")
    made = of_conversion(tmp_path, tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert set(made) == {"tokenizer.json", "merges.txt", "tokenizer_config.json", "special_tokens_map.json"}
    assert made["tokenizer.json"] == content
    config = json.loads(made["tokenizer_config.json"])
    assert (config["tokenizer_class"], config["model_max_length"]) == ("PreTrainedTokenizerFast", 64)
    assert (config["mask_token"], config["bos_token"], config["eos_token"]) == ("<mask>", "<s>", "</s>")
    assert config["additional_special_tokens"] == ["<doc>"]
    # So does the tokenizer beside the input; and what is there already is kept.
    assert of_conversion(tmp_path) == made
    (tmp_path / "tokenizer_config.json").write_bytes(b'{"pad_token": "<unk>"}')
    kept = of_conversion(tmp_path)
    assert kept == {name: made[name] for name in ("tokenizer.json", "merges.txt")} | {
        "tokenizer_config.json": b'{"pad_token": "<unk>"}'
    }
    assert tokenizer_files.special_ids(kept)["pad_token"] == 3


def test_other_tokenizers_are_opened_as_they_are(tmp_path):
    unigram = {
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], ["a", -1.0]]},
        "added_tokens": [{"id": 4, "content": "<mask>", "special": True}],
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(unigram))
    made = of_conversion(tmp_path)
    config = json.loads(made["tokenizer_config.json"])
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert (config["cls_token"], config["mask_token"]) == ("<s>", "<mask>")
    assert tokenizer_files.special_ids(made) == {"unk_token": 0, "cls_token": 1, "sep_token": 2, "mask_token": 4}


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"model": {}}', b"\xff"], ids=["cut", "list", "empty", "bytes"])
def test_what_is_no_tokenizer_is_refused(tmp_path, content):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(UnusableInputError, match=r"this is no tokenizer\.json"):
        of_conversion(tmp_path, tokenizer_file=str(tmp_path / "tokenizer.json"))


def test_a_tokenizer_larger_than_the_models_vocabulary_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json.to_bytes(byte_level_tokenizer()))
    with pytest.raises(UnusableInputError, match="this vocabulary has 262 tokens, but the model only 200"):
        of_conversion(tmp_path, model=small_config(vocab_size=200))


def test_the_tokenizer_beside_a_vocabulary_says_whether_text_is_lower_cased(tmp_path):
    # Without capital letters, as in Japanese, the vocabulary itself cannot say it.
    path = write_vocabulary(tmp_path / "vocab.txt", "か", "##が")
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ids = {piece: number for number, piece in enumerate((*special, "か", "##が"))}
    cased = tokenizer_json.wordpiece(ids, special, roles_of(special), do_lower_case=False)
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json.to_bytes(cased))
    made = tokenizer_files.of_vocabulary(path, None, MODEL)
    assert json.loads(made["tokenizer_config.json"])["do_lower_case"] is False
    tokenizer_files.keep_vocabulary(path, str(tmp_path / "run"))
    assert of_conversion(tmp_path / "run")["tokenizer_config.json"] == made["tokenizer_config.json"]
    # A run on TSV files has tokenized them itself.
    lowered = of_conversion(tmp_path / "run", run={"do_lower_case": True})
    assert json.loads(lowered["tokenizer_config.json"])["do_lower_case"] is True
    # One with other pieces belongs to another vocabulary.
    write_vocabulary(tmp_path / "vocab.txt", "か")
    made = tokenizer_files.of_vocabulary(path, None, MODEL)
    assert json.loads(made["tokenizer_config.json"])["do_lower_case"] is True
    tokenizer_files.keep_vocabulary(path, str(tmp_path / "another"))
    assert [file.name for file in (tmp_path / "another").iterdir()] == ["vocab.txt"]


def test_a_run_keeps_its_tokenizer(tmp_path):
    path, run = tmp_path / "made/tokenizer.json", tmp_path / "run"
    path.parent.mkdir()
    path.write_bytes(tokenizer_json.to_bytes(byte_level_tokenizer()))
    (path.parent / "special_tokens_map.json").write_bytes(b'{"pad_token": "<pad>"}')
    for _ in range(2):
        tokenizer_files.keep_tokenizer(str(path), str(run))
    assert {file.name: file.read_bytes() for file in run.iterdir()} == {
        file.name: file.read_bytes() for file in path.parent.iterdir()
    }
    path.write_bytes(b"{}")
    with pytest.raises(UnusableInputError, match="this run was begun with another vocabulary"):
        tokenizer_files.keep_tokenizer(str(path), str(run))
