"""Any flipped bit, changed, lost or added byte in any file of a small build is found, where the file has checksums."""

import random
import shutil
from pathlib import Path

import pytest
from damaged_copies import BUILDS, GoodBuilds, serious
from data_sets.damage import mutations
from regenerating import regenerate

from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify

pytestmark = pytest.mark.builds

# Damages of a build, in each of the two ways; those of an exhaustive run are others.
SOME, MANY = range(8), range(8, 33)
# What has no checksum: descriptions, versions and times. A gzip file's first bytes say when it was packed, and where.
_WITHOUT = ("manifest.json", "index.json", "README.md", "rejected.jsonl")
_GZIP_HEAD = 10


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> GoodBuilds:
    return GoodBuilds(folder=tmp_path_factory.mktemp("builds"))


def files_of(root: Path) -> list[Path]:
    """The files of a build that have checksums."""
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and ".maskmill" not in path.parts and path.name not in _WITHOUT
    )


@pytest.mark.exhaustive_but("some-gzip")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("numbers", [SOME, MANY], ids=["some", "many"])
def test_any_damage_to_any_file_is_found(numbers: range, build: str, good: GoodBuilds) -> None:
    root = good.copy(build).root
    chance = random.Random(f"{build} {numbers.start}")
    for number in numbers:
        path = chance.choice(files_of(root))
        before = path.read_bytes()
        damaged = next(content for content in mutations(before, number) if content != before)
        path.write_bytes(damaged)
        assert serious(verify([str(root)], VerifyOptions(remake=0))), (str(path), number)
        path.write_bytes(before)


@pytest.mark.exhaustive_but("some-packed")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("numbers", [SOME, MANY], ids=["some", "many"])
def test_any_damage_to_examples_is_found_without_the_manifest(numbers: range, build: str, good: GoodBuilds) -> None:
    root = good.copy(build).root
    kept = root.with_name("kept")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(root, kept)
    chance = random.Random(f"{build} {numbers.start}")
    for number in numbers:
        path = chance.choice([path for path in files_of(root / "examples") if path.name.startswith(("part", "eval"))])
        before = path.read_bytes()
        head = _GZIP_HEAD if build == "gzip" else 0
        damaged = next(c for c in mutations(before[head:], number) if c != before[head:])
        if path.suffix == ".idx":
            continue
        path.write_bytes(before[:head] + damaged)
        regenerate(root)
        assert serious(verify([str(root)])), (str(path), number)
        shutil.rmtree(root)
        shutil.copytree(kept, root)
