"""gs:// paths on an emulator: an object appears whole or not at all, and every refusal is one sentence."""

import collections
import contextlib
import dataclasses
import hashlib
import http.server
import json
import os
import random
import re
import resource
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_runs import commands
from made_up import dump_files
from servers import cloud
from servers.slow_store import Asked, chain, slow_store

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inputs.batches import digest_input, digest_object
from maskmill.inputs.units import Digest
from maskmill.storage import cloud_store, completions, files, outcomes, stores
from maskmill.storage.found_files import unchanged
from maskmill.text_shards.cached_texts import read_cached
from pipelines.commands import cli

pytestmark = pytest.mark.long

BUCKET = "maskmill-bucket"
PART, LARGE = 16 << 20, 48 << 20  # bytes: an upload sends this in three parts
# Of the sample's build: 6 text shards of one unit, 6 shards of examples, and the report.
MOST_REQUESTS, MOST_IN_A_ROW = 150, 110
MOST_REQUESTS_OF_A_FINISHED_BUILD, MOST_IN_A_ROW_OF_A_FINISHED_BUILD = 40, 30


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Runs the emulator with one bucket. This process and those that it starts find it by the environment."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables, cloud.set_environment(variables):
        yield variables


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "UPLOAD_BYTES", PART)


def test_an_object_is_known_by_its_store_s_checksum_until_the_run_has_read_it(environment: Mapping[str, str]) -> None:
    path, dump = f"gs://{BUCKET}/known/dump.xml.bz2", commands.DUMP.read_bytes()
    cloud.upload(environment, BUCKET, "known/dump.xml.bz2", dump)
    (found,) = files.match([path])
    with slow_store(environment, delay=0) as (slow, store), cloud.set_environment(slow):
        _, known, _ = digest_input((0, found), "2016-05-01")
    assert sum(one.received for one in store.asked) < len(dump) / 2, "its header"
    assert (known.sha256, known.content) == ("", f"{found.checksum} {found.version}")
    assert digest_object(known) == Digest(path, hashlib.sha256(dump).hexdigest())
    cloud.upload(environment, BUCKET, "known/dump.xml.bz2", dump)
    (anew,) = files.match([path])
    assert (anew.checksum, anew.size) == (found.checksum, found.size)
    assert digest_input((0, anew), "2016-05-01")[1].content != known.content
    with pytest.raises(
        RunFailedError, match=r"dump\.xml\.bz2: this input was changed while the command ran; run the same"
    ):
        digest_object(dataclasses.replace(known, changed=0))


def test_an_object_is_read_in_the_version_that_was_found(environment: Mapping[str, str]) -> None:
    path, other = f"gs://{BUCKET}/versions/text", f"gs://{BUCKET}/versions/other"
    text = os.urandom(LARGE)
    files.write_bytes(path, text)
    files.write_bytes(other, b"one")
    found = files.match(path)
    with slow_store(environment, delay=0) as (slow, store), cloud.set_environment(slow), unchanged(found):
        assert files.open_input(path, 0, files.TO_THE_END).read() == text
        files.write_bytes(other, b"another")  # of which nothing was found
        assert files.open_input(other).read() == b"another"
    assert [one.kind for one in store.asked if one.name == "versions/text"].count("look") <= 2
    sentence = r"/text: this input was changed while the command ran; run the same command again"
    with pytest.raises(RunFailedError, match=sentence), unchanged(found), files.open_input(path, 0, LARGE) as file:
        assert file.read(1) == text[:1]
        files.write_bytes(path, text)
        file.read()
    with pytest.raises(RunFailedError, match=sentence), unchanged(found):
        assert files.read_bytes(path) == text


