"""`maskmill verify` sees in text shards alone what a wrong decoding, a wrong extraction or a wrong join leaves."""

import base64
import gzip
import html
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from damaged_copies import serious

from maskmill.verification.verifying import verify

GOLD = Path(__file__).parents[1] / "data" / "gold" / "cleanup"
SHARDS = 4


def documents() -> list[bytes]:
    """Real articles, each of whole lines, without the blank line behind it."""
    names = ("part-00000-of-00500", "part-00001-of-00500")
    text = b"".join(gzip.decompress((GOLD / f"{name}.gz").read_bytes()) for name in names)
    return [article for article in text.split(b"\n\n") if article.strip()]


def write(folder: Path, change: Callable[[list[bytes]], list[bytes]], which: range) -> Path:
    """Writes text shards; `change` changes the articles of some of them."""
    folder.mkdir()
    articles = documents()
    for number in range(SHARDS):
        own = articles[number::SHARDS]
        kept = change(own) if number in which else own
        (folder / f"part-{number:05}-of-{SHARDS:05}").write_bytes(b"".join(one + b"\n\n" for one in kept))
    return folder


def each(change: Callable[[str], str]) -> Callable[[list[bytes]], list[bytes]]:
    """Changes every article."""
    return lambda articles: [change(article.decode()).encode() for article in articles]


def read_as(encoding: str) -> Callable[[str], str]:
    return lambda text: text.encode().decode(encoding, "replace")


def without_foreign(text: str) -> str:
    return "".join(c if c.isascii() else "\ufffd" for c in text)


def with_markup(text: str) -> str:
    return " ".join(f"[[{word}]]" if place % 8 == 0 else word for place, word in enumerate(text.split(" ")))


def cut_lines(text: str) -> str:
    return "\n".join(line[:40] for line in text.split("\n"))


def wrapped_lines(text: str) -> str:
    return "\n".join(line[at : at + 40] for line in text.split("\n") for at in range(0, len(line), 40))


def first_line(text: str) -> str:
    return text.split("\n")[0]


def escaped_twice(text: str) -> str:
    return html.escape(html.escape(text))


def with_soft_hyphens(text: str) -> str:
    return re.sub(r"(\w{3})(?=\w)", "\\1\u00ad", text)


def without_spaces(text: str) -> str:
    return text.replace(" ", "")


def in_base64(text: str) -> str:
    return "\n".join(base64.b64encode(line.encode()).decode() for line in text.split("\n"))


def with_lines_twice(text: str) -> str:
    return "\n".join(f"{line}\n{line}" for line in text.split("\n"))


def with_letters_apart(text: str) -> str:
    return re.sub(r"(\S)(?=\S)", r"\1 ", text)


def with_a_word_a_line(text: str) -> str:
    return "\n".join(text.split())


def with_tabs(text: str) -> str:
    return text.replace(" ", "\t")


def without_digits(text: str) -> str:
    return re.sub(r"\d", "", text)


def without_punctuation(text: str) -> str:
    return re.sub(r"[^\w\s]", "", text)


def without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def in_german(text: str) -> str:
    return "\n".join(
        f"Die Stadt {n} liegt an einem alten Fluss und hat eine Kirche." for n in range(text.count("\n") + 1)
    )


def with_entities(text: str) -> str:
    return text.replace(" ", "&hairsp;", 1)


def with_templates(text: str) -> str:
    return f"{{{{cite web|url=x}}}} {text}"


def with_formulas(text: str) -> str:
    return f"{text} \\frac{{a}}{{b}}"


def with_a_notice(text: str) -> str:
    return f"{text}\nWe use cookies to make this site better."


def some(change: Callable[[str], str], every: int = 10) -> Callable[[list[bytes]], list[bytes]]:
    """Changes every tenth article."""
    return lambda articles: [each(change)([a])[0] if n % every == 0 else a for n, a in enumerate(articles)]


def with_other_letters(text: str) -> str:
    return "".join(chr(0x430 + ord(c) - ord("a")) if "a" <= c <= "z" else c for c in text)


ALL, ONE = range(SHARDS), range(1, 2)


