"""The release of the next dump: what it takes from the one before, and that its bytes are those of a full build."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_runs.commands import DUMP, IN_MEMORY, TWO_PROCESSES, VOCAB, digests

from benchmarks.incremental import next_dump
from maskmill.releases.names import ReleaseName
from maskmill.storage.reuse import Reused, read_reused
from pipelines.commands import cli

pytestmark = pytest.mark.releases

EXAMPLES: Mapping[str, Any] = {
    "vocab_file": str(VOCAB),
    "max_seq_length": 64,
    "max_predictions_per_seq": 10,
    "dupe_factor": 1,
}
DUMPS = ("enwiki-20260301-pages-articles-multistream.xml.bz2", "enwiki-20260401-pages-articles-multistream.xml.bz2")
SMALL = {"num_eval_articles": 7, "shard_size_mb": 0.3}

BUILDS: Mapping[str, dict[str, Any]] = {
    "usual": {"extract": SMALL, "examples": dict(EXAMPLES), "eval": {"num_examples_to_pick": 20}},
    "mlperf": {
        "compat": "mlperf",
        "extract": {"shard_size_mb": 1.0, "num_eval_articles": 20},
        "examples": dict(EXAMPLES),
        "eval": {"num_examples_to_pick": 20},
    },
    "expanding": {
        "extract": {**SMALL, "expand_templates": True, "report_templates": True},
        "examples": dict(EXAMPLES),
    },
    "filtered": {
        "examples": dict(EXAMPLES),
        "extract": {**SMALL, "drop_duplicates": True, "min_characters": 500, "drop_stubs": True, "keep_titles": True},
    },
    "mixed": {
        "examples": dict(EXAMPLES),
        "extract": SMALL,
        "sources": {
            "wikipedia": {"weight": 3, "max_epochs": 2},
            "book": {"input_format": "text", "weight": 1, "max_epochs": 3},
        },
    },
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two dumps of a wiki, a month apart."""
    folder = tmp_path_factory.mktemp("dumps")
    paths = [folder / name for name in DUMPS]
    shutil.copyfile(DUMP, paths[0])
    made = next_dump(paths[0], paths[1], (0.05, 0.02, 0.02))
    assert min(made.values()) > 0
    return paths


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("book") / "book.txt"
    chapters = [f"The {k}th chapter tells of a river. It is longer than the one before it.\n" * 20 for k in range(9)]
    path.write_text("\n\n".join(chapters))
    return path


def build(root: Path, sections: Mapping[str, Any], dump: Path, book: Path, *flags: str) -> Path:
    """Builds a release; returns its directory."""
    named: dict[str, Any] = {"output": str(root), "report": "none", **sections}
    if "sources" in sections:
        inputs = {"wikipedia": {"input": str(dump)}, "book": {"input": str(book)}}
        named["sources"] = {name: options | inputs[name] for name, options in sections["sources"].items()}
    else:
        named["extract"] = {"input": str(dump), **sections["extract"]}
    config = root.parent / f"{root.name}.yaml"
    config.write_text(yaml.safe_dump(named))
    before = set((root / "releases").glob("*-*"))
    assert cli.main(["build", str(config), "--release", "--quiet", *flags]) == cli.DONE
    (release,) = set((root / "releases").glob("*-*")) - before
    assert ReleaseName.parse(release.name)
    return release


def bytes_of(release: Path) -> dict[str, str]:
    """The files of a release but for its record, which says what it was taken from, and when it was made."""
    return {name: digest for name, digest in digests(release).items() if name != "release.json"}


def reused_of(release: Path, folder: str = "text") -> Reused:
    """What a stage of a release took."""
    reused = read_reused(str(release / folder))
    assert reused is not None
    return reused


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.exhaustive_but("expanding")
def test_the_next_release_has_the_bytes_of_a_full_build(
    name: str, dumps: list[Path], book: Path, tmp_path: Path
) -> None:
    sections, root = BUILDS[name], tmp_path / "data"
    build(root, sections, dumps[0], book, *IN_MEMORY)
    second = build(root, sections, dumps[1], book, *(TWO_PROCESSES if name == "usual" else IN_MEMORY))
    found = bytes_of(second)
    reused = reused_of(second)
    assert 0.85 * reused.pages < reused.reused_pages < reused.pages
    assert reused.shards > 1
    root.rename(tmp_path / "with-reuse")
    full = build(root, sections, dumps[1], book, *IN_MEMORY)
    assert full.name == second.name
    assert bytes_of(full) == found
    assert len(found) > 4


def test_other_examples_of_the_same_dump_take_all_text(dumps: list[Path], book: Path, tmp_path: Path) -> None:
    sections = {"extract": SMALL, "examples": dict(EXAMPLES)}
    first = build(tmp_path / "data", sections, dumps[0], book, *IN_MEMORY)
    sections = {"extract": SMALL, "examples": {**EXAMPLES, "max_seq_length": 32}}
    second = build(tmp_path / "data", sections, dumps[0], book, *IN_MEMORY)
    reused = reused_of(second)
    assert reused.reused_pages == reused.pages > 0
    assert reused.reused_shards == reused.shards > 0
    assert reused_of(second, "examples").reused_shards == 0
    parts = [release / "text" / "eval.txt" for release in (first, second)]
    assert len({path.stat().st_ino for path in parts}) == 1
    assert digests(first / "text") == digests(second / "text")
    page = (second / "report.html").read_text()
    assert "Taken from the release before" in page
    assert first.name in page


def test_a_release_that_keeps_no_pages_gives_none(dumps: list[Path], book: Path, tmp_path: Path) -> None:
    off = ("--release.page_store=false", *IN_MEMORY)
    first = build(tmp_path / "data", BUILDS["usual"], dumps[0], book, *off)
    assert list(first.rglob("*.pages")) == []
    second = build(tmp_path / "data", BUILDS["usual"], dumps[1], book, *off)
    assert (reused_of(second).previous, reused_of(second).reused_pages) == (str(first / "text"), 0)
