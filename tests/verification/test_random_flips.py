"""Any flipped bit, changed, lost or added byte in any file of a small build is found, where the file has checksums."""

import random
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
_WITHOUT = ("manifest.json", "index.json", "README.md", "rejected.jsonl", "eval.md5")
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


@pytest.mark.exhaustive_but("as-it-is-some-gzip", "regenerated-some-packed")
@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("numbers", [SOME, MANY], ids=["some", "many"])
@pytest.mark.parametrize("regenerated", [False, True], ids=["as-it-is", "regenerated"])
def test_any_damage_is_found(regenerated: bool, numbers: range, build: str, good: GoodBuilds) -> None:
    """With the manifests regenerated, shards that are made again tell of any damage to examples."""
    chance = random.Random(f"{build} {numbers.start}")
    for number in numbers:
        root = good.copy(build).root
        files = [path for path in files_of(root) if not regenerated or path.name.startswith(("part-", "eval.txt."))]
        path = chance.choice([path for path in files if "text" not in path.parts or not regenerated])
        head, before = _GZIP_HEAD if regenerated and build == "gzip" else 0, path.read_bytes()
        damaged = next(content for content in mutations(before[head:], number) if content != before[head:])
        if regenerated and path.suffix == ".idx":
            continue
        path.write_bytes(before[:head] + damaged)
        if regenerated:
            regenerate(root)
        assert serious(verify([str(root)], VerifyOptions(remake=None if regenerated else 0))), (str(path), number)
