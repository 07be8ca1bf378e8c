"""The files of a vocabulary are those that `tokenizers` writes, and give the ids that our pipeline gives."""

import json

import numpy as np
import pytest
from learned_vocabularies import TEXT, learn
from tokenizers import Tokenizer as TheirTokenizer
from tokenizers.models import BPE

from maskmill.errors import UnusableInputError
from maskmill.tokenization.vocabulary import load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer
from maskmill.vocabularies.learning import LearnedVocabulary
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.vocabulary_files import MODEL_FILES, VOCABULARY_FILES, model_files, vocabulary_files

WORDPIECE = VocabularyOptions(size=200, reserved_tokens=2)
CASED = VocabularyOptions(size=200, do_lower_case=False)
BPE_OPTIONS = VocabularyOptions(kind="bpe", size=350, reserved_tokens=2)
PREFIXED = VocabularyOptions(kind="bpe", size=350, add_prefix_space=True)
UNSEEN = ("The  lazier Quickest foxes\u00a0jumped — 你好, don't!", "[unuse] naïve İstanbul 🦊 x", " leading", "")


@pytest.mark.parametrize("options", [WORDPIECE, CASED, BPE_OPTIONS, PREFIXED], ids=["wp", "cased", "bpe", "prefixed"])
def test_tokenizer_json_is_what_tokenizers_writes(options):
    learned, theirs = learn(options)
    written = vocabulary_files(learned, options)["tokenizer.json"].decode()
    read = TheirTokenizer.from_str(written)
    assert read.to_str(pretty=True) + "\n" == written
    for line in (*TEXT, *UNSEEN):
        assert read.encode(line, add_special_tokens=False).ids == theirs.encode(line, add_special_tokens=False).ids


@pytest.mark.parametrize("options", [WORDPIECE, CASED], ids=["lower", "cased"])
def test_tokenizer_json_gives_the_ids_of_vocab_txt(tmp_path, options):
    learned, _ = learn(options)
    files = vocabulary_files(learned, options)
    (tmp_path / "vocab.txt").write_bytes(files["vocab.txt"])
    vocabulary = load_vocabulary(str(tmp_path / "vocab.txt"))
    assert vocabulary.pieces == learned.pieces
    ours = Tokenizer(vocabulary, do_lower_case=options.decided.do_lower_case, unicode="15.1.0")
    theirs = TheirTokenizer.from_str(files["tokenizer.json"].decode())
    for line in (*TEXT, *UNSEEN, "a" * 200, "a" * 201):
        ids = ours.tokenize_bytes(line.encode()).ids.tolist()
        assert theirs.encode(line, add_special_tokens=False).ids == ids, line


def test_where_tokenizers_normalises_in_another_way(tmp_path):
    pieces = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ο", "##ς", "##σ", "a", "##b", "##\ue000")
    learned = LearnedVocabulary(
        kind="wordpiece", pieces=pieces, special=5, alphabet=6, merges=np.zeros((0, 2), np.int32)
    )
    files = vocabulary_files(learned, VocabularyOptions())
    (tmp_path / "vocab.txt").write_bytes(files["vocab.txt"])
    ours = Tokenizer(load_vocabulary(str(tmp_path / "vocab.txt")), unicode="15.1.0")
    theirs = TheirTokenizer.from_str(files["tokenizer.json"].decode())
    for text, own, other in (("ΟΣ", "ο ##ς", "ο ##σ"), ("a\ue000b", "a ##\ue000 ##b", "a ##b")):
        assert " ".join(pieces[number] for number in ours.tokenize_bytes(text.encode()).ids) == own
        assert " ".join(theirs.encode(text, add_special_tokens=False).tokens) == other


def test_gpt2s_files_are_those_of_tokenizers(tmp_path):
    learned, theirs = learn(BPE_OPTIONS)
    files = vocabulary_files(learned, BPE_OPTIONS)
    theirs.model.save(str(tmp_path))
    assert files["merges.txt"] == (tmp_path / "merges.txt").read_bytes()
    assert json.loads(files["vocab.json"]) == json.loads((tmp_path / "vocab.json").read_bytes())
    (tmp_path / "vocab.json").write_bytes(files["vocab.json"])
    model = BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    assert [piece.id for piece in model.tokenize("jumps")] == [piece.id for piece in theirs.model.tokenize("jumps")]


