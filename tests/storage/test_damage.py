"""Whatever happens to files below `.maskmill`: the next run makes the same data set, and says what it made again."""

import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from data_sets import damaged_builds

from maskmill.storage import completions

# MASKMILL_MUTATIONS sets another number: 20,000 take a quarter of an hour.
MUTATIONS = int(os.environ.get("MASKMILL_MUTATIONS", "60"))


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return damaged_builds.write_dump(tmp_path_factory.mktemp("dump"))


@pytest.fixture(scope="module")
def finished_build(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("finished")
    damaged_builds.build(dump, output)
    return output


def test_the_build_has_every_kind_of_file(finished_build: Path) -> None:
    kinds = {path.parent.name for path in damaged_builds.work_files(finished_build)}
    assert kinds == {"templates", "template-library", "extract", "duplicates", "text", "examples", ".maskmill"}
    assert len(list(finished_build.glob("text/part-*"))) > 2


def test_no_byte_of_a_record_or_table_can_change_unseen(finished_build: Path) -> None:
    looked_at = 0
    for path in damaged_builds.work_files(finished_build):
        if path.suffix == ".text":
            continue  # its record has its checksum
        kind, key, sealed = path.parent.name, path.stem, path.read_bytes()
        if path.name == "parameters.json":
            kind = ""
        is_intact: Callable[[bytes], bool]
        if path.suffix == ".json":
            is_intact = lambda content, kind=kind, key=key: completions.unsealed_json(kind, key, content) is not None  # type: ignore[misc]  # noqa: E731
        else:
            is_intact = lambda content, kind=kind, key=key: completions.is_sealed_table(kind, key, content)  # type: ignore[misc]  # noqa: E731
        assert is_intact(sealed), path
        for place in range(len(sealed)):
            changed = sealed[:place] + bytes([sealed[place] ^ 1 << place % 8]) + sealed[place + 1 :]
            assert not is_intact(changed), (path, place)
            assert not is_intact(sealed[:place]), (path, place)
            looked_at += 1
        assert not is_intact(sealed + b"\n")
    assert looked_at > 10_000


def check_again(dump: Path, output: Path, expected: dict[str, bytes], damage: object) -> list[str]:
    """Builds again over damaged files: the same data set, the same working files. Returns what was made again."""
    try:
        remade = damaged_builds.build(dump, output)
    except Exception as error:
        raise AssertionError(f"{damage}: {error!r}") from error
    after = damaged_builds.content(output)
    assert after.keys() == expected.keys(), damage
    assert [name for name in after if after[name] != expected[name]] == [], damage
    return remade


@pytest.mark.builds
def test_a_finished_build_comes_out_the_same_after_any_damage(dump: Path, finished_build: Path) -> None:
    chance = random.Random(12)
    expected = damaged_builds.content(finished_build)
    for _ in range(MUTATIONS):
        damage = damaged_builds.damage_one(damaged_builds.work_files(finished_build), chance)
        is_changed = damaged_builds.content(finished_build) != expected
        remade = check_again(dump, finished_build, expected, damage)
        if damage.what != "lost":  # a piece whose record was lost is made, not made again
            assert bool(remade) == is_changed, damage


@pytest.mark.builds
def test_an_unfinished_build_comes_out_the_same_after_any_damage(dump: Path, tmp_path: Path) -> None:
    chance = random.Random(13)
    output, half = tmp_path / "out", tmp_path / "half"
    damaged_builds.build_half(dump, output)
    suffixes = {path.suffix for path in damaged_builds.work_files(output)}
    assert suffixes == {".json", ".npy", ".text", ".paragraphs"}
    shutil.copytree(output, half)
    damaged_builds.build(dump, output)
    expected = damaged_builds.content(output)
    for _ in range(MUTATIONS // 3):
        shutil.rmtree(output)
        shutil.copytree(half, output)
        damages = [damaged_builds.damage_one(damaged_builds.work_files(output), chance) for _ in range(2)]
        check_again(dump, output, expected, ", ".join(map(str, damages)))


@pytest.mark.builds
def test_mlperf_text_comes_out_the_same_after_any_damage(dump: Path, tmp_path: Path) -> None:
    chance = random.Random(14)
    damaged_builds.build_mlperf(dump, tmp_path)
    expected = damaged_builds.content(tmp_path)
    for _ in range(MUTATIONS // 3):
        damage = damaged_builds.damage_one(damaged_builds.work_files(tmp_path), chance)
        damaged_builds.build_mlperf(dump, tmp_path)
        assert damaged_builds.content(tmp_path) == expected, damage


def test_what_was_made_again_is_named_with_its_reason(dump: Path, tmp_path: Path) -> None:
    assert damaged_builds.build(dump, tmp_path) == []
    (tmp_path / "text" / "part-00001-of-00003").write_bytes(b"x")
    (tmp_path / "examples" / "part-00002-of-00003.tfrecord.idx").unlink()
    parameters = tmp_path / "text" / ".maskmill" / "parameters.json"
    parameters.write_bytes(parameters.read_bytes()[:-9])
    records = sorted((tmp_path / "text" / ".maskmill" / "extract").glob("*.json"))
    records[0].write_bytes(records[1].read_bytes())
    tables = sorted((tmp_path / "text" / ".maskmill" / "extract").glob("*.npy"))
    tables[1].unlink()
    tables[2].write_bytes(tables[2].read_bytes()[:-1])
    lines = [re.sub(r"unit \d+", "unit N", line) for line in damaged_builds.build(dump, tmp_path)]
    assert sorted(lines) == [
        ".maskmill/parameters.json: it was damaged and was made from manifest.json",
        "part-00001-of-00003: its content had changed",
        "part-00002-of-00003.tfrecord: part-00002-of-00003.tfrecord.idx was gone",
        "unit N (dump.xml): its record was damaged",
        "unit N (dump.xml): its table was damaged",
        "unit N (dump.xml): its table was gone",
    ]
    assert damaged_builds.build(dump, tmp_path) == []
