"""Pieces and page stores of a release in a bucket: the store copies them, and compares its own checksums."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import cloud

from maskmill.storage import completions, files
from maskmill.storage.completions import PieceFiles, once
from transforms.inputs.mediawiki import Page
from transforms.shards.page_store import (
    PageExchange,
    PageReader,
    PageText,
    PageWriter,
    Reading,
    StoreEntry,
    store_name,
    write_index,
)

pytestmark = pytest.mark.releases

BUCKET = "maskmill-taken"


@pytest.fixture(scope="module", autouse=True)
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables, cloud.set_environment(variables):
        yield


def make(output: str, made: list[str]) -> dict[str, Any]:
    made.append(output)
    with files.new_file(files.join(output, "part")) as file:
        file.write(b"text")
    return {"files": [["part", file.size, file.sha256]]}


def make_once(output: str, made: list[str], previous: str = "") -> dict[str, Any]:
    return once(
        output,
        "text",
        "0123",
        lambda: make(output, made),
        lambda record: PieceFiles(written=[tuple(file) for file in record["files"]]),
        name="part",
        previous=previous,
    )


@pytest.mark.parametrize("damaged", [False, True])
def test_a_piece_is_copied_by_the_store(damaged: bool) -> None:
    root = f"gs://{BUCKET}/{damaged}"
    made: list[str] = []
    first = make_once(f"{root}/first", made)
    if damaged:
        files.write_bytes(f"{root}/first/part", b"taxt")
    second = make_once(f"{root}/second", made, f"{root}/first")
    assert second == first
    assert files.read_bytes(f"{root}/second/part") == b"text"
    assert len(made) == 1 + damaged
    assert completions.taken_keys(f"{root}/second", "text") == (frozenset() if damaged else {"0123"})


def page(number: int) -> Page:
    return Page(
        title=b"Town %d" % number,
        namespace=0,
        page_id=number,
        revision_id=10 * number,
        is_redirect=False,
        timestamp=b"",
        model=b"wikitext",
        text=b"wikitext of %d" % number,
    )


def fail(_: Page) -> PageText:
    raise AssertionError("this page is in the store")


@pytest.mark.parametrize("place", ["gs", "local"])
def test_a_store_is_read_where_it_lies(place: str, tmp_path: Path) -> None:
    output = f"gs://{BUCKET}/pages" if place == "gs" else str(tmp_path)
    reading = Reading(context="c", date="2026-03-01", template_digest=lambda _: b"")
    made = {
        number: PageText(text=b"text %d" % number, counts=(1, number, 0, 2, 3, number, 0)) for number in range(1, 9)
    }
    with files.new_file(completions.work_path(output, "extract", store_name("key"))) as file:
        writer = PageWriter(file)
        exchange = PageExchange(reading, None, writer)
        for number in (3, 1, 2, *range(4, 9)):
            assert exchange.page_text(page(number), lambda p: made[p.page_id]) == (made[number], False)
        stored = writer.finish()
    write_index(output, [StoreEntry(key="key", **stored)])
    exchange = PageExchange(reading, PageReader(output), None)
    for number in range(8, 0, -1):
        assert exchange.page_text(page(number), fail) == (made[number], True)
    assert (exchange.extracted, exchange.reused) == (8, 8)
