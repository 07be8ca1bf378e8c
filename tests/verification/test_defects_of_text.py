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
    """Real articles, each of whole lines, without the blank line after it."""
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


def some(change: Callable[[str], str], every: int = 10) -> Callable[[list[bytes]], list[bytes]]:
    """Changes every tenth article."""
    return lambda articles: [each(change)([a])[0] if n % every == 0 else a for n, a in enumerate(articles)]


def of_lines(change: Callable[[str], str]) -> Callable[[str], str]:
    """Changes each line."""
    return lambda text: "\n".join(map(change, text.split("\n")))


def without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def with_other_letters(text: str) -> str:
    return "".join(chr(0x430 + ord(c) - ord("a")) if "a" <= c <= "z" else c for c in text)


WRAPPED = of_lines(lambda line: "\n".join(line[at : at + 40] for at in range(0, len(line), 40)))
GERMAN = of_lines(lambda line: f"Die Stadt {len(line)} liegt an einem alten Fluss und hat eine Kirche.")
ALL, ONE = range(SHARDS), range(1, 2)


@pytest.mark.parametrize(
    ("change", "which", "words"),
    [
        pytest.param(each(lambda text: text.encode().decode("latin-1")), ALL, "read as Latin-1", id="latin-1"),
        pytest.param(each(lambda text: text.encode().decode("cp1252", "replace")), ALL, "read as Latin-1", id="cp1252"),
        pytest.param(each(lambda text: text.encode().decode("ascii", "replace")), ALL, "U+FFFD", id="ascii"),
        pytest.param(each(lambda text: re.sub(r"[^\x00-\x7f]", "\ufffd", text)), ONE, "U+FFFD", id="replaced"),
        pytest.param(
            each(lambda text: re.sub(r"(\w+ ){7}(\w+)", r"\1[[\2]]", text)), ALL, "have wikitext in", id="markup"
        ),
        pytest.param(each(str.upper), ONE, "letters", id="capitals"),
        pytest.param(each(str.lower), ONE, "capital letters", id="small-letters"),
        pytest.param(lambda articles: [b"\n".join(articles)], ONE, "in a single document", id="joined"),
        pytest.param(lambda articles: [articles[0]] * 200 + articles, ONE, "once more", id="repeated"),
        pytest.param(each(lambda text: text.split("\n")[0]), ONE, "documents of one line", id="first-lines"),
        pytest.param(each(lambda text: html.escape(html.escape(text))), ALL, "have entities in", id="escaped-twice"),
        pytest.param(each(lambda text: text.replace(" ", "")), ALL, "have no space", id="no-spaces"),
        pytest.param(
            each(of_lines(lambda line: base64.b64encode(line.encode()).decode())), ALL, "have no space", id="base64"
        ),
        pytest.param(
            each(of_lines(lambda line: f"{line}\n{line}")), ALL, "a third of their text or more", id="lines-twice"
        ),
        pytest.param(
            each(lambda text: re.sub(r"(\S)(?=\S)", r"\1 ", text)), ALL, "letters are apart", id="letters-apart"
        ),
        pytest.param(each(lambda text: "\n".join(text.split())), ALL, "no sentences", id="word-a-line"),
        pytest.param(
            each(lambda text: re.sub(r"(\w{3})(?=\w)", "\\1\u00ad", text)),
            ONE,
            "other signs beyond ASCII, where",
            id="soft-hyphens",
        ),
        pytest.param(each(with_other_letters), ONE, "usual in the others", id="other-script"),
        pytest.param(each(lambda text: text.replace(" ", "\t")), ONE, "spaces", id="tabs"),
        pytest.param(each(lambda text: re.sub(r"\d", "", text)), ONE, "0.00% digits, where", id="no-digits"),
        pytest.param(each(lambda text: re.sub(r"[^\w\s]", "", text)), ONE, "usual in the others", id="no-punctuation"),
        pytest.param(each(without_accents), ONE, "letters with accents, where", id="no-accents"),
        pytest.param(each(WRAPPED), ONE, "as if wrapped or joined", id="wrapped-shard"),
        pytest.param(each(GERMAN), ONE, "other letters, as of another language", id="german"),
        pytest.param(some(lambda text: text.replace(" ", "&hairsp;", 1)), ALL, "have entities in", id="some-entities"),
        pytest.param(some(lambda text: f"{{{{cite web|url=x}}}} {text}"), ALL, "have wikitext in", id="some-wikitext"),
        pytest.param(some(lambda text: f"{text} \\frac{{a}}{{b}}"), ALL, "have TeX in", id="some-tex"),
        pytest.param(
            some(lambda text: f"{text}\nWe use cookies to make this site better.", 5),
            ALL,
            "documents have the line “We use cookies",
            id="a-notice",
        ),
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
