"""Releases in a bucket: `maskmill build --release` on the storage emulator, stage by stage, with clean-up."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from command_runs import commands
from release_runs.builds import Root, config, contents, release
from servers import cloud

pytestmark = pytest.mark.builds

BUCKET = "maskmill-releases"
NAME = "enwiki-20260301-pages-articles-multistream.xml.bz2"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Runs the storage emulator with a dump in its bucket."""
    with cloud.storage(tmp_path_factory.mktemp("storage"), BUCKET) as variables:
        cloud.upload(variables, BUCKET, NAME, commands.DUMP.read_bytes())
        yield variables


def names(environment: Mapping[str, str]) -> set[str]:
    """The releases of which there is anything."""
    below = [name.split("/") for name in cloud.objects(environment, BUCKET) if name.startswith("root/releases/")]
    return {parts[2] for parts in below} - {".state"}


def latest(environment: Mapping[str, str]) -> dict[str, str]:
    content: dict[str, str] = json.loads(cloud.content(environment, BUCKET, "root/latest.json"))
    return content


def test_releases_in_a_bucket(environment: Mapping[str, str], tmp_path: Path) -> None:
    path = config(tmp_path, f"gs://{BUCKET}/root", extract={"input": f"gs://{BUCKET}/{NAME}"})
    build = ("build", path, "--release")
    done = commands.maskmill(*build, "--until=extract", **environment)
    assert done.returncode == 0, done.stderr
    assert "root/latest.json" not in cloud.objects(environment, BUCKET)
    done = commands.maskmill(*build, "--from=examples", **environment)
    assert done.returncode == 0, done.stderr
    (first,) = names(environment)
    assert first.startswith("enwiki-2026-03-01-")
    assert latest(environment)["release"] == first

    # The same data as on a disk, from the same file under a name with the same date.
    dump = tmp_path / NAME
    dump.write_bytes(commands.DUMP.read_bytes())
    (tmp_path / "local").mkdir()
    assert release(config(tmp_path / "local", tmp_path / "out", extract={"input": str(dump)})) == 0
    made = contents(Root(tmp_path / "out").release())
    here = {name: sha256 for name, sha256 in made.items() if "manifest" not in name}
    prefix = f"root/releases/{first}/"
    there = {
        name.removeprefix(prefix): hashlib.sha256(cloud.content(environment, BUCKET, name)).hexdigest()
        for name in cloud.objects(environment, BUCKET)
        if name.startswith(prefix) and ".maskmill" not in name
    }
    assert {name: sha256 for name, sha256 in there.items() if "manifest" not in name and name != "release.json"} == here

    record = json.loads(cloud.content(environment, BUCKET, f"{prefix}release.json"))
    assert list(record["inputs"][0]) == ["bytes", "crc32c", "path"]

    before = cloud.objects(environment, BUCKET)
    done = commands.maskmill(*build, **environment)
    assert "is complete; nothing to do" in done.stdout
    after = cloud.objects(environment, BUCKET)
    assert {n: o["generation"] for n, o in after.items() if n.startswith(prefix)} == {
        n: o["generation"] for n, o in before.items() if n.startswith(prefix)
    }

    keeps_one = "--keep=1", "--release.keep_days=0"
    done = commands.maskmill(*build, "--eval.num_examples_to_pick=5", *keeps_one, **environment)
    assert done.returncode == 0, done.stderr
    assert names(environment) == {latest(environment)["release"]} != {first}
