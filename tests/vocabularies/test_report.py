"""The report's figures, by hand and beside what `tokenizers` gives."""

import itertools

import numpy as np
import pytest
from learned_vocabularies import TEXT, learn
from oracles.line_joints import documents_of, with_joints
from tokenizers import Tokenizer as TheirTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from maskmill.errors import UnusableInputError
from maskmill.vocabularies import report
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.vocabulary_files import vocabulary_files

WORDPIECE = VocabularyOptions(size=150)
BPE = VocabularyOptions(kind="bpe", size=320)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of a vocabulary of each kind, and a text."""
    directory = tmp_path_factory.mktemp("vocabularies")
    for options in (WORDPIECE, BPE):
        (directory / options.kind).mkdir()
        for name, content in vocabulary_files(learn(options)[0], options).items():
            (directory / options.kind / name).write_bytes(content)
    (directory / "text").write_text("\n".join((*TEXT, "", "Unseen: ÀÉ ῼ zebras, 🦊s; ﷽!")))
    return directory


def test_figures_by_hand(tmp_path):
    vocabulary = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "fox", "##es")
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary))
    (tmp_path / "first").write_text("The foxes zzz\n\n")
    (tmp_path / "second").write_text("the")
    texts = [str(tmp_path / name) for name in ("first", "second")]
    made = report.measure(str(tmp_path / "vocab.txt"), WORDPIECE, [], texts, kind="eval")
    assert made["text"] == {"kind": "eval", "files": 2, "bytes": 16, "lines": 3, "words": 4, "all": True}
    assert made["vocabularies"] == [
        {
            "name": "this vocabulary", "pieces": 8, "do_lower_case": True, "tokens": 5,
            "pieces_per_word": 1.25, "bytes_per_token": 3.2,
            "whole_words": 0.5, "unknown_words": 0.25, "coverage": round(11 / 14, 6),
        }
    ]  # fmt: skip
    assert "| this vocabulary | 8 | 1.2500 | 3.200 | 50.000% | 25.000% | 78.571% |" in report.as_table(made)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_figures_are_those_of_tokenizers(written, kind):
    theirs = TheirTokenizer.from_file(str(written / kind / "tokenizer.json"))
    ours = str(written / kind / ("vocab.txt" if kind == "wordpiece" else "tokenizer.json"))
    made = report.measure(ours, WORDPIECE if kind == "wordpiece" else BPE, [], [str(written / "text")], kind="eval")
    lines = (written / "text").read_text().split("\n")
    cleaned = [BertNormalizer(lowercase=False).normalize_str(line) for line in lines]
    words = [word for line in cleaned for word, _ in BertPreTokenizer().pre_tokenize_str(line)]
    alone = [theirs.encode(f" {word}", add_special_tokens=False) for word in words]
    unknown = np.array(["[UNK]" in one.tokens for one in alone])
    lengths = np.array([len(word) for word in words])
    in_documents = itertools.chain(*map(with_joints, documents_of(lines)))
    tokens = sum(len(theirs.encode(line, add_special_tokens=False).ids) for line in in_documents)
    (figures,) = made["vocabularies"]
    assert made["text"]["words"] == len(words)
    assert figures["tokens"] == tokens
    assert figures["pieces_per_word"] == round(tokens / len(words), 6)
    assert figures["whole_words"] == round(sum(len(one.ids) == 1 for one in alone) / len(words) - unknown.mean(), 6)
    assert figures["unknown_words"] == round(unknown.mean(), 6)
    assert figures["coverage"] == round(lengths[~unknown].sum() / lengths.sum(), 6)


def test_other_vocabularies_are_measured_on_the_same_text(written):
    others = [str(written / "wordpiece/tokenizer.json"), str(written / "bpe/tokenizer.json")]
    made = report.measure(
        str(written / "wordpiece/vocab.txt"), WORDPIECE, others, [str(written / "text")], kind="train"
    )
    ours, same, bpe = made["vocabularies"]
    figures = ("pieces", "tokens", "pieces_per_word", "bytes_per_token", "whole_words", "unknown_words", "coverage")
    assert [same[name] for name in figures] == [ours[name] for name in figures]
    assert (ours["do_lower_case"], same["do_lower_case"]) == (True, None)
    assert (bpe["name"], bpe["unknown_words"], bpe["coverage"]) == (others[1], 0, 1)
    assert "No text is held out" in report.as_table(made)


def test_no_more_than_the_first_part_of_much_text_is_measured(written, monkeypatch):
    monkeypatch.setattr(report, "MOST_BYTES", 100)
    texts = [str(written / "text")] * 3
    made = report.measure(str(written / "wordpiece/vocab.txt"), WORDPIECE, [], texts, kind="eval")
    assert (made["text"]["files"], made["text"]["lines"], made["text"]["all"]) == (3, len(TEXT) + 1, False)
    assert "the first part of it" in report.as_table(made)


def test_words_that_become_nothing_have_no_pieces(tmp_path, written):
    # A lone accent is a word of the text, and nothing is left of it where accents are stripped.
    (tmp_path / "text").write_text("the \u0301 dogs \u0301 \u0301\n\u0301\n")
    path = str(written / "wordpiece/vocab.txt")
    (made,) = report.measure(path, WORDPIECE, [], [str(tmp_path / "text")], kind="eval")["vocabularies"]
    theirs = TheirTokenizer.from_file(str(written / "wordpiece/tokenizer.json"))
    assert made["tokens"] == len(theirs.encode("the dogs", add_special_tokens=False).ids)
    assert made["unknown_words"] == 0


def test_text_is_lower_cased_as_the_tokenizer_beside_a_vocabulary_says(tmp_path):
    cased = VocabularyOptions(size=60, do_lower_case=False)
    learned, _ = learn(cased, ["か が カ ガ"] * 3)
    for name, content in vocabulary_files(learned, cased).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "text").write_text("が ガ か")
    path = str(tmp_path / "vocab.txt")
    made = report.measure(path, cased, [path], [str(tmp_path / "text")], kind="eval")["vocabularies"]
    assert [one["do_lower_case"] for one in made] == [False, False]
    (tmp_path / "tokenizer.json").unlink()
    made = report.measure(path, cased, [path], [str(tmp_path / "text")], kind="eval")["vocabularies"]
    assert [one["do_lower_case"] for one in made] == [False, True]


def test_text_that_is_not_utf8_is_named(tmp_path, written):
    (tmp_path / "text").write_bytes(b"a\nb\xff\n")
    with pytest.raises(UnusableInputError, match="line 2: this text is not UTF-8"):
        report.measure(str(written / "wordpiece/vocab.txt"), WORDPIECE, [], [str(tmp_path / "text")], kind="eval")