def test_parts_of_many_texts_are_read_side_by_side(environment: Mapping[str, str]) -> None:
    """A shard of the eval set takes a little of every unit."""
    folder, text, gone = f"gs://{BUCKET}/parts", bytes(range(256)), 7
    for number in range(40):
        if number != gone:
            files.write_bytes(f"{folder}/{number}", text)
    ranges = np.array([[3, 10], [10, 40], [90, 256]])
    made: list[int] = []

    def make(number: int) -> None:
        made.append(number)
        files.write_bytes(f"{folder}/{number}", text)

    with slow_store(environment, delay=0.05) as (slow, store), cloud.set_environment(slow):
        wanted = [(number, ranges) for number in range(40)]
        blocks = list(read_cached(folder, wanted, lambda number: f"{folder}/{number}", make))
    assert blocks == [text[start:end] for start, end in ranges.tolist()] * 40
    assert made == [gone]
    assert len([one for one in store.asked if one.kind == "read"]) == 40 + 1
    assert chain(store.asked) <= 12, "16 at a time, also on a busy machine"


def test_inputs_are_read_for_the_key_of_finished_work_only(environment: Mapping[str, str]) -> None:
    place = f"gs://{BUCKET}/key"

    def key() -> str:
        raise AssertionError("a local dump was hashed before it was read")

    assert not outcomes.is_finished(place, "stages", key, [place])
    files.write_bytes(f"{place}/shard", b"one")
    outcomes.store_finished(place, "stages", "a key", [place])
    assert outcomes.is_finished(place, "stages", lambda: "a key", [place])
    assert not outcomes.is_finished(place, "stages", lambda: "another key", [place])
    files.write_bytes(f"{place}/shard", b"two")
    assert not outcomes.is_finished(place, "stages", key, [place])


