"""What TensorFlow makes of text: the ids of the pipeline."""

import random
import re
from functools import cache

import learned_vocabularies
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from properties import SEEDED, tries

from maskmill.tokenization import unicode_tables
from maskmill.tokenization.pre_token_classes import load as load_classes
from maskmill.tokenization.vocabulary import load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer
from maskmill.vocabularies.options import VocabularyOptions
from maskmill.vocabularies.transform_fn.saved_model import UNICODE, splitter

pytestmark = pytest.mark.elsewhere

LINE_ENDS = {10, 13}
CODE_POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000 and point not in LINE_ENDS]
WORDPIECE = [VocabularyOptions(size=400, do_lower_case=lower) for lower in (True, False)]
BPE = [VocabularyOptions(kind="bpe", size=600, add_prefix_space=prefix) for prefix in (False, True)]


# The library numbers pieces in another order at each call.
learn = cache(learned_vocabularies.learn)


@cache
def tensorflow(options):
    learned, _ = learn(options)
    return tf.function(splitter(learned, options), input_signature=[tf.TensorSpec([None], tf.string)])


def ids(options, texts):
    """What TensorFlow gives: a list of ids for each text."""
    return tensorflow(options)(tf.constant([text.encode() for text in texts], tf.string)).to_list()


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """A function that gives the pipeline's ids of a text with a WordPiece vocabulary."""

    @cache
    def tokenizer(options):
        path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
        path.write_text("".join(f"{piece}\n" for piece in learn(options)[0].pieces), encoding="utf-8")
        return Tokenizer(load_vocabulary(str(path)), do_lower_case=options.do_lower_case, unicode=UNICODE)

    return lambda options, text: tokenizer(options).tokenize_bytes(text.encode()).ids.tolist()


def library(options, text):
    """The ids that `tokenizers` gives for byte-level BPE: line by line."""
    lines = re.sub(r"\r+(?=\n|\Z)", "", text).replace("\r", " ").split("\n")
    return [number for line in lines for number in learn(options)[1].encode(line).ids]


def pick(generator, kinds):
    """A text of characters of all kinds, each kind as likely as another."""
    return "".join(chr(generator.choice(generator.choice(kinds))) for _ in range(generator.randrange(14)))


def by_kind(values):
    """The code points that have each value."""
    return [
        [point for point in np.flatnonzero(values == value).tolist() if point in VALID] for value in np.unique(values)
    ]


VALID = set(CODE_POINTS)


@cache
def kinds_of_wordpiece(lower):
    """The code points by what becomes of them, and those whose case is that of letters; newlines, and the sigma."""
    table = unicode_tables.load(UNICODE, lower)
    points = np.arange(0x110000)
    entries = table.blocks[table.pages[points >> 7].astype(np.int64) * 128 + points % 128]
    return [*filter(None, by_kind(entries & 15)), *filter(None, by_kind(entries >> 5 & 3)), [10, 13, 32], [ord("Σ")]]


@cache
def kinds_of_byte_level():
    """The code points of each class, and those that contractions and spaces are made of."""
    near = [[ord(letter) for letter in letters] for letters in ("'", " \t\n\r", "stmdrevl", "A1-")]
    return [*near, *filter(None, by_kind(load_classes()))]


@pytest.mark.parametrize("options", WORDPIECE, ids=["uncased", "cased"])
class TestWordPiece:
    def test_gives_the_pipelines_ids_for_every_code_point(self, options, pipeline):
        texts = [
            " ".join(f"a{chr(point)}b x{chr(point)}" for point in CODE_POINTS[first : first + 512])
            for first in range(0, len(CODE_POINTS), 512)
        ]
        assert ids(options, texts) == [pipeline(options, text) for text in texts]

    @given(seed=st.integers(0, 2**32))
    @tries(20, **SEEDED)
    def test_gives_the_pipelines_ids_for_any_text(self, options, seed, pipeline):
        generator = random.Random(seed)
        texts = [pick(generator, kinds_of_wordpiece(options.do_lower_case)) for _ in range(200)]
        assert ids(options, texts) == [pipeline(options, text.replace("\n", " ")) for text in texts]

    @pytest.mark.parametrize("length", [199, 200, 201])
    def test_takes_words_of_up_to_200_characters(self, options, length, pipeline):
        texts = ["o" * length, "é" * length, "o" * (length - 1) + "é" + " dogs", ""]
        assert ids(options, texts) == [pipeline(options, text) for text in texts]

    def test_leaves_out_what_is_not_utf8(self, options, pipeline):
        found = tensorflow(options)(tf.constant([b"the\xff dogs", b"\xc3"]))
        assert found.to_list() == [pipeline(options, "the dogs"), []]


@pytest.mark.parametrize("options", BPE, ids=["plain", "add_prefix_space"])
class TestByteLevel:
    def test_gives_the_librarys_ids_at_both_ends_of_every_class(self, options):
        ends = np.flatnonzero(np.diff(load_classes()))
        points = [point for point in np.union1d(ends, ends + 1).tolist() if point in VALID]
        texts = [f"a{chr(point)} {chr(point)}{chr(point)}'s" for point in points]
        assert ids(options, texts) == [library(options, text) for text in texts]

    @given(seed=st.integers(0, 2**32))
    @tries(20, **SEEDED)
    def test_gives_the_librarys_ids_for_any_text(self, options, seed):
        generator = random.Random(seed)
        texts = [pick(generator, kinds_of_byte_level()) for _ in range(200)]
        assert ids(options, texts) == [library(options, text) for text in texts]

    def test_merges_the_leftmost_pair_first(self, options):
        texts = ["e" * count for count in range(12)] + ["the the  thethe", *learned_vocabularies.TEXT]
        assert ids(options, texts) == [library(options, text) for text in texts]

    def test_reads_a_special_tokens_name_as_text(self, options):
        (found,) = ids(options, ["<mask>"])
        assert min(found) >= learn(options)[0].special

    def test_reads_what_is_not_utf8_as_a_replacement_character(self, options):
        found = tensorflow(options)(tf.constant([b"the\xff dogs"]))
        assert found.to_list() == [library(options, "the\ufffd dogs")]


@pytest.mark.parametrize("options", [WORDPIECE[0], BPE[0]], ids=["wordpiece", "bpe"])
@pytest.mark.parametrize("texts", [[], [""], ["", "\n"], ["\r"]], ids=["none", "empty", "newline", "return"])
def test_texts_without_words_have_no_ids(options, texts):
    assert ids(options, texts) == [[] for _ in texts]
