"""A second run of a command over its output: what it reuses, makes again and refuses, and what it says of that."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY, VOCAB, digests, leftovers
from data_sets import damaged_builds
from made_up import dump_files

from pipelines.commands import cli

pytestmark = pytest.mark.long

PAGES = damaged_builds.PAGES


class Build:
    """A build in a folder: its inputs lie in it, and its commands run in this process."""

    def __init__(self, folder: Path) -> None:
        self.dump = folder / "dump.xml"
        self.vocab = folder / "vocab.txt"
        self.text = folder / "text"
        self.examples = folder / "examples"
        self.folder = folder
        if not self.dump.exists():
            self.dump.write_bytes(dump_files.dump(PAGES))
            shutil.copyfile(VOCAB, self.vocab)

    def extract(self, *flags: str) -> int:
        shape = ["--drop_duplicates", "--expand_templates", "--shard_size_mb=0.0005", "--num_eval_articles=2"]
        return cli.main(["extract", f"--input={self.dump}", f"--output={self.text}", *shape, *flags, *IN_MEMORY])

    def mask(self, *flags: str) -> int:
        shape = ["--dupe_factor=1", "--max_seq_length=32", "--max_predictions_per_seq=5", f"--vocab_file={self.vocab}"]
        return cli.main(["examples", f"--input={self.text}", f"--output={self.examples}", *shape, *flags, *IN_MEMORY])

    def run(self) -> list[int]:
        return [self.extract(), self.mask()]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder for a build, and a copy of the folder as the build leaves it."""
    folder = tmp_path_factory.mktemp("build")
    assert Build(folder).run() == [0, 0]
    return folder, Path(shutil.copytree(folder, tmp_path_factory.mktemp("copy") / "build"))


@pytest.fixture
def build(saved: tuple[Path, Path]) -> Build:
    """A finished build, always in the same folder: claims have its path in them."""
    folder, copy = saved
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    return Build(folder)


@pytest.mark.builds
def test_a_second_run_says_what_it_reused(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    before = digests(build.folder)
    assert build.run() == [0, 0]
    out = capsys.readouterr().out
    assert "reused     1 template collection, 1 unit, 1 duplicate decision, 4 text shards\n" in out
    assert "reused     4 example shards\n" in out
    assert out.count("made       nothing\n") == 2
    assert "made again" not in out
    assert digests(build.folder) == before


def test_a_first_run_says_nothing_of_reuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Build(tmp_path).extract() == 0
    out = capsys.readouterr().out
    assert "reused" not in out
    assert "made" not in out


@pytest.mark.builds
def test_a_repaired_shard_is_named(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    before = digests(build.folder)
    (build.text / "part-00001-of-00003").write_bytes(b"x")
    (build.text / "eval.txt").unlink()
    assert build.extract() == 0
    out = capsys.readouterr().out
    assert "made again part-00001-of-00003: its content had changed\n" in out
    assert "made again eval.txt: it was gone\n" in out
    assert "reused     1 template collection, 1 unit, 1 duplicate decision, 2 text shards\n" in out
    assert "made       2 text shards\n" in out
    assert digests(build.folder) == before


@pytest.mark.builds
def test_a_changed_input_is_named(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    build.dump.write_bytes(dump_files.dump([*PAGES, dump_files.page(99, "More", "One more article stands here.")]))
    assert build.extract() == 0
    out = capsys.readouterr().out
    assert f"changed    {build.dump}: it has other content than in the build before\n" in out
    assert "made       1 template collection, 1 unit, 1 duplicate decision, " in out


def test_the_same_vocabulary_in_another_place_is_the_same(build: Build, capsys: pytest.CaptureFixture[str]) -> None:
    build.vocab = build.vocab.rename(build.folder / "moved.txt")
    assert build.mask() == 0
    assert "reused     4 example shards\n" in capsys.readouterr().out


def empty(path: Path, others: list[Path], chance: random.Random) -> None:
    path.write_bytes(b"")


def flip(path: Path, others: list[Path], chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut(path: Path, others: list[Path], chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def delete(path: Path, others: list[Path], chance: random.Random) -> None:
    path.unlink()


def copy(path: Path, others: list[Path], chance: random.Random) -> None:
    path.write_bytes(chance.choice([p for p in others if p.exists() and p.suffix == path.suffix]).read_bytes())


def no_json(path: Path, others: list[Path], chance: random.Random) -> None:
    path.write_bytes(b'{"kind": ')


@pytest.mark.builds
@pytest.mark.parametrize("damage", [empty, flip, cut, delete, copy, no_json])
@pytest.mark.exhaustive_but("delete", "no_json")
def test_a_run_over_damaged_state_makes_the_same(
    damage: Callable[[Path, list[Path], random.Random], None], build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digests(build.folder)
    work_files = [path for path in build.folder.rglob(".maskmill/**/*") if path.is_file() and path.stat().st_size]
    chance = random.Random(5)
    for path in work_files:
        damage(path, work_files, chance)
    assert build.run() == [0, 0]
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert digests(build.folder) == before
    assert leftovers(build.folder) == []
    assert captured.out.count("made again .maskmill/parameters.json: it was ") == 2
    assert build.run() == [0, 0]
    assert "made again" not in capsys.readouterr().out