@pytest.mark.builds
def test_a_killed_writer_leaves_nothing(environment: Mapping[str, str]) -> None:
    code = (
        f"import os, signal; from maskmill.storage import files, stores; stores.UPLOAD_BYTES = {PART}\n"
        f"with files.new_file('gs://{BUCKET}/killed') as file:\n"
        f"    file.write(bytes({LARGE})); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=commands.ROOT, check=False)
    assert done.returncode == -9
    assert not files.exists(f"gs://{BUCKET}/killed")


def test_reading_by_ranges_and_seeking(environment: Mapping[str, str]) -> None:
    data = os.urandom(1 << 20)
    path = f"gs://{BUCKET}/ranges"
    files.write_bytes(path, data)
    assert files.read_range(path, 1000, 2000) == data[1000:2000]
    assert files.read_range(path, len(data) - 5, len(data) + 5) == data[-5:]
    with files.open_input(path) as file:
        file.seek(-10, os.SEEK_END)
        assert file.read() == data[-10:]
        file.seek(7)
        assert (file.read(3), file.tell()) == (data[7:10], 10)


def test_a_directory_is_remembered_with_what_this_process_changes(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    for root in (f"gs://{BUCKET}/remembered", str(tmp_path)):
        files.write_bytes(f"{root}/a.txt", b"a")
        files.write_bytes(f"{root}/below/b.txt", b"b")
        with slow_store(environment, delay=0) as (slow, store), cloud.set_environment(slow), files.remembering(root):
            assert files.list_directory(root) == [f"{root}/a.txt"]
            assert (files.list_folders(root), files.list_below(f"{root}/below")) == (["below"], [f"{root}/below/b.txt"])
            with files.remembering(f"{root}/below"):
                assert files.list_directory(f"{root}/below", "*.txt") == [f"{root}/below/b.txt"]
            for _ in range(2):
                assert (files.read_if_there(f"{root}/a.txt"), files.read_if_there(f"{root}/none")) == (b"a", None)
            files.write_bytes(f"{root}/a.txt", b"other")
            files.write_bytes(f"{root}/c.txt", b"c")
            files.delete([f"{root}/below/b.txt"])
            assert files.read_bytes(f"{root}/a.txt") == b"other"
            assert files.list_below(root) == [f"{root}/a.txt", f"{root}/c.txt"]
            assert (files.size(f"{root}/a.txt"), files.exists(f"{root}/below/b.txt")) == (5, False)
        kinds = collections.Counter(one.kind for one in store.asked if one.name)
        assert kinds == ({} if root == str(tmp_path) else {"list": 1, "read": 2, "write": 2, "delete": 1})


def test_what_others_change_is_seen_after_the_block(environment: Mapping[str, str]) -> None:
    root = f"gs://{BUCKET}/others"
    with files.remembering(root):
        assert files.list_below(root) == []
        cloud.upload(environment, BUCKET, "others/a", b"a")
        assert not files.exists(f"{root}/a")
        child = os.fork()
        if not child:
            os._exit(0 if files.exists(f"{root}/a") else 1)  # a forked process remembers nothing
        assert os.waitpid(child, 0)[1] == 0
    assert files.exists(f"{root}/a")


def test_what_waits_for_a_store_keeps_its_order_and_its_first_error(environment: Mapping[str, str]) -> None:
    paths = [f"gs://{BUCKET}/each/{number}" for number in range(40)]
    files.each(paths[0], lambda path: files.write_bytes(path, path.encode()), paths)
    assert files.each(paths[0], files.read_bytes, paths) == [path.encode() for path in paths]
    with pytest.raises(UnusableInputError, match="none-1: there is no such object"):
        files.each(paths[0], files.read_bytes, [paths[0], f"{paths[0]}/none-1", f"{paths[0]}/none-2"])


def test_a_directory_that_cannot_be_listed_is_not_taken_for_empty(environment: Mapping[str, str]) -> None:
    with (
        cloud.server(refuse) as url,
        cloud.set_environment({"STORAGE_EMULATOR_HOST": url}),
        pytest.raises(UnusableInputError, match="access is refused"),
    ):
        files.list_below(f"gs://{BUCKET}/refused")


def test_an_object_that_is_deleted_while_it_is_read_is_reported_in_one_sentence(environment: Mapping[str, str]) -> None:
    path = f"gs://{BUCKET}/deleted"
    files.write_bytes(path, bytes(LARGE))
    with files.open_input(path) as file:
        files.delete([path])
        with pytest.raises(UnusableInputError, match=rf"^{path}: there is no such object\.$"):
            file.read()


def refuse(request: object, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
    """Cloud Storage's answer to an account without access."""
    message = "test@example.com does not have storage.objects.get access to the object."
    return cloud.json_answer({"error": {"code": 403, "message": message, "errors": [{"reason": "forbidden"}]}}, 403)


def test_refused_access_is_reported_in_one_sentence(environment: Mapping[str, str]) -> None:
    with cloud.server(refuse) as url, cloud.set_environment({"STORAGE_EMULATOR_HOST": url}):
        path = f"gs://{BUCKET}/x"
        for attempt in (
            lambda: files.match(f"{path}*"),
            lambda: files.exists(path),
            lambda: files.read_bytes(path),
            lambda: files.write_bytes(path, b"1"),
            lambda: files.delete([path]),
        ):
            sentence = f"^{path}\\*?: access is refused; check the credentials"
            with pytest.raises(UnusableInputError, match=sentence) as refusal:
                attempt()
            assert "\n" not in str(refusal.value)


def test_an_upload_that_arrives_changed_is_deleted_and_reported(environment: Mapping[str, str]) -> None:
    emulator = environment["STORAGE_EMULATOR_HOST"]
    damaged: list[str] = []

    def damage(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Passes a request on, and answers a finished upload with a wrong checksum."""
        status, headers, content = cloud.forward(request, body, emulator)
        if request.command in ("POST", "PUT") and b"crc32c" in content:
            answer = json.loads(content) | {"crc32c": "AAAAAA=="}
            damaged.append(answer["name"])
            return cloud.json_answer(answer)
        return status, headers, content

    with (
        cloud.server(damage) as url,
        cloud.set_environment({"STORAGE_EMULATOR_HOST": url}),
        pytest.raises(RunFailedError, match="received other bytes than were sent"),
    ):
        files.write_bytes(f"gs://{BUCKET}/damaged", b"what was sent")
    assert damaged == ["damaged"]
    assert not files.exists(f"gs://{BUCKET}/damaged")


def test_a_finished_object_is_not_read_to_check_it(environment: Mapping[str, str]) -> None:
    output, content = f"gs://{BUCKET}/finished", os.urandom(1000)
    made_checksums: list[str] = []
    read_files: list[str] = []

    def make() -> dict[str, Any]:
        with files.new_file(f"{output}/shard") as file:
            file.write(content)
        made_checksums.append(file.sha256)
        return {"size": file.size, "sha256": file.sha256}

    def files_of(record: dict[str, Any]) -> completions.ItemFiles:
        return completions.ItemFiles(written=[("shard", record["size"], record["sha256"])])

    def once() -> dict[str, Any]:
        return completions.once(output, "kind", "key", make, files_of)

    first = once()

    def note(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        if "alt=media" in request.path:
            read_files.append(urllib.parse.unquote(request.path.partition("?")[0]).rpartition("/")[2])
        return cloud.forward(request, body, environment["STORAGE_EMULATOR_HOST"])

    with cloud.server(note) as url, cloud.set_environment({"STORAGE_EMULATOR_HOST": url}):
        assert once() == first
    assert made_checksums == [first["sha256"]]
    assert read_files == ["key.json"]

    cloud.upload(environment, BUCKET, "finished/shard", content[::-1])
    assert once() == first
    assert len(made_checksums) == 2, "an object of the same size with other content is made again"
    files.delete([f"{output}/shard"])
    assert once() == first
    assert len(made_checksums) == 3


def write_piece(folder: str, name: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Writes the files of a piece, by their endings."""
    for ending, size in sizes.items():
        with files.new_file(f"{folder}/{name}{ending}") as file:
            file.write(bytes(size))
    return {"name": name}


@pytest.mark.parametrize("refuses", [False, True])
def test_a_piece_that_fails_before_its_end_or_there(environment: Mapping[str, str], refuses: bool) -> None:
    folder = f"gs://{BUCKET}/fails-{refuses}"

    def refuse(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        if request.command == "PUT" and f"/{LARGE}" in (request.headers.get("Content-Range") or ""):
            return cloud.json_answer({"error": {"message": "no more room."}}, 403)
        return cloud.forward(request, body, environment["STORAGE_EMULATOR_HOST"])

    def make() -> dict[str, Any]:
        write_piece(folder, "a", {"": LARGE})
        if not refuses:
            raise UnusableInputError("the text ends too early.")
        return {}

    with cloud.server(refuse) as url, cloud.set_environment({"STORAGE_EMULATOR_HOST": url}):
        with pytest.raises(UnusableInputError, match=r"/a: access is refused.*no more room|the text ends too early"):
            completions.once(folder, "kind", "a", make)
        assert files.list_below(folder) == []
    completions.once(folder, "kind", "a", lambda: {"made": "anew"})


def config(path: Path, output: str, source: str, vocabulary: str) -> Path:
    """Writes the file of a small build."""
    path.write_text(
        f"output: {output}\n"
        f"extract:\n  input: {source}\n  num_eval_articles: 7\n  shard_size_mb: 0.5\n"
        f"examples:\n  vocab_file: {vocabulary}\n  dupe_factor: 2\n"
        "eval:\n  num_examples_to_pick: 50\n"
    )
    return path


def forbid_large_local_files() -> None:
    """Forbids local files as large as the dump: an input is read by range and never copied to a disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def build_locally(environment: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Builds the sample on the local disk and uploads its inputs below `in/`. Gives the digests of what was built."""
    local = config(folder / "local.yaml", str(folder / "local"), str(commands.DUMP), str(commands.VOCAB))
    done = commands.maskmill("build", local, *commands.IN_MEMORY)
    assert done.returncode == 0, done.stderr
    cloud.upload(environment, BUCKET, "in/dump.xml.bz2", commands.DUMP.read_bytes())
    cloud.upload(environment, BUCKET, "in/vocab.txt", commands.VOCAB.read_bytes())
    return commands.digests(folder / "local", manifests=False)


@pytest.mark.builds
def test_a_build_from_and_to_gs_gives_the_local_bytes(environment: Mapping[str, str], tmp_path: Path) -> None:
    expected = build_locally(environment, tmp_path)
    root = f"gs://{BUCKET}"
    remote = config(tmp_path / "gs.yaml", f"{root}/out", f"{root}/in/dump.xml.bz2", f"{root}/in/vocab.txt")
    assert commands.DUMP.stat().st_size > 1 << 20
    command = [sys.executable, "-m", "maskmill", "build", str(remote), *commands.IN_MEMORY]

    def build() -> tuple[str, list[Asked], int]:
        """What a build printed, its requests, and how many of those for its own directory followed one upon another."""
        with slow_store(environment, delay=0.005) as (slow, store):
            done = subprocess.run(
                command, cwd=commands.ROOT, capture_output=True, text=True, check=False, env=os.environ | slow,
                preexec_fn=forbid_large_local_files,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout, store.asked, chain([one for one in store.asked if one.name.startswith("out/")])

    _, asked, in_a_row = build()
    assert len(asked) <= MOST_REQUESTS
    assert in_a_row <= MOST_IN_A_ROW

    def outputs() -> dict[str, dict[str, str]]:
        objects = cloud.objects(environment, BUCKET)
        return {n[len("out/") :]: o for n, o in objects.items() if n.startswith("out/") and ".maskmill/" not in n}

    first = outputs()
    assert {n for n in first if not n.endswith("manifest.json")} == {*expected, "report.html"}
    for name, sha256 in expected.items():
        assert hashlib.sha256(cloud.content(environment, BUCKET, f"out/{name}")).hexdigest() == sha256, name
    text = json.loads(cloud.content(environment, BUCKET, "out/text/manifest.json"))
    dump = {f"{root}/in/dump.xml.bz2": hashlib.sha256(commands.DUMP.read_bytes()).hexdigest()}
    assert {entry["path"]: entry["sha256"] for entry in text["inputs"]} == dump
    assert all(shard["inputs"] == dump for shard in text["shards"])
    shards = json.loads(cloud.content(environment, BUCKET, "out/examples/manifest.json"))["shards"]
    assert {s["sha256"] for s in shards} == {expected[f"examples/{s['name']}"] for s in shards}

    # What the store says of each file stands in its piece's record, so that no run reads it again.
    for kind, listed_in in (("examples", "files"), ("extract", "caches")):
        folder = f"{root}/out/{'text' if kind == 'extract' else kind}"
        for key in completions.keys(folder, kind):
            record = completions.finished(folder, kind, key)
            assert record["stored"].keys() == {name for name, *_ in record[listed_in]}

    # A finished build is known from listings, and written nowhere.
    printed, asked, in_a_row = build()
    assert printed.count("made       nothing") == 2
    assert {one.kind for one in asked} == {"list", "look", "read"}
    assert len(asked) <= MOST_REQUESTS_OF_A_FINISHED_BUILD
    assert in_a_row <= MOST_IN_A_ROW_OF_A_FINISHED_BUILD

    # The next run makes the deleted shard and no other one.
    deleted = sorted(n for n in expected if n.startswith("examples/part") and n.endswith(".tfrecord"))[0]
    files.delete([f"{root}/out/{deleted}"])
    done = commands.maskmill("build", remote, *commands.IN_MEMORY)
    assert done.returncode == 0, done.stderr
    second = outputs()
    changed = {n for n in first if second[n]["generation"] != first[n]["generation"]}
    remade = {n for n in changed if not n.endswith(("manifest.json", "report.html"))}
    assert remade <= {deleted, f"{deleted}.idx", "text/eval.md5", "eval/eval.tfrecord", "eval/eval.tfrecord.idx"}
    assert deleted in remade


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "share"), [(0, 0.2), (1, 0.05)])
def test_a_build_from_and_to_a_store_that_fails_often_gives_the_local_bytes(
    environment: Mapping[str, str], tmp_path: Path, seed: int, share: float
) -> None:
    """share: of the requests that fail."""
    expected = build_locally(environment, tmp_path)
    draw, faults = random.Random(seed), collections.Counter[str]()

    def handle(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        fault = draw.choice(["429", "503", "cut"]) if draw.random() < share else "none"
        if fault in ("429", "503"):
            faults[fault] += 1
            return answer_with(int(fault))(request, body)
        status, headers, content = cloud.forward(request, body, environment["STORAGE_EMULATOR_HOST"])
        if fault == "cut" and content:
            faults[fault if request.command == "GET" else "cut of a write"] += 1
            request.close_connection = True
            return status, headers, content[: len(content) // 2]
        return status, headers, content

    root = f"gs://{BUCKET}"
    output = f"faults-{seed}"
    remote = config(tmp_path / "gs.yaml", f"{root}/{output}", f"{root}/in/dump.xml.bz2", f"{root}/in/vocab.txt")
    with cloud.server(handle) as url:
        done = commands.maskmill("build", remote, *commands.IN_MEMORY, STORAGE_EMULATOR_HOST=url)
    assert done.returncode == 0, done.stderr
    assert faults["429"] + faults["503"] > 0, faults
    assert faults["cut"] > 0 < faults["cut of a write"] or share < 0.2, "of few faults none may be one"
    made = {
        name.removeprefix(f"{output}/"): hashlib.sha256(cloud.content(environment, BUCKET, name)).hexdigest()
        for name in cloud.objects(environment, BUCKET)
        if name.startswith(f"{output}/") and ".maskmill/" not in name and not name.endswith("manifest.json")
    }
    made.pop("report.html")
    assert made == expected


@pytest.mark.builds
def test_a_build_goes_on_that_a_store_has_ended_which_refused_for_good(
    environment: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, text = f"gs://{BUCKET}/refused-for-good", "The town lies by the river. It has a bridge of old stone."
    dump = tmp_path / "dump.xml"
    dump.write_bytes(
        dump_files.dump([dump_files.page(i, f"Town {i}", f"{text}\n\nIt is number {i}.") for i in range(9)])
    )

    def extract(folder: str) -> int:
        flags = (f"--input={dump}", f"--output={folder}", "--eval_fraction=0.3", *commands.IN_MEMORY)
        return cli.main(["extract", *flags])

    assert extract(str(tmp_path / "local")) == 0
    capsys.readouterr()
    monkeypatch.setattr(cloud_store, "_PATIENCE", 0.5)
    is_refusing = threading.Event()
    with slow_store(environment, delay=0, fault=lambda number: 503 if is_refusing.is_set() else None) as (slow, store):
        note = store.note

        def refuse_after_the_unit(asked: Asked) -> None:
            note(asked)
            if asked.kind == "write" and re.search(r"/extract/\w+\.json$", asked.name):
                is_refusing.set()

        monkeypatch.setattr(store, "note", refuse_after_the_unit)
        with cloud.set_environment(slow):
            assert extract(output) == 1
    assert is_refusing.is_set()
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(
        rf"maskmill extract: {output}/\S+: the object store does not answer any more .*run .* again\.", last
    )
    assert extract(output) == 0
    assert re.search(r"reused +1 unit", capsys.readouterr().out)
    for name, digest in commands.digests(tmp_path / "local", manifests=False).items():
        content = cloud.content(environment, BUCKET, f"refused-for-good/{name}")
        assert hashlib.sha256(content).hexdigest() == digest, name


@pytest.mark.builds
def test_templates_and_duplicates_are_looked_up_in_gs(environment: Mapping[str, str], tmp_path: Path) -> None:
    paragraph = (
        "The town of {{own name}} lies by the river, where a bridge of stone has stood since the year of its founding."
    )
    pages = [dump_files.page(i, f"Town {i}", f"{paragraph}\n\nIt is number {i}.") for i in range(1, 9)]
    pages.append(dump_files.page(20, "Template:Own name", "Somewhere", namespace=10))
    (tmp_path / "dump.xml").write_bytes(dump_files.dump(pages))
    flags = (f"--input={tmp_path}/dump.xml", "--eval_fraction=0.3", "--expand_templates", "--drop_duplicates",
             "--near_duplicate_threshold=0.9", *commands.IN_MEMORY)  # fmt: skip
    for output in (tmp_path / "local", f"gs://{BUCKET}/templates"):
        done = commands.maskmill("extract", f"--output={output}", *flags)
        assert done.returncode == 0, done.stderr
        assert "8 read, 0 emptied documents, 7 exact duplicates" in done.stdout
    expected = commands.digests(tmp_path / "local", manifests=False)
    assert b"The town of Somewhere lies" in (tmp_path / "local" / "part-00000-of-00001").read_bytes()
    for name, sha256 in expected.items():
        assert hashlib.sha256(cloud.content(environment, BUCKET, f"templates/{name}")).hexdigest() == sha256, name


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda folder: files.delete([f"{folder}/b.txt"]), "b.txt: this input was removed while"),
        (lambda folder: files.write_bytes(f"{folder}/b.txt", b"Another sentence.\n"), "b.txt: this input was changed"),
        (lambda folder: files.write_bytes(f"{folder}/c.txt", b"One.\n"), "c.txt: this input appeared while"),
    ],
    ids=["gone", "as-long", "new"],
)
def test_an_object_that_is_not_as_it_was_ends_the_run(
    environment: Mapping[str, str],
    change: Callable[[str], object],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = f"gs://{BUCKET}/changing"
    files.delete([file.path for file in files.match([f"{folder}/*"], may_be_missing=True)])
    for name in ("a", "b"):
        files.write_bytes(f"{folder}/{name}.txt", b"A sentence of it.\n")
    commands.once_claimed(monkeypatch, lambda: change(folder))
    given = [f"--input={folder}/*.txt", f"--output={tmp_path}/out", "--num_eval_articles=1", *commands.IN_MEMORY]
    assert cli.main(["extract", *given]) == cli.FAILED
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("output", "source", "sentence"),
    [
        ("", "gs://no-such-bucket/dump.xml", "/dump.xml: this input does not exist; check the path."),
        ("gs://no-such-bucket/out", str(commands.DUMP), ": there is no such bucket; correct its name, or create it."),
    ],
    ids=["input", "output"],
)
def test_a_missing_bucket_ends_a_command_with_2(
    environment: Mapping[str, str], tmp_path: Path, output: str, source: str, sentence: str
) -> None:
    done = commands.maskmill("extract", f"--input={source}", f"--output={output or tmp_path / 'out'}")
    # Google's library logs a warning about the made-up account.
    lines = [line for line in done.stderr.splitlines() if "urllib3.connectionpool" not in line]
    assert (done.returncode, lines) == (2, [f"maskmill extract: gs://no-such-bucket{sentence}"])


def answer_with(status: int) -> cloud.Handler:
    """Cloud Storage with a fault."""
    return lambda request, body: cloud.json_answer({"error": {"code": status, "message": "made up"}}, status)


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nobody has logged in to Google."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def refused_command(variables: Mapping[str, str], *, code: int = 2) -> str:
    """The one sentence of a command that reads from a bucket, in a process with these variables."""
    done = commands.maskmill("extract", "--input=gs://some-bucket/dump.xml", "--output=/nowhere/out", **variables)
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        (
            {"STORAGE_EMULATOR_HOST": "http://localhost:1"},
            r"http://localhost:1 cannot be reached \(Connection refused\)",
        ),
        ({"STORAGE_EMULATOR_HOST": "http://no-such-host.invalid:9000"}, "http://no-such-host.invalid:9000 cannot be"),
        (
            {"STORAGE_EMULATOR_HOST": "localhost:9000"},
            "localhost:9000 cannot be .*STORAGE_EMULATOR_HOST, which",
        ),
        (
            {"STORAGE_EMULATOR_HOST": "http://storage.invalid", "http_proxy": "http://localhost:1", "no_proxy": ""},
            r"http://storage.invalid cannot be reached through its proxy \(Connection refused\); check the network",
        ),
    ],
    ids=["nobody listens", "unknown host", "no address", "no proxy"],
)
def test_a_service_that_cannot_be_reached_is_said_at_once(variables: Mapping[str, str], reason: str) -> None:
    said = refused_command(variables)
    assert re.match(f"maskmill extract: gs://some-bucket: {reason}", said)


@pytest.mark.usefixtures("no_credentials")
def test_missing_credentials_are_told_from_refused_ones() -> None:
    with cloud.server(answer_with(401)) as url:
        said = refused_command({"STORAGE_EMULATOR_HOST": url})
    assert "gs://some-bucket/dump.xml: access needs credentials, and there are no usable Google credentials (" in said
    assert "(Your default credentials were not found" in said
    assert "run `gcloud auth application-default login`, or name a service account's file" in said


@pytest.mark.builds
@pytest.mark.parametrize(("content", "reason"), [(None, "was not found"), ("no JSON", "is not a valid json file")])
def test_an_unusable_file_of_credentials_is_named(content: str | None, reason: str, tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    if content is not None:
        account.write_text(content)
    with cloud.server(answer_with(401)) as url:
        said = refused_command({"STORAGE_EMULATOR_HOST": url, "GOOGLE_APPLICATION_CREDENTIALS": str(account)})
    assert str(account) in said
    assert reason in said


def test_a_public_bucket_needs_no_credentials(environment: Mapping[str, str], no_credentials: None) -> None:
    assert files.list_below(f"gs://{BUCKET}/nothing") == []


def test_a_service_that_only_fails_is_not_waited_for(environment: Mapping[str, str]) -> None:
    with cloud.server(answer_with(503)) as url:
        said = refused_command({"STORAGE_EMULATOR_HOST": url}, code=1)
    assert "the object store does not answer any more (" in said
    assert "made up" in said


@pytest.mark.parametrize("flips", [1, 9999])
def test_a_flipped_bit_of_a_whole_object_is_fetched_again(
    environment: Mapping[str, str], flips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, content = f"gs://{BUCKET}/flipped-{flips}", bytes(range(256)) * 40
    files.write_bytes(path, content)
    with flipping(environment, flips) as left:
        if flips == 1:
            assert files.read_bytes(path) == content
        else:
            monkeypatch.setattr(cloud_store, "_PATIENCE", 0.5)
            with pytest.raises(RunFailedError, match="it arrives with other bytes than its checksum says"):
                files.read_bytes(path)
    assert left == [0] or flips > 1


def test_a_flipped_bit_of_an_object_that_is_read_in_parts_ends_the_run(environment: Mapping[str, str]) -> None:
    path, content = f"gs://{BUCKET}/flipped-part", bytes(range(256)) * 40_000
    files.write_bytes(path, content)
    for flips in (0, 1):
        with flipping(environment, flips) as left, files.open_input(path) as file:
            if flips:
                with pytest.raises(RunFailedError, match="it arrives with other bytes than its checksum says"):
                    file.read()
            else:
                assert file.read() == content
        assert left == [0]


@contextlib.contextmanager
def flipping(environment: Mapping[str, str], flips: int) -> Iterator[list[int]]:
    """Runs a server before the emulator that flips a bit in as many downloads; gives how many are left."""
    left = [flips]

    def answer(request: http.server.BaseHTTPRequestHandler, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        status, headers, found = cloud.forward(request, body, environment["STORAGE_EMULATOR_HOST"])
        if "alt=media" in request.path and left[0]:
            left[0] -= 1
            found = found[:99] + bytes([found[99] ^ 4]) + found[100:]
        return status, headers | {"Content-Length": str(len(found))}, found

    with cloud.server(answer) as url, cloud.set_environment({**environment, "STORAGE_EMULATOR_HOST": url}):
        yield left
