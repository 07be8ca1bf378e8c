"""transformers opens a model's directory with the tokenizer.json there, and makes nearly the same of the vocabulary.

transformers is in an environment of its own (make test-torch), in which transformers_program.py runs.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from learned_vocabularies import TEXT, learn
from tokenizers import Tokenizer as TheirTokenizer

from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.vocabulary_files import model_files, vocabulary_files

PYTHON = os.environ.get("MASKMILL_READERS_PYTHON", sys.executable)
pytestmark = pytest.mark.elsewhere

OPTIONS = {
    "wordpiece": VocabularyOptions(size=250, reserved_tokens=2),
    "bpe": VocabularyOptions(kind="bpe", size=400, reserved_tokens=2),
}
TEXTS = (*TEXT, "The [MASK] or <mask> fox, [unused0] and naïve Zürich 東京", "")
# BERT's own class in transformers takes words of more than 100 characters for unknown.
LONG = ("x" * 101, "fox" * 40 + " the " + "x" * 200, "x" * 201, "é" * 150, "the\rfox", " ")


def opened(learned, options, directory, texts=TEXTS):
    """What transformers makes of the files of a vocabulary."""
    for name, content in model_files(vocabulary_files(learned, options), options).items():
        (directory / name).write_bytes(content)
    (directory / "texts").write_text(json.dumps(texts))
    program = Path(__file__).with_name("transformers_program.py")
    command = [PYTHON, str(program), str(directory), str(directory / "texts"), str(directory / "output")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((directory / "output").read_text())


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_transformers_opens_the_directory_of_a_model(tmp_path, kind):
    learned, _ = learn(OPTIONS[kind])
    made = opened(learned, OPTIONS[kind], tmp_path)
    auto, anew = made["auto"], made["anew"]
    assert auto["size"] == len(learned.pieces)
    theirs = TheirTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert auto["ids"] == [theirs.encode(text).ids for text in TEXTS]
    assert auto["words"] == [theirs.encode(text).word_ids for text in TEXTS]
    mask = learned.pieces.index("[MASK]" if kind == "wordpiece" else "<mask>")
    assert auto["special"]["mask_token"] == mask
    assert auto["ids"][-2].count(mask) == 1
    assert made["limit"] == 512
    assert made["config"] == {
        "model_type": "bert" if kind == "wordpiece" else "roberta",
        "vocab_size": len(learned.pieces),
        "pad_token_id": learned.pieces.index("[PAD]" if kind == "wordpiece" else "<pad>"),
        "hidden_size": 768,
        "max_position_embeddings": 512 if kind == "wordpiece" else 514,
    }
    if kind == "bpe":
        assert auto["decoded"][: len(TEXT)] == list(TEXT)
    # What it makes of the vocabulary alone does the same. Whether BERT's decoder cleans spaces up depends on whether a
    # tokenizer is opened or made.
    compared = set(auto) - {"saved", "class"} - ({"decoded"} if kind == "wordpiece" else set())
    assert {name: auto[name] for name in compared} == {name: anew[name] for name in compared}
    assert in_one_form(auto["saved"]) == in_one_form(anew["saved"])
    assert in_one_form(json.loads((tmp_path / "tokenizer.json").read_text())) == in_one_form(anew["saved"])


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_transformers_gives_the_ids_of_tokenizer_json_for_long_words_too(tmp_path, kind):
    learned, _ = learn(OPTIONS[kind])
    made = opened(learned, OPTIONS[kind], tmp_path, LONG)["auto"]
    theirs = TheirTokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert made["ids"] == [theirs.encode(text).ids for text in LONG]


def in_one_form(tokenizer):
    """A tokenizer.json without the differences that mean nothing, or that are meant.

    No normaliser changes the special tokens of RoBERTa, and no prefix is an empty one. Words are unknown from 201
    characters on, as in google-research/bert; transformers says 101.
    """
    model = tokenizer["model"]
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        model[name] = model.get(name) or None
    model.pop("max_input_chars_per_word", None)
    for token in tokenizer["added_tokens"]:
        token.pop("normalized", None)
    return tokenizer
