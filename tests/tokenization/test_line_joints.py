"""Between two lines of a document tokenizers see a space, or nothing within scripts that are written without spaces."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.line_joints import joined
from properties import tries
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from maskmill.tokenization import line_joints
from maskmill.tokenization.tokenized_text import TokenizedText
from maskmill.tokenization.tokenizers import load_tokenizer

SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
# Sentences that begin and end in all ways: of scripts with and without spaces, with digits, quotes, signs.
SENTENCES = (
    "SERIAL-kenttä puuttuu.", "Tapahtui sisäinen virhe", "The quick brown fox isn't 13!", "the end (of it)", "“Zitat.”",
    "Съешь ещё булок.", "Ωραία μέρα;", "שלום עולם.", "مرحبا بالعالم؟", "हिन्दी वाक्य है।",
    "한국어 문장이다.", "한국어 문장。", "色は匂へど散りぬるを。", "カタカナだけ", "「引用だ」と言った。", "これは2020",
    "2020年です", "这是一个句子。", "他说“你好！”", "你好!", "ABC股份有限公司", "見よ、Tokyo", "ＡＢＣ", "ｶﾀｶﾅ。",
    "ภาษาไทยไม่มีช่องว่าง", "ພາສາລາວ", "ភាសាខ្មែរ។", "မြန်မာစာ။", "བོད་ཡིག།", "𠀀𠀁。",
    "3.14", "…", "🙂", "- a list", "'s Gravenhage", "$5", "ﬁn", "𝒳 is a set", "e\u0301tude", "x  y\tz",
)  # fmt: skip
# The first words of the names of letters of scripts that are written without spaces between words.
UNSPACED = {
    "CJK", "IDEOGRAPHIC", "KANBUN", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO", "THAI", "LAO", "TIBETAN",
    "MYANMAR", "KHMER", "TAI", "BALINESE", "JAVANESE", "YI", "AHOM", "TANGUT", "KHITAN", "NUSHU", "HENTAIGANA",
    "FULLWIDTH", "MASU",
}  # fmt: skip
UNSPACED_STARTS = ("HALFWIDTH KATAKANA", "NEW TAI LUE", "VERTICAL KANA", "VERTICAL IDEO", "OLD CHINESE")


def test_letters_are_of_the_scripts_that_their_names_say() -> None:
    kinds = line_joints.load()
    letters = [
        c for c in map(chr, range(0x110000)) if unicodedata.category(c)[0] == "L" and unicodedata.name(c, "") != ""
    ]
    wrong = []
    for letter in letters:
        name = unicodedata.name(letter)
        is_unspaced = name.split(" ")[0] in UNSPACED or name.startswith(UNSPACED_STARTS)
        if kinds[ord(letter)] != (line_joints.UNSPACED if is_unspaced else line_joints.SPACED):
            wrong.append(name)
    assert wrong == []
    assert len(letters) > 100_000


def byte_level(*, library: bool = False, prefix_space: bool = False, split: bool = False) -> Tokenizer:
    """Byte-level BPE; library: as one that is not compiled; split: its words are those of GPT-4's kind of pattern."""
    tokenizer = Tokenizer(models.BPE())
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=not split)
    pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    before: list[Any] = [pre_tokenizers.Split(_regex(pattern), "isolated")] if split else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, splitter]) if before else splitter
    if library:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, initial_alphabet=alphabet, special_tokens=SPECIAL_TOKENS, show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    return tokenizer


def _regex(pattern: str) -> Any:
    from tokenizers import Regex

    return Regex(pattern)


def unigram(scheme: str, *, split_white: bool = False) -> Tokenizer:
    """SentencePiece's kind; split_white: words are split at white space before, as XLM-RoBERTa's tokenizer does."""
    tokenizer = Tokenizer(models.Unigram())
    spaces = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces]) if split_white else spaces
    )
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=SPECIAL_TOKENS, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator((*SENTENCES, "。", "一", "の", ".", "▁") * 3, trainer)
    return tokenizer


def prepended() -> Tokenizer:
    """BPE over whole texts, whose spaces a normaliser replaces, as Llama's first tokenizer."""
    characters = sorted({*"".join(SENTENCES), *".▁。一の"})
    names = [*SPECIAL_TOKENS, *characters, "▁t", "▁th", "en", "。「", "ta"]
    merges = [("▁", "t"), ("▁t", "h"), ("e", "n"), ("。", "「"), ("t", "a")]
    ids = {name: number for number, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


TOKENIZERS = {
    "compiled": byte_level(),
    "compiled prefix": byte_level(prefix_space=True),
    "library": byte_level(library=True),
    "library prefix": byte_level(library=True, prefix_space=True),
    "split": byte_level(split=True),
    "metaspace always": unigram("always"),
    "metaspace first": unigram("first"),
    "metaspace never": unigram("never"),
    "prepended": prepended(),
}
WORDS_ONLY = {"white space, metaspace": unigram("always", split_white=True)}


def tokenized(tokenizer: Tokenizer, documents: Sequence[Sequence[str]]) -> TokenizedText:
    text = "\n\n".join("\n".join(lines) for lines in documents)
    return load_tokenizer("t.json", tokenizer.to_str().encode()).tokenizer().tokenize_bytes(text.encode())


def ids_of(text: TokenizedText) -> list[list[int]]:
    """The ids of each document."""
    ends = text.segment_ends[text.document_ends - 1].tolist()
    return [part.tolist() for part in np.split(text.ids, ends[:-1])]


def decoded(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False))


