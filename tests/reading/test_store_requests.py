"""What readers ask of an object store: few large requests, several side by side, each thing once."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from data_sets.example_sets import setup_of, write_set
from servers import cloud
from servers.slow_store import CUT, Asked, Fault, SlowStore, chain, slow_store

import maskmill
from maskmill.inputs.formats import detect
from maskmill.inputs.mediawiki import read_header
from maskmill.reporting import facts
from maskmill.storage import files

DUMP = Path(__file__).parents[1] / "data" / "dump" / "enwiki-sample-multistream.xml.bz2"
BUCKET = "maskmill-requests"
ROOT = f"gs://{BUCKET}/build"
DELAY = 0.02
SHARD = "part-00000-of-00001"


@pytest.fixture(name="built", scope="module")
def fixture_built(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Writes a data set with one large file of examples; its directory."""
    document = "".join(f"Sentence {n} is about {f'foxes and {n} geese ' * (n % 9)}.\n" for n in range(20)) + "\n"
    text = "".join(document.replace("Sentence", f"Sentence {n} of") for n in range(900))
    folder = tmp_path_factory.mktemp("built")
    write_set(folder, setup_of(max_seq_length=512, dupe_factor=10), texts={SHARD: text})
    return str(folder)


@pytest.fixture(name="emulator", scope="module")
def fixture_emulator(built: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Runs the emulator with the data set; gives its environment."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as environment:
        for path in (path for path in Path(built).rglob("*") if path.is_file()):
            cloud.upload(environment, BUCKET, f"build/{path.relative_to(built)}", path.read_bytes())
        yield environment


@contextlib.contextmanager
def slow(emulator: Mapping[str, str], cache: Path, fault: Fault = lambda number: None) -> Iterator[SlowStore]:
    """Runs the slow store, which this process uses."""
    with (
        slow_store(emulator, delay=DELAY, fault=fault) as (environment, store),
        cloud.set_environment(environment | {"XDG_CACHE_HOME": str(cache)}),
    ):
        yield store


def fails_often(number: int) -> int | None:
    """Of five requests one fails, each in another way than the one before."""
    return (429, 503, CUT)[number // 5 % 3] if number % 5 == 3 else None


def of(store: SlowStore, name: str) -> list[Asked]:
    """The requests for a file."""
    return [asked for asked in store.asked if asked.name.endswith(name)]


def examples_of(path: str) -> str:
    return f"{path}/examples/{SHARD}.tfrecord"


def found_in(path: str) -> tuple[object, ...]:
    """What a search through all text and all rows gives."""
    with maskmill.open_texts(f"{path}/text/{SHARD}") as texts:
        places = [document.document for document in texts.search("Sentence 650 of 7")]
        documents = sum(1 for _ in texts.all())
    with maskmill.open_examples(f"{path}/examples") as opened:
        return places, documents, [row.sample for row in opened.search("geese 650")]


def test_verify_asks_for_few_large_parts(built: str, emulator: Mapping[str, str], tmp_path: Path) -> None:
    size = os.path.getsize(examples_of(built))
    assert size > 35 << 20
    here = maskmill.verify(f"{built}/examples")
    with slow(emulator, tmp_path) as store:
        there = maskmill.verify(f"{ROOT}/examples")
    assert [finding.check for finding in there.findings] == [finding.check for finding in here.findings]
    assert there.read_bytes == here.read_bytes
    asked = of(store, ".tfrecord")
    assert sum(request.received for request in asked if request.kind == "read") <= size + 1000
    assert len(asked) <= size / (8 << 20) + 3
    assert chain(asked) <= 4
    assert len(store.asked) <= 24
    assert chain(store.asked) <= 20


def test_a_search_asks_for_few_large_parts(built: str, emulator: Mapping[str, str], tmp_path: Path) -> None:
    wanted = found_in(built)
    with slow(emulator, tmp_path) as store:
        assert found_in(ROOT) == wanted
    asked = of(store, ".tfrecord")
    assert len(asked) <= os.path.getsize(examples_of(built)) / (8 << 20) + 8
    assert chain(asked) <= 11


@pytest.mark.parametrize("name", ["verify", "search"])
def test_a_store_that_fails_often_gives_the_same(
    built: str, emulator: Mapping[str, str], tmp_path: Path, name: str
) -> None:
    def result(path: str) -> object:
        if name == "search":
            return found_in(path)
        found = maskmill.verify(path)
        return found.is_right, found.read_bytes, [outcome.looked_at for outcome in found.outcomes.values()]

    wanted = result(built)
    with slow(emulator, tmp_path, fails_often) as store:
        assert result(ROOT) == wanted
    assert len(store.asked) > 20


def test_a_page_looks_at_nothing_twice(emulator: Mapping[str, str], tmp_path: Path) -> None:
    with slow(emulator, tmp_path) as store:
        facts.collect(ROOT)
    looks = [asked.name for asked in store.asked if asked.kind == "look" and asked.name.endswith(("cord", ".txt"))]
    assert len(looks) == len(set(looks))


def test_a_part_of_a_file_is_read_once(built: str, emulator: Mapping[str, str], tmp_path: Path) -> None:
    start, end = 5 << 20, 30 << 20
    with slow(emulator, tmp_path) as store, files.open_input(examples_of(ROOT), start, end) as file:
        file.seek(start)
        content = b"".join(iter(lambda: file.read(min(1 << 20, end + 1000 - file.tell())), b""))
    with open(examples_of(built), "rb") as local:
        local.seek(start)
        assert content == local.read(end - start + 1000)
    assert len([asked for asked in store.asked if asked.kind == "look"]) == 1
    assert sum(asked.received for asked in store.asked if asked.kind == "read") <= end - start + (1 << 20)
    assert len(store.asked) <= 9


def test_the_head_of_a_dump_is_read_with_a_look_and_a_read(emulator: Mapping[str, str], tmp_path: Path) -> None:
    cloud.upload(emulator, BUCKET, "dump.xml.bz2", DUMP.read_bytes())
    path = f"gs://{BUCKET}/dump.xml.bz2"
    for look in (detect, read_header):
        with slow(emulator, tmp_path) as store:
            assert look(path) == look(str(DUMP))
        asked = [request for request in store.asked if request.kind != "list"]
        assert [request.kind for request in asked] == ["look", "read"]
        assert asked[1].received < 1 << 20


def test_a_look_at_a_few_bytes_asks_once_for_little(emulator: Mapping[str, str], tmp_path: Path) -> None:
    with slow(emulator, tmp_path) as store, files.open_input(examples_of(ROOT)) as file:
        assert len(file.read(16)) == 16
    reads = [asked for asked in store.asked if asked.kind != "list"]
    assert [asked.kind for asked in reads] == ["look", "read"]
    assert reads[1].received < 1 << 20


def test_a_file_that_is_replaced_while_it_is_fetched_ahead_is_found(
    built: str, emulator: Mapping[str, str], tmp_path: Path
) -> None:
    path = f"gs://{BUCKET}/replaced"
    content = Path(examples_of(built)).read_bytes()
    with slow(emulator, tmp_path):
        cloud.upload(emulator, BUCKET, "replaced", content)
        with files.open_input(path) as file:
            file.read(3 << 20)
            cloud.upload(emulator, BUCKET, "replaced", content[::-1])
            with pytest.raises(maskmill.errors.UnusableInputError, match="was changed while it was read"):
                file.read()
