"""Loading a tokenizer.json: what is compiled, what the library does, and what is refused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up.tokenizers import byte_level_bpe
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from maskmill.errors import UnusableInputError
from maskmill.tokenization.tokenizers import load_tokenizer

LINES = ("a stab at it's 13 é 中", "<mask>ab  <s>", " ab", "12 .!")
TEXT = "\n\n".join(LINES).encode()


def saved(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """A tokenizer.json of byte-level BPE in which something is changed."""
    content = json.loads(byte_level_bpe(1).to_str())
    change(content)
    return json.dumps(content).encode()


def word_pieces() -> Tokenizer:
    """A tokenizer of BERT's kind."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "s", "##tab", "at", "it", "'", "13", "[", "]"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["model"].update(continuing_subword_prefix="", end_of_word_suffix="", unk_token="<unk>"),
        lambda content: content.update(truncation=None, post_processor={"type": "ByteLevel"} | BYTE_LEVEL),
        lambda content: content["pre_tokenizer"].update(add_prefix_space=True),
    ],
    ids=["empty affixes", "post-processor", "prefix space"],
)
def test_plain_byte_level_bpe_is_compiled(change: Callable[[dict[str, Any]], Any]) -> None:
    assert_equal_to_the_library(saved(change), is_compiled=True)


BYTE_LEVEL = {"add_prefix_space": False, "trim_offsets": True, "use_regex": True}


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(normalizer={"type": "NFC"}),
        lambda content: content.update(normalizer={"type": "Lowercase"}),
        lambda content: content["pre_tokenizer"].update(use_regex=False),
        lambda content: content.update(pre_tokenizer={"type": "Whitespace"}),
        lambda content: content.update(pre_tokenizer=None),
        lambda content: content["model"].update(end_of_word_suffix="b"),
        lambda content: content["model"].update(ignore_merges=True),
        lambda content: content["model"].update(byte_fallback=True),
        lambda content: content["model"]["vocab"].pop("ÿ"),
        lambda content: content["model"]["vocab"].update({"far away": 1 << 20}),
    ],
    ids=[
        *("nfc", "lower case", "one word", "other words", "no words", "suffix", "ignore merges", "byte fallback"),
        *("no piece for a byte", "ids too large"),
    ],
)
def test_everything_else_goes_through_the_library(change: Callable[[dict[str, Any]], Any]) -> None:
    assert_equal_to_the_library(saved(change), is_compiled=False)


def test_word_pieces_go_through_the_library() -> None:
    text = assert_equal_to_the_library(word_pieces().to_str().encode(), is_compiled=False)
    assert text.unknown == 12  # é, 中, mask twice …


def assert_equal_to_the_library(content: bytes, *, is_compiled: bool) -> Any:
    """Loads a tokenizer and compares what it makes of TEXT; returns that."""
    loaded = load_tokenizer("tokenizer.json", content)
    assert bool(loaded.kernels) == is_compiled
    text = loaded.tokenizer().tokenize_bytes(TEXT)
    library = Tokenizer.from_str(content.decode())
    encodings: list[Any] = [library.encode(line, add_special_tokens=False) for line in LINES]
    assert text.ids.tolist() == [number for encoding in encodings for number in encoding.ids]
    assert text.segment_ends.tolist() == np.cumsum([len(encoding.ids) for encoding in encodings]).tolist()
    assert text.words == sum(len(set(encoding.word_ids)) for encoding in encodings)
    assert text.continues is not None
    assert len(text.continues) - text.continues.sum() == text.words
    return text


def test_nothing_is_truncated_or_padded() -> None:
    tokenizer = byte_level_bpe(1)
    plain = load_tokenizer("t", tokenizer.to_str().encode()).tokenizer().tokenize_bytes(TEXT)
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50)
    cut = load_tokenizer("t", tokenizer.to_str().encode()).tokenizer().tokenize_bytes(TEXT)
    assert cut.ids.tolist() == plain.ids.tolist()


def test_the_library_keeps_documents_and_takes_carriage_returns_for_spaces() -> None:
    tokenizer = load_tokenizer("t", saved(lambda content: content.update(normalizer={"type": "NFC"}))).tokenizer()
    text = tokenizer.tokenize_bytes(b"\n a\rb\n\n \xc2\xa0\nab\na\n\n")
    assert text.document_ends.tolist() == [1, 3]
    assert text.segment_lines.tolist() == [1, 4, 5]
    assert (text.bytes, len(text.segment_ends)) == (17, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"^t\.json: this is not JSON; --tokenizer_file wants"),
        (b"[PAD]\n[UNK]\n", r"^t\.json: this is not JSON;"),
        (b"\xff\xfe", r"^t\.json: this is not JSON;"),
        (b'{"a": 1}', r"^t\.json: the library tokenizers [\d.]+ cannot read this as a tokenizer\.json \("),
        (b"[]", r"cannot read this as a tokenizer\.json"),
        (saved(lambda content: content["model"]["merges"].append(["no", "such"])), "cannot read this"),
        (saved(lambda content: content["model"]["merges"].append(["ÿ" * 2, "ÿ"])), "cannot read this"),
        (saved(lambda content: content.update(pre_tokenizer={"type": "Custom"})), "cannot read this"),
    ],
    ids=["empty", "vocab.txt", "not utf-8", "other json", "list", "unknown merge", "merge of nothing", "custom"],
)
def test_what_is_no_tokenizer_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        load_tokenizer("t.json", content)


@pytest.mark.parametrize(("name", "value"), [("dropout", 0.1), ("dropout", 1.0), ("dropout", 1e-9), ("alpha", 0.2)])
def test_a_tokenizer_that_draws_pieces_is_refused(name: str, value: float) -> None:
    message = rf"^t\.json: the model has {name} {value}, so it draws .*; write \"{name}\": null into the file\.$"
    with pytest.raises(UnusableInputError, match=message):
        load_tokenizer("t.json", saved(lambda content: content["model"].update({name: value})))


def test_a_dropout_of_nothing_is_none() -> None:
    assert_equal_to_the_library(saved(lambda content: content["model"].update(dropout=0.0)), is_compiled=True)


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    with pytest.raises(UnusableInputError, match=r"^t\.json: .*mask"):
        load_tokenizer("t.json", tokenizer.to_str().encode())


def test_a_line_that_the_library_cannot_split_is_named() -> None:
    content = saved(lambda content: content.update(normalizer={"type": "NFC"}))
    broken = json.loads(content)
    broken["model"]["vocab"].pop("ÿ")
    broken["model"]["unk_token"] = "gone"
    tokenizer = load_tokenizer("t.json", json.dumps(broken).encode()).tokenizer()
    unknown = "\U0010ffff"  # its bytes have no ÿ, so that it is known
    assert len(tokenizer.tokenize_bytes(f"ab\n{unknown}\n".encode()).segment_ends) == 2
    del broken["model"]["vocab"]["ô"]
    tokenizer = load_tokenizer("t.json", json.dumps(broken).encode()).tokenizer()
    with pytest.raises(UnusableInputError, match=r"^text, line 2: the library tokenizers cannot split this line \("):
        tokenizer.tokenize_bytes(f"ab\n{unknown}\n".encode())