DOCUMENTS = st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=7), min_size=1, max_size=5)


@pytest.mark.parametrize("name", TOKENIZERS)
@tries(60)
@given(documents=DOCUMENTS)
def test_pieces_of_a_document_are_its_text(name: str, documents: list[list[str]]) -> None:
    tokenizer = TOKENIZERS[name]
    found = ids_of(tokenized(tokenizer, documents))
    assert len(found) == len(documents)
    for lines, ids in zip(documents, found, strict=True):
        text = (
            unicodedata.normalize("NFC", joined(lines)) if tokenizer.normalizer and "library" in name else joined(lines)
        )
        expected = f" {text}" if "prefix" in name else text
        assert decoded(tokenizer, ids) == expected


@pytest.mark.parametrize("name", [*TOKENIZERS, *WORDS_ONLY])
def test_ids_are_those_of_running_text(name: str) -> None:
    tokenizer = (TOKENIZERS | WORDS_ONLY)[name]
    # Lines whose ends no tokenizer joins: words of letters after a stop.
    lines = [line for line in SENTENCES if line[-1] in ".!。" and line[0].isalpha()]
    documents = [[before, after] for before in lines for after in lines]
    found = ids_of(tokenized(tokenizer, documents))
    expected: list[Any] = [tokenizer.encode(joined(lines), add_special_tokens=False) for lines in documents]
    assert found == [encoding.ids for encoding in expected]
    assert len(lines) > 10


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("REPLY", "SERIAL-kenttä", " "),
        ("你好。", "世界", ""),
        ("你好。", "World", " "),
        ("Hello.", "世界", " "),
        ("你好", "「World」", ""),
        ("「你好」(1)", "2. 世界", ""),
        ("日本語", "カタカナ", ""),
        ("日本語", "한국어", " "),
        ("한국어。", "한국어", " "),
        ("ภาษาไทย", "ภาษาไทย", ""),
        ("ไทย 5", "ລາວ", ""),
        ("ភាសា។", "ខ្មែរ", ""),
        ("མཐའ།", "བོད", ""),
        ("हिन्दी।", "हिन्दी", " "),
        ("12", "34", " "),
        ("日本", "12", " "),
        ("…", "日本", " "),
        ("日本\u3000", "\u3000日本", ""),
    ],
)
def test_what_stands_between_two_lines(before: str, after: str, expected: str) -> None:
    for name in ("compiled", "library"):
        (ids,) = ids_of(tokenized(TOKENIZERS[name], [[before, after]]))
        assert decoded(TOKENIZERS[name], ids) == before + expected + after


def test_lines_with_added_tokens_are_joined_as_others() -> None:
    tokenizer = TOKENIZERS["compiled"]
    documents = [["one.", "<mask> two", "three <s>", "four", "你好。", "世界<mask>", "世界"], ["<mask>x", "y"]]
    found = ids_of(tokenized(tokenizer, documents))
    assert [decoded(tokenizer, ids) for ids in found] == [joined(lines) for lines in documents]


def test_a_line_that_its_tokenizer_takes_for_nothing_goes_on_a_document() -> None:
    tokenizer = Tokenizer.from_str(TOKENIZERS["library"].to_str())
    tokenizer.normalizer = normalizers.Replace("?", "")
    text = tokenized(tokenizer, [["a.", "???", "b."]])
    assert decoded(tokenizer, text.ids.tolist()) in ("a. b.", "a.  b.")
    assert text.segment_lines.tolist()[-1] == 2


@pytest.mark.parametrize("name", TOKENIZERS)
def test_lines_are_encoded_alone_by_the_rule_of_older_versions(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    made = load_tokenizer("t.json", tokenizer.to_str().encode(), by_version_2=True).tokenizer()
    text = made.tokenize_bytes("\n".join(SENTENCES).encode())
    expected: list[Any] = [tokenizer.encode(line, add_special_tokens=False) for line in SENTENCES]
    assert text.ids.tolist() == [number for encoding in expected for number in encoding.ids]


@pytest.mark.parametrize("kind", ["WordPiece", "WordLevel"])
def test_tokenizers_of_words_see_each_line_alone(kind: str) -> None:
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "世", "##界", "世界", ".", "。", "一"]
    ids = {name: number for number, name in enumerate(names)}
    model = getattr(models, kind)(vocab=ids, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    lines = ["a", "b", "世界", "世界", "。", "b"]
    expected: list[Any] = [tokenizer.encode(line, add_special_tokens=False) for line in lines]
    (found,) = ids_of(tokenized(tokenizer, [lines]))
    assert found == [number for encoding in expected for number in encoding.ids]


def test_a_tokenizer_that_knows_no_character_before_a_line_encodes_the_line_as_it_is() -> None:
    content = json.loads(prepended().to_str())
    for name in ("。", "一", "の", "、", "ก"):
        content["model"]["vocab"].pop(name, None)
    content["model"]["vocab"].pop("。「")
    content["model"]["merges"] = [merge for merge in content["model"]["merges"] if "。" not in merge]
    tokenizer = Tokenizer.from_str(json.dumps(content))
    (found,) = ids_of(tokenized(tokenizer, [["カタカナだけ", "カタカナだけ"]]))
    alone: Any = tokenizer.encode("カタカナだけ", add_special_tokens=False)
    assert found == alone.ids * 2