def test_special_tokens_are_found_in_raw_text_and_reserved_tokens_are_not():
    learned, _ = learn(BPE_OPTIONS)
    read = TheirTokenizer.from_str(vocabulary_files(learned, BPE_OPTIONS)["tokenizer.json"].decode())
    ids = read.encode("the <mask>[unused0]", "x").ids
    pieces = [learned.pieces[number] for number in ids]
    # RoBERTa's <mask> takes the space before it along.
    assert pieces == ["<s>", "the", "<mask>", *"[unused0]", "</s>", "</s>", "x", "</s>"]
    assert read.decode(read.encode("Zwölf 色 🦊 foxes").ids) == "Zwölf 色 🦊 foxes"


def test_the_files_for_a_model_say_how_it_reads_its_vocabulary():
    learned, _ = learn(BPE_OPTIONS)
    files = model_files(vocabulary_files(learned, BPE_OPTIONS), BPE_OPTIONS)
    assert tuple(files) == (*VOCABULARY_FILES["bpe"], *MODEL_FILES)
    config, tokenizer = json.loads(files["config.json"]), json.loads(files["tokenizer_config.json"])
    assert config["vocab_size"] == 350
    assert [config[f"{name}_token_id"] for name in ("bos", "pad", "eos")] == [0, 1, 2]
    assert tokenizer["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert [tokenizer[f"{name}_token"] for name in ("bos", "mask", "sep")] == ["<s>", "<mask>", "</s>"]
    learned, _ = learn(CASED)
    files = model_files(vocabulary_files(learned, CASED), CASED)
    assert tuple(files) == (*VOCABULARY_FILES["wordpiece"], *MODEL_FILES)
    assert json.loads(files["config.json"])["model_type"] == "bert"
    assert json.loads(files["tokenizer_config.json"])["do_lower_case"] is False


def test_special_tokens_of_ones_own():
    options = VocabularyOptions(
        kind="bpe", size=300, special_tokens=("<doc>", "[MASK]", "[PAD]", "[CLS]", "[SEP]", "[UNK]")
    )
    learned, _ = learn(options)
    files = model_files(vocabulary_files(learned, options), options)
    config = json.loads(files["config.json"])
    # Positions are counted from the one after the padding's id.
    assert (config["pad_token_id"], config["max_position_embeddings"]) == (2, 515)
    assert json.loads(files["special_tokens_map.json"])["additional_special_tokens"] == ["<doc>"]
    read = TheirTokenizer.from_str(files["tokenizer.json"].decode())
    assert read.encode("<doc>").tokens == ["[CLS]", "<doc>", "[SEP]"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"special_tokens": ("[PAD]", "[UNK]", "[CLS]", "[SEP]")}, "lacks the mask_token ([MASK])"),
        ({"kind": "bpe", "special_tokens": ("<s>", "</s>", "<unk>", "<pad>")}, "([MASK] or <mask>)"),
        ({"special_tokens": ("[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]")}, "put [PAD] first"),
        ({"special_tokens": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[UNK]")}, "[UNK] comes twice"),
        ({"special_tokens": ("[PAD]", "a b")}, "'a b' is empty or has white space"),
        (
            {"special_tokens": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"), "reserved_tokens": 1},
            "[unused0] comes twice with the --reserved_tokens",
        ),
        ({"add_prefix_space": True}, "--add_prefix_space goes with --kind bpe"),
        ({"kind": "bpe", "do_lower_case": True}, "--do_lower_case goes with --kind wordpiece"),
        ({"size": 5}, "--size 5 leaves no room"),
        ({"kind": "bpe", "size": 261, "reserved_tokens": 1}, "--size 261 leaves no room"),
        ({"kind": "bpe", "limit_alphabet": 100}, "--limit_alphabet goes with --kind wordpiece"),
    ],
)  # fmt: skip
def test_options_that_no_vocabulary_can_have(given, message):
    with pytest.raises(UnusableInputError) as raised:
        VocabularyOptions(**given)
    assert message in str(raised.value)
