"""Fingerprints of data sets: of what they hang, and of what not."""

import shutil
from pathlib import Path

import pytest
from data_sets.whole_builds import extract_text, make_build

from maskmill.releases import fingerprints


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    text = extract_text(folder / "text", documents=6, eval_articles=1)
    return make_build(folder / "build", text).root


def test_a_copy_has_the_same_fingerprint(build: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(build, tmp_path / "copy"))
    digests = fingerprints.manifest_digests(str(build))
    assert list(digests) == ["extract", "examples"]
    assert fingerprints.manifest_digests(str(copy)) == digests


def test_another_manifest_is_another_fingerprint(build: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(build, tmp_path / "copy"))
    manifest = copy / "examples" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    before, after = (fingerprints.manifest_digests(str(directory)) for directory in (build, copy))
    assert fingerprints.fingerprint_of(before) != fingerprints.fingerprint_of(after)


def test_the_training_is_no_part_of_the_data() -> None:
    digests = {"extract": "ab", "examples": "cd"}
    assert fingerprints.fingerprint_of(digests | {"train": "ef"}) == fingerprints.fingerprint_of(digests)
