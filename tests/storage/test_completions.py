"""Records of finished work: found under their keys, believed while their files are intact."""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskmill.errors import RunFailedError
from maskmill.storage import completions, files
from maskmill.storage.completions import ItemFiles


@dataclasses.dataclass(frozen=True)
class Options:
    """Options with others in them, as steps have."""

    seed: int
    inner: files.FileInfo


def write_piece(folder: Path, content: bytes) -> dict[str, Any]:
    """Makes a piece of one file; returns its record."""
    files.write_bytes(str(folder / "piece"), content)
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def files_of(record: dict[str, Any]) -> ItemFiles:
    return ItemFiles(written=[("piece", record["size"], record["sha256"])])


def test_fingerprints_depend_on_every_part() -> None:
    assert completions.fingerprint("a", 1) == completions.fingerprint("a", 1)
    assert len({completions.fingerprint(*p) for p in [("a", 1), ("a", 2), ("b", 1), ("a", "1")]}) == 4


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=5), st.randoms())
def test_equal_values_have_one_fingerprint(value: dict[str, int], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    fingerprint = completions.fingerprint("kind", value)
    assert completions.fingerprint("kind", dict(items)) == fingerprint
    assert completions.fingerprint("kind", {**value, "another": 0.5}) != fingerprint
    assert len(fingerprint) == 32
    assert int(fingerprint, 16) >= 0


def test_json_takes_dataclasses_and_numpy_but_no_other_objects() -> None:
    options = Options(3, files.FileInfo(path="p", size=4))
    assert json.loads(completions.canonical_json(options)) == {"seed": 3, "inner": {"path": "p", "size": 4}}
    assert completions.canonical_json({"b": np.int64(2), "a": np.array([1.5])}) == '{"a": [1.5], "b": 2}'
    with pytest.raises(TypeError, match="Path"):
        completions.canonical_json(Path("x"))


def test_a_record_is_found_under_its_key(tmp_path: Path) -> None:
    output = str(tmp_path)
    assert completions.load(output, "text", "k") is None
    completions.store(output, "text", "k", {"size": 3})
    assert completions.load(output, "text", "k") == {"size": 3}
    assert completions.finished(output, "text", "k") == {"size": 3}
    assert json.loads((tmp_path / ".maskmill" / "text" / "k.json").read_text())["record"] == {"size": 3}
    with pytest.raises(RunFailedError, match=r"text/other\.json: this working file was deleted or damaged while"):
        completions.finished(output, "text", "other")


def test_a_table_comes_back_as_it_was(tmp_path: Path) -> None:
    table = np.array([(1, 2**63), (2, 5)], np.dtype([("hash", "<i8"), ("size", "<u8")]))
    completions.write_table(str(tmp_path), "text", "k", table)
    found = completions.read_table(str(tmp_path), "text", "k")
    assert found.dtype == table.dtype
    assert found.tolist() == table.tolist()
    assert np.load(tmp_path / ".maskmill" / "text" / "k.npy").tolist() == table.tolist()
    with pytest.raises(RunFailedError, match=r"other\.npy: this working file was deleted or damaged"):
        completions.read_table(str(tmp_path), "text", "other")


def test_a_changed_file_is_not_intact(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    files.write_bytes(path, b"abc")
    sha256 = files.sha256_of(path)
    assert completions.is_intact(path, 3, sha256)
    (tmp_path / "f").write_bytes(b"abd")
    assert not completions.is_intact(path, 3, sha256)
    assert not completions.is_intact(str(tmp_path / "none"), 3, sha256)
    assert not completions.is_intact(path, 4, sha256)


def test_a_finished_piece_is_not_made_again(tmp_path: Path) -> None:
    output = str(tmp_path)
    made = []

    def make() -> dict[str, Any]:
        made.append(1)
        return write_piece(tmp_path, b"abc")

    first = completions.once(output, "text", "k", make, files_of)
    assert completions.once(output, "text", "k", make, files_of) == first == completions.load(output, "text", "k")
    assert len(made) == 1
    completions.once(output, "text", "other", make, files_of)
    assert len(made) == 2


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"abd")])
def test_a_piece_whose_file_is_lost_or_changed_is_made_again(damage: Any, tmp_path: Path) -> None:
    output = str(tmp_path)
    completions.once(output, "text", "k", lambda: write_piece(tmp_path, b"abc"), files_of)
    damage(tmp_path / "piece")
    completions.once(output, "text", "k", lambda: write_piece(tmp_path, b"abc"), files_of)
    assert (tmp_path / "piece").read_bytes() == b"abc"