@pytest.mark.parametrize(
    ("change", "which", "words"),
    [
        pytest.param(each(read_as("latin-1")), ALL, "read as Latin-1", id="latin-1"),
        pytest.param(each(read_as("cp1252")), ALL, "read as Latin-1", id="cp1252"),
        pytest.param(each(read_as("ascii")), ALL, "U+FFFD", id="ascii"),
        pytest.param(each(without_foreign), ONE, "U+FFFD", id="replaced"),
        pytest.param(each(with_markup), ALL, "have wikitext in", id="markup"),
        pytest.param(each(str.upper), ONE, "letters", id="capitals"),
        pytest.param(each(str.lower), ONE, "capital letters", id="small-letters"),
        pytest.param(lambda articles: [b"\n".join(articles)], ONE, "in a single document", id="joined"),
        pytest.param(lambda articles: [articles[0]] * 200 + articles, ONE, "once more", id="repeated"),
        pytest.param(each(first_line), ONE, "documents of one line", id="first-lines"),
        pytest.param(each(cut_lines), ALL, "they are cut", id="cut-lines"),
        pytest.param(each(wrapped_lines), ALL, "they are cut", id="wrapped-lines"),
        pytest.param(each(escaped_twice), ALL, "have entities in", id="escaped-twice"),
        pytest.param(each(without_spaces), ALL, "have no space", id="no-spaces"),
        pytest.param(each(in_base64), ALL, "have no space", id="base64"),
        pytest.param(each(with_lines_twice), ALL, "the same as the line before", id="lines-twice"),
        pytest.param(each(with_letters_apart), ALL, "letters are apart", id="letters-apart"),
        pytest.param(each(with_a_word_a_line), ALL, "no sentences", id="word-a-line"),
        pytest.param(each(with_soft_hyphens), ONE, "other signs beyond ASCII, where", id="soft-hyphens"),
        pytest.param(each(with_other_letters), ONE, "usual in the others", id="other-script"),
        pytest.param(each(with_tabs), ONE, "spaces", id="tabs"),
        pytest.param(each(without_digits), ONE, "0.00% digits, where", id="no-digits"),
        pytest.param(each(without_punctuation), ONE, "usual in the others", id="no-punctuation"),
        pytest.param(each(without_accents), ONE, "letters with accents, where", id="no-accents"),
        pytest.param(each(wrapped_lines), ONE, "they are cut", id="wrapped-shard"),
        pytest.param(each(in_german), ONE, "other letters, as of another language", id="german"),
        pytest.param(some(with_entities), ALL, "have entities in", id="some-entities"),
        pytest.param(some(with_templates), ALL, "have wikitext in", id="some-wikitext"),
        pytest.param(some(with_formulas), ALL, "have TeX in", id="some-tex"),
        pytest.param(some(with_a_notice, 5), ALL, "documents have the line “We use cookies", id="a-notice"),
        pytest.param(lambda articles: [*articles, *articles], ALL, "once more; ", id="every-document-twice"),
        pytest.param(some(lambda text: f"{text}\n{text}"), ALL, "a third of their text or more", id="own-text-twice"),
    ],
)
def test_a_defect_of_the_text_is_seen(
    change: Callable[[list[bytes]], list[bytes]], which: range, words: str, tmp_path: Path
) -> None:
    found = verify([str(write(tmp_path / "text", change, which))])
    assert {finding.severity for finding in serious(found)} == {"warning"}
    messages = [finding.message for finding in serious(found) if finding.check in ("profile", "repeated_documents")]
    assert any(words in message for message in messages), [finding.message for finding in serious(found)]


def write_lines(folder: Path, article: Callable[[int, int], str]) -> Path:
    """Writes text shards of made-up articles, each by the shard and its number there."""
    for number in range(SHARDS):
        text = "".join(f"{article(number, k)}\n\n" for k in range(1500))
        (folder / f"part-{number:05}-of-{SHARDS:05}").write_text(text)
    return folder


@pytest.mark.parametrize(
    "line",
    ["Да", "row, row, row your boat", "x" * 59, "ACCEPTANCE OF THE TERMS.", "ไม่มีช่องว่างระหว่างคำ" * 9],
    ids=["short", "refrain", "long-word", "capitals", "thai"],
)
def test_texts_that_are_unlike_others_are_right(line: str, tmp_path: Path) -> None:
    """A tenth of the lines are such."""

    def article(number: int, k: int) -> str:
        return "\n".join([line, *(f"Line {n} of text {number} {k} says that it is whole." for n in range(9))])

    found = verify([str(write_lines(tmp_path, article))])
    messages = [finding.message for finding in serious(found) if finding.check == "profile"]
    assert [message for message in messages if "documents have the line" not in message] == []


def test_verse_without_spaces_is_right(tmp_path: Path) -> None:
    """All lines have five characters and a mark."""

    def couplet(number: int, k: int) -> str:
        characters = "".join(chr(0x4E00 + (7919 * k + 31 * number + 17 * place) % 5000) for place in range(10))
        return f"{characters[:5]}，\n{characters[5:]}。"

    found = verify([str(write_lines(tmp_path, couplet))])
    assert [finding.message for finding in serious(found) if finding.check == "profile"] == []


def test_text_of_two_languages_one_after_the_other_is_right(tmp_path: Path) -> None:
    found = verify([str(write(tmp_path / "text", each(with_other_letters), range(2)))])
    assert [finding.message for finding in serious(found) if finding.check == "profile"] == []


def test_the_text_itself_is_right(tmp_path: Path) -> None:
    found = verify([str(write(tmp_path / "text", list, ALL))])
    assert [finding.message for finding in serious(found)] == []
