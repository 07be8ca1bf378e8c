"""The frame of a verification: what paths are, what is looked at, what manifests may say, what the command prints."""

import copy
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import ROOT, TWO_PROCESSES, VOCAB, maskmill
from data_sets.whole_builds import Made, extract_text, make_build
from servers import cloud, file_server

from maskmill.errors import UnusableInputError
from maskmill.verification.findings import CHECKS, Verification, functions_of
from maskmill.verification.options import VerifyOptions, shard_numbers
from maskmill.verification.verify_plan import plan
from maskmill.verification.verify_targets import find_targets
from maskmill.verification.verifying import verify
from pipelines.verifying import verify as command

# The checks that are always made on a build of pairs in TFRecords with all its text.
ALWAYS = ("manifest", "missing", "size", "sha256", "framing", "crc", "schema", "index", "counts", "foreign")
PICKED = 5


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_text(tmp_path_factory.mktemp("text") / "text", documents=8, eval_articles=2, shard_mb=0.1)


@pytest.fixture(scope="module")
def build(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_build(tmp_path_factory.mktemp("build") / "build", text, picked=PICKED)


@pytest.fixture
def damaged(build: Made, tmp_path: Path) -> Made:
    """A build that a test may damage."""
    return build.copy(tmp_path / "build")


def edit(path: Path, place: Sequence[Any], value: Any) -> None:
    """Changes a value of a manifest."""
    made = json.loads(path.read_text())
    entry = made
    for key in place[:-1]:
        entry = entry[key]
    entry[place[-1]] = value
    path.write_text(json.dumps(made))


def found(verification: Verification) -> set[tuple[str, str]]:
    """The checks that found something, with the names of the files."""
    return {(finding.check, Path(finding.file).name) for finding in verification.findings}


def of(verification: Verification, check: str) -> list[str]:
    """The messages of the findings of a check."""
    return [finding.message for finding in verification.findings if finding.check == check]


# ---- what is looked at


def test_a_build_is_right(build: Made) -> None:
    verification = verify([str(build.root)])
    assert list(verification.findings) == []
    assert set(verification.outcomes) == set(CHECKS)
    assert all(verification.outcomes[name].looked_at for name in (*ALWAYS, "shard_inputs", "vocabulary", "seed"))
    assert verification.read_bytes == sum(
        path.stat().st_size
        for folder in ("text", "examples", "eval")
        for path in (build.root / folder).iterdir()
        if path.name.startswith(("part-", "eval.t")) and path.suffix != ".idx"
    )


@pytest.mark.parametrize("folder", ["text", "examples", "eval"])
def test_a_stage_is_right_alone(build: Made, folder: str) -> None:
    verification = verify([str(build.root / folder)])
    assert list(verification.findings) == []
    assert verification.paths == (str(build.root / folder),)


@pytest.mark.builds
@pytest.mark.parametrize("shards", ["0", "1-2", "0,2"])
def test_a_part_is_right(build: Made, shards: str) -> None:
    verification = verify([str(build.root)], VerifyOptions(shards=shards))
    assert list(verification.findings) == []
    numbers = {number for chosen in shard_numbers(shards) for number in chosen}
    assert {result.item.shard for result in verification.results} == numbers  # type: ignore[attr-defined]


def test_files_of_a_data_set_are_held_against_its_manifest(damaged: Made) -> None:
    paths = sorted((damaged.root / "examples").glob("part-*"))
    with open(paths[0], "ab") as file:
        file.write(b"more")
    verification = verify([str(path) for path in paths[:4]])  # a shell names the indexes, too
    assert ("size", paths[0].name) in found(verification)
    assert len([r for r in verification.results if r.item.kind == "examples"]) == 2  # type: ignore[attr-defined]


def test_files_without_a_manifest(build: Made, tmp_path: Path) -> None:
    for path in (build.root / "examples").glob("part-*.tfrecord"):
        shutil.copy(path, tmp_path)
    options = VerifyOptions(vocab_file=str(VOCAB), masked_lm_prob=0.15)
    verification = verify([str(tmp_path)], options)
    assert list(verification.findings) == []
    assert verification.outcomes["ids"].looked_at == verification.outcomes["masks"].looked_at > 0
    sorted(tmp_path.iterdir())[1].unlink()
    assert of(verify([str(tmp_path)], options), "missing")[0].startswith(f"{tmp_path}: of the files numbered 0 to")


@pytest.mark.parametrize("name", ["", "nothing", "empty"])
def test_what_cannot_be_verified(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnusableInputError):
        verify([str(tmp_path / name) if name else ""])


@pytest.mark.parametrize("shards", ["", "x", "3-1", "1--2", "-1", "1,", "99999999"])
def test_numbers_that_mean_no_shards(shards: str) -> None:
    with pytest.raises(UnusableInputError, match="--shards must be"):
        VerifyOptions(shards=shards)


def test_shards_that_there_are_not(build: Made) -> None:
    with pytest.raises(UnusableInputError, match="--shards 77: there are no such shards"):
        verify([str(build.root)], VerifyOptions(shards="77"))


# ---- what is found of files


def test_a_missing_and_a_foreign_file(damaged: Made) -> None:
    examples = damaged.root / "examples"
    (examples / "part-00000-of-00003.tfrecord").rename(examples / "part-00009-of-00003.tfrecord")
    (examples / "notes.md").write_text("mine")
    verification = verify([str(damaged.root)])
    assert {("missing", "part-00000-of-00003.tfrecord"), ("foreign", "part-00009-of-00003.tfrecord")} <= found(
        verification
    )
    severities = {Path(f.file).name: f.severity for f in verification.findings if f.check == "foreign"}
    assert severities == {"part-00009-of-00003.tfrecord": "warning", "notes.md": "note"}


# ---- what manifests may say

EDITS: dict[str, tuple[str, tuple[Any, ...], Any, str]] = {
    "a name that leads elsewhere": ("examples", ("shards", 0, "name"), "../text/eval.txt", "manifest"),
    "a size that is none": ("examples", ("shards", 0, "bytes"), "many", "manifest"),
    "a sha256 that is none": ("text", ("shards", 0, "sha256"), "0", "manifest"),
    "a count": ("examples", ("counts", "train", "examples"), 1, "counts"),
    "a count of a shard": ("text", ("shards", 0, "sentences"), 1, "counts"),
    "documents that were extracted": ("text", ("counts", "extract", "documents"), 1000, "counts"),
    "a seed": ("examples", ("shards", 1, "random_seed"), 5, "seed"),
    "the seed of all": ("examples", ("parameters", "random_seed"), 5, "seed"),
    "an option": ("examples", ("parameters", "max_seq_length"), "long", "manifest"),
    "a column": ("examples", ("schema", 0, "dtype"), "float32", "manifest"),
    "the number of pieces": ("examples", ("vocabulary_size",), 7, "vocabulary"),
    "the stage": ("examples", ("stage",), "cooking", "manifest"),
    "the format": ("examples", ("format",), "mds", "manifest"),
    "a shard that is listed twice": ("examples", ("shards", 0, "name"), "part-00001-of-00003.tfrecord", "manifest"),
    "what was picked": ("eval", ("counts", "eval", "picked"), 4, "counts"),
}


@pytest.mark.builds
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_manifest(damaged: Made, name: str) -> None:
    folder, place, value, check = EDITS[name]
    edit(damaged.root / folder / "manifest.json", place, value)
    assert any(finding.check == check for finding in plan_of(damaged.root))


def plan_of(root: Path) -> list[Any]:
    """The findings of a build that need none of its files read."""
    planned = plan(find_targets([str(root)]), VerifyOptions(remake=0), str(root / "scratch"))
    return [
        *(finding for target in planned.targets for finding in target.checked.findings),
        *(f for t in planned.targets for check in functions_of("data_set", t.kind) for f in check(t, []).findings),
        *(finding for check in functions_of("all") for finding in check(planned, []).findings),
    ]


STRANGE = (None, -1, 0, 2**70, 1.5, "", "x", "../x", [], {}, [[]], {"a": 1}, True, "\0", "a" * 300, [None])


def strangely(made: Any, generator: random.Random) -> Any:
    """A manifest with one change anywhere in it."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            walk(value[key])

    changed = copy.deepcopy(made)
    walk(changed)
    parent, key = generator.choice(places)
    what = generator.randrange(3)
    if what == 0:
        del parent[key]
    elif what == 1:
        parent[key] = generator.choice(STRANGE)
    else:
        parent[key] = copy.deepcopy(generator.choice(places)[0])
    return changed


@pytest.mark.builds
@pytest.mark.exhaustive_but("examples-options1", "eval-options3", "text-options3")
@pytest.mark.parametrize(
    "options", [{"format": "mds"}, {"format": "parquet", "objective": "mlm"}, {"bins": 2}, {"picked": 5}]
)
@pytest.mark.parametrize("folder", ["text", "examples", "eval"])
def test_a_manifest_that_was_edited_in_any_way_ends_no_verification(
    text: Path, tmp_path: Path, folder: str, options: dict[str, Any]
) -> None:
    build = make_build(tmp_path / "build", text, **options)
    path = build.root / folder / "manifest.json"
    if not path.exists():
        return
    made = json.loads(path.read_text())
    generator = random.Random(f"manifest {options}")
    for _ in range(25):
        path.write_text(json.dumps(strangely(made, generator)))
        verify([str(build.root)], VerifyOptions(remake=1))


# ---- what the command prints


def test_the_exit_code_and_the_json(damaged: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run([str(damaged.root)], VerifyOptions(json=True)) == 0
    right = json.loads(capsys.readouterr().out)
    assert (right["is_right"], right["findings"]) == (True, [])
    assert [check["check"] for check in right["checks"]] == list(CHECKS)
    for path in (damaged.root / "text").glob("part-*"):
        path.write_bytes(b"")
    assert command.run([str(damaged.root)], VerifyOptions(json=True)) == 1
    wrong = json.loads(capsys.readouterr().out)
    assert wrong["counts"]["error"] == sum(f["count"] for f in wrong["findings"] if f["severity"] == "error") > 2
    assert command.run([str(damaged.root)], VerifyOptions()) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("error: ")
    summary = next(place for place, line in enumerate(lines) if line.startswith(f"{damaged.root}: "))
    assert summary >= len(wrong["findings"])
    assert all(len(line) <= 80 for line in lines[summary + 1 :])


def test_a_message_shows_what_a_terminal_would_obey(damaged: Made, capsys: pytest.CaptureFixture[str]) -> None:
    (damaged.root / "text" / "part-\x1b[31m-of-9").write_text("red")
    command.run([str(damaged.root / "text")], VerifyOptions())
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\\x1b[31m" in printed


def test_a_verification_starts_without_beam() -> None:
    code = "import sys, pipelines.verifying.verify; sys.exit('apache_beam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.builds
@pytest.mark.exhaustive_but("flags1", "flags2")
@pytest.mark.parametrize("flags", [("--workers=1",), TWO_PROCESSES, ("--runner=LocalRunner",)])
def test_on_beam(build: Made, tmp_path: Path, flags: tuple[str, ...]) -> None:
    copied = build.copy(tmp_path / "copy")
    (copied.root / "examples" / "part-00000-of-00003.tfrecord").unlink()
    for root, code in ((build.root, 0), (copied.root, 1)):
        done = maskmill("verify", root, "--json", *flags)
        assert (done.returncode, done.stderr.count("Traceback")) == (code, 0), done.stderr
        alone = maskmill("verify", root, "--json")
        assert json.loads(done.stdout) == json.loads(alone.stdout)


# ---- elsewhere


@pytest.fixture(scope="module")
def bucket(build: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The build in an emulator of Cloud Storage."""
    directory = tmp_path_factory.mktemp("storage")
    with cloud.storage(directory, "verified") as variables, cloud.set_environment(variables):
        for path in files_of(build.root):
            cloud.upload(variables, "verified", f"build/{path.relative_to(build.root)}", path.read_bytes())
        yield "gs://verified/build"


def files_of(root: Path) -> list[Path]:
    """The files of a build without its work directories."""
    return [path for path in sorted(root.rglob("*")) if path.is_file() and ".maskmill" not in path.parts]


@pytest.mark.builds
def test_in_cloud_storage(build: Made, bucket: str) -> None:
    assert outline(verify([bucket])) == outline(verify([str(build.root)]))


@pytest.mark.builds
def test_on_a_web_server(build: Made) -> None:
    with file_server.serve() as server:
        for path in files_of(build.root):
            server.files[f"build/{path.relative_to(build.root)}"] = path.read_bytes()
        url = f"{server.url}/build".replace("//build", "/build")
        verification = verify([url], VerifyOptions(text=(str(build.root / "text"),)))
        assert list(verification.findings) == []
        assert verification.outcomes["foreign"].skipped == "a web server does not list its files"
        part = "build/examples/part-00001-of-00003.tfrecord"
        server.files[part] = server.files[part][:-1] + b"\0"
        assert ("sha256", "part-00001-of-00003.tfrecord") in found(verify([f"{url}/examples"]))


def outline(verification: Verification) -> dict[str, Any]:
    """What became of each check, without the places; the claims of directories are not uploaded."""
    outcomes = {name: (o.looked_at, o.findings, o.skipped is None) for name, o in verification.outcomes.items()}
    return outcomes | {"manifest": verification.outcomes["manifest"].findings}


def test_what_a_missing_file_would_have_shown_is_not_called_right(build: Made, tmp_path: Path) -> None:
    shutil.copytree(build.root, tmp_path / "copy")
    sorted((tmp_path / "copy" / "text").glob("part-*"))[0].unlink()
    outcomes = verify([str(tmp_path / "copy")]).outcomes
    assert {name for name in ("documents", "eval_leak", "profile") if outcomes[name].skipped} == {
        "documents",
        "eval_leak",
        "profile",
    }
    assert outcomes["missing"].findings == 1