def test_a_piece_that_fails_leaves_no_record(tmp_path: Path) -> None:
    def fail() -> dict[str, Any]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        completions.once(str(tmp_path), "text", "k", fail)
    assert completions.load(str(tmp_path), "text", "k") is None
    assert completions.once(str(tmp_path), "text", "k", lambda: {"size": 1}) == {"size": 1}


def test_a_record_that_is_found_is_renewed(tmp_path: Path) -> None:
    output = str(tmp_path)
    completions.store(output, "text", "k", {})
    record = tmp_path / ".maskmill" / "text" / "k.json"
    os.utime(record, (1000, 1000))
    completions.once(output, "text", "k", dict)
    assert record.stat().st_mtime > 1000
    completions.renew(output, "text", "gone")
    assert completions.load(output, "text", "gone") is None


def test_a_process_makes_one_piece_at_a_time_whatever_threads_it_has(tmp_path: Path) -> None:
    at_once, most = 0, 0

    def make() -> dict[str, Any]:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.02)  # the others' chance
        at_once -= 1
        return {}

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        made = [threads.submit(completions.once, str(tmp_path), "text", f"k{n}", make) for n in range(8)]
    assert [m.result() for m in made] == [{}] * 8
    assert most == 1


def test_a_piece_is_made_again_while_one_of_its_files_does_not_fit(tmp_path: Path) -> None:
    output = str(tmp_path)
    cache = completions.work_name("text", "k.text")
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        completions.write_table(output, "text", "k", np.arange(3))
        files.write_bytes(files.join(output, cache), b"abc")
        return write_piece(tmp_path, b"piece") | {"cache": hashlib.sha256(b"abc").hexdigest()}

    def once() -> dict[str, Any]:
        return completions.once(
            output,
            "text",
            "k",
            make,
            lambda record: ItemFiles(
                written=[("piece", record["size"], record["sha256"])],
                cached=[(cache, 3, record["cache"])],
                has_table=True,
            ),
            name="the piece",
        )

    def reasons() -> list[str]:
        notes = [completions.finished(output, completions.REMADE, key) for key in completions.keys(output, "remade")]
        files.delete(files.list_directory(str(tmp_path / ".maskmill" / "remade")))
        assert all((note["kind"], note["key"], note["name"]) == ("text", "k", "the piece") for note in notes)
        return [note["reason"] for note in notes]

    work = tmp_path / ".maskmill" / "text"
    first = once()
    assert (once(), len(made), reasons()) == (first, 1, [])
    (work / "k.text").unlink()  # a cache may be gone
    assert (once(), len(made), reasons()) == (first, 1, [])
    for number, (path, content, reason) in enumerate(
        [
            (work / "k.json", b"", "its record was damaged"),
            (work / "k.npy", None, "its table was gone"),
            (work / "k.npy", b"\x93NUMPY", "its table was damaged"),
            (work / "k.text", b"abd", "the content of k.text had changed"),
            (tmp_path / "piece", b"Piece", "the content of piece had changed"),
            (tmp_path / "piece", None, "piece was gone"),
        ],
        start=2,
    ):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        assert (once(), len(made), reasons()) == (first, number, [reason])


def test_a_record_or_table_is_of_its_kind_and_key(tmp_path: Path) -> None:
    output, work = str(tmp_path), tmp_path / ".maskmill"
    for kind in ("text", "clean"):
        for key in ("k", "l"):
            completions.store(output, kind, key, {"size": 3})
            completions.write_table(output, kind, key, np.arange(3))
    for name in ("text/l", "clean/k"):
        for suffix in (".json", ".npy"):
            (work / f"text/k{suffix}").write_bytes((work / f"{name}{suffix}").read_bytes())
        assert completions.load(output, "text", "k") is None
        with pytest.raises(RunFailedError, match=r"k\.npy: .* run the same command again"):
            completions.read_table(output, "text", "k")
