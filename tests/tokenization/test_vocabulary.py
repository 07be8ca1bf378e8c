"""Reading a vocabulary as the reference scripts do, and what is refused."""

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from oracles import pretraining as oracle
from properties import tries
from tokenizers import BertWordPieceTokenizer
from tokenizers.models import WordPiece

from maskmill.errors import UnusableInputError
from maskmill.tokenization.vocabulary import DuplicatePieces, load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

SPECIAL = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"


def write(directory: Path, content: str | bytes) -> str:
    path = directory / "vocab.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_berts_vocabulary() -> None:
    vocabulary = load_vocabulary(str(oracle.DATA / "vocab.txt"))
    assert (len(vocabulary.pieces), vocabulary.size) == (30522, 30522)
    assert [vocabulary.id_of(p) for p in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [0, 100, 101, 102, 103]


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_a_piece_on_two_lines(duplicates: DuplicatePieces, tmp_path: Path) -> None:
    path = write(tmp_path, SPECIAL + "a\nb\n a \nc\n")
    vocabulary = load_vocabulary(path, duplicates)
    assert vocabulary.pieces == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c")
    # MLPerf's loader numbers distinct pieces; google-research's counts lines, and the last line of a piece counts.
    assert vocabulary.ids.tolist() == [0, 1, 2, 3, 4, *((5, 6, 7) if duplicates == "first" else (7, 6, 8))]
    assert vocabulary.size == (8 if duplicates == "first" else 9)


@tries(100)
@hypothesis.given(
    st.lists(st.sampled_from(["a", "##a", "a ", "\u3000b", "", "é\r", "\r", "c\x85", "\u2028"]), max_size=12),
    st.sampled_from(["first", "last"]),
    st.booleans(),
)
def test_any_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], duplicates: DuplicatePieces, ended: bool
) -> None:
    content = SPECIAL + "the\n" + "\n".join(lines) + ("\n" if ended else "")
    vocabulary = load_vocabulary(write(tmp_path_factory.mktemp("v"), content), duplicates)
    expected = oracle.load_vocabulary(content.encode(), duplicates)
    assert dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True)) == expected
    assert list(vocabulary.pieces) == list(expected)


@tries(100)
@hypothesis.given(
    st.lists(st.sampled_from(["a", "##a", "b", "", "", "the ", "c\r", "##b", "[unused0]", "the"]), max_size=20)
)
def test_blank_and_repeated_lines_have_the_ids_of_hugging_face(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = write(tmp_path_factory.mktemp("v"), SPECIAL + "".join(f"{line}\n" for line in lines) + "sat\n")
    vocabulary = load_vocabulary(path)
    assert dict(zip(vocabulary.pieces, vocabulary.ids.tolist(), strict=True)) == WordPiece.read_file(path)
    assert vocabulary.size == len(lines) + 6
    tokenizer = Tokenizer(vocabulary)
    theirs = BertWordPieceTokenizer(path, strip_accents=True, lowercase=True)
    for text in ("the cat sat", "a ab aab sat c"):
        found = tokenizer.tokenize_bytes(text.encode()).ids.tolist()
        assert found == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("missing", ["[MASK]", "[CLS]", "[SEP]", "[UNK]"])
def test_a_missing_special_piece_is_one_sentence(missing: str, tmp_path: Path) -> None:
    path = write(tmp_path, SPECIAL.replace(f"{missing}\n", "") + "a\n")
    with pytest.raises(UnusableInputError) as raised:
        load_vocabulary(path)
    assert str(raised.value) == (
        f"{path}: {missing} is missing from this vocabulary; masking needs them, each on a line of its own."
    )


def test_an_empty_vocabulary_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match=r"\[MASK\] and \[CLS\] and \[SEP\] and \[UNK\] are missing"):
        load_vocabulary(write(tmp_path, ""))


@pytest.mark.parametrize("more", ["", "[unused0]\n[unused1]\n", "\n \n", "[MASK]\n[PAD]\n"])
def test_a_vocabulary_of_special_pieces_only_is_one_sentence(more: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match=r"special pieces only, such as .* every word would become"):
        load_vocabulary(write(tmp_path, SPECIAL + more))


@pytest.mark.parametrize("piece", ["a", "##a", "[", "##]", "[a] b"])
def test_one_piece_that_is_not_special_is_enough(piece: str, tmp_path: Path) -> None:
    assert piece in load_vocabulary(write(tmp_path, SPECIAL + piece + "\n")).pieces


def test_capital_letters_are_seen_in_all_but_special_pieces(tmp_path: Path) -> None:
    assert load_vocabulary(write(tmp_path, SPECIAL + "a\n##b\nß\n")).capital_share == 0
    assert load_vocabulary(write(tmp_path, SPECIAL + "a\n##B\nÉté\nété\n")).capital_share == 0.5


def test_a_vocabulary_that_is_not_utf8_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match=r"vocab\.txt, line 6: this vocabulary is not UTF-8"):
        load_vocabulary(write(tmp_path, SPECIAL.encode() + b"\xff\n"))


def test_a_missing_vocabulary_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="does not exist"):
        load_vocabulary(str(tmp_path / "none"))
