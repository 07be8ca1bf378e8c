"""`maskmill verify` sees in text shards alone what a wrong decoding, a wrong extraction or a wrong join leaves."""

import gzip
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


ALL, ONE = range(SHARDS), range(1, 2)


@pytest.mark.parametrize(
    ("change", "which", "words"),
    [
        pytest.param(each(read_as("latin-1")), ALL, "read as Latin-1", id="latin-1"),
        pytest.param(each(read_as("cp1252")), ALL, "read as Latin-1", id="cp1252"),
        pytest.param(each(read_as("ascii")), ALL, "U+FFFD", id="ascii"),
        pytest.param(each(without_foreign), ONE, "U+FFFD", id="replaced"),
        pytest.param(each(with_markup), ALL, "marks of wikitext", id="markup"),
        pytest.param(each(str.upper), ONE, "capital letters", id="capitals"),
        pytest.param(each(str.lower), ONE, "capital letters", id="small-letters"),
        pytest.param(lambda articles: [b"\n".join(articles)], ONE, "in a single document", id="joined"),
        pytest.param(lambda articles: [articles[0]] * 200 + articles, ONE, "is there 20", id="repeated"),
        pytest.param(each(first_line), ONE, "documents of one line", id="first-lines"),
        pytest.param(each(cut_lines), ALL, "they are cut", id="cut-lines"),
        pytest.param(each(wrapped_lines), ALL, "they are cut", id="wrapped-lines"),
    ],
)
def test_a_defect_of_the_text_is_seen(
    change: Callable[[list[bytes]], list[bytes]], which: range, words: str, tmp_path: Path
) -> None:
    found = verify([str(write(tmp_path / "text", change, which))])
    messages = [finding.message for finding in serious(found) if finding.check == "profile"]
    assert any(words in message for message in messages), [finding.message for finding in serious(found)]


def test_the_text_itself_is_right(tmp_path: Path) -> None:
    found = verify([str(write(tmp_path / "text", list, ALL))])
    assert [finding.message for finding in serious(found)] == []
