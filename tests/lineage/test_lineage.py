"""From checkpoints, shards, builds and releases back to the dump, links that do not fit, and data sets with a page."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from command_runs.commands import DUMP, VOCAB
from data_sets.whole_builds import Made, extract_text, make_build
from servers import cloud

from maskmill.lineage.origins import Lineage, data_sets_with, lineage_of, page_range
from maskmill.releases import fingerprints
from pipelines.commands import cli

NAME = "enwiki-2016-05-01-0123abcd"
PARTS = ("enwiki-20260301-pages-articles1.xml-p1p100.bz2", "enwiki-20260301-pages-articles2.xml-p101p200.bz2")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_text(tmp_path_factory.mktemp("text") / "text", documents=6, eval_articles=1, shard_mb=0.1)


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_build(tmp_path_factory.mktemp("whole") / "build", text, picked=5, random_seed=7)


@pytest.fixture
def build(whole: Made, tmp_path: Path) -> Path:
    """A copy, which can be damaged: a release by its place."""
    return whole.copy(tmp_path / "enwiki" / "releases" / NAME).root


def lineage(path: Path | str) -> Lineage:
    found = lineage_of(path)
    assert found is not None
    return found


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def change(manifest: Path, old: str, new: str) -> None:
    content = manifest.read_text()
    assert old in content
    manifest.write_text(content.replace(old, new))


def checkpoint(folder: Path, data: object) -> Path:
    """A checkpoint as training writes it, of one number: its header is all that counts here."""
    run = json.dumps({"model": {"vocab_size": 9}, "training_data": "ab", "init_checkpoint": "bert"})
    metadata = {"format": "maskmill-training-1", "step": "7", "run": run, "data": json.dumps(data)}
    header = json.dumps(
        {"__metadata__": metadata, "bert/a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    ).encode()
    folder.mkdir()
    path = folder / "step-0000000007.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return path


def data_of(release: Path) -> dict[str, object]:
    examples = release / "examples"
    made = {"directory": str(examples), "stage": "examples", "sha256": sha256(examples / "manifest.json")}
    fingerprint = fingerprints.fingerprint_of(fingerprints.manifest_digests(str(release)))
    return {"manifests": [made], "release": str(release), "release_fingerprint": fingerprint}


def test_a_shard_of_examples_goes_back_to_the_dump(build: Path) -> None:
    found = lineage(build / "examples" / "part-00001-of-00003.tfrecord")
    examples, text = found.stages
    assert (found.kind, examples.stage, text.stage) == ("shard", "examples", "extract")
    assert (examples.shards, text.shards) == (("part-00001-of-00003.tfrecord",), ("part-00001-of-00003",))
    assert (text.all_shards, text.parameters["max_documents"]) == (4, 6)
    assert text.manifest_sha256 == sha256(build / "text" / "manifest.json")
    vocabulary, dump = found.sources
    assert (vocabulary.path, vocabulary.stage) == (str(VOCAB), "examples")
    assert (dump.path, dump.sha256, dump.bytes) == (str(DUMP), sha256(DUMP), DUMP.stat().st_size)
    assert dump.date == "2010-01-02"  # decided: the name has none
    assert (found.problems, found.gaps) == ((), ())


@pytest.mark.parametrize(
    ("below", "kind", "stages", "shards"),
    [
        ("", "release", ["eval", "examples", "extract"], [1, 4, 4]),
        ("report.html", "release", ["eval", "examples", "extract"], [1, 4, 4]),
        ("examples/manifest.json", "stage", ["examples", "extract"], [4, 4]),
        ("eval", "stage", ["eval", "examples", "extract"], [1, 1, 1]),
        ("eval/eval.tfrecord", "shard", ["eval", "examples", "extract"], [1, 1, 1]),
        ("text/eval.txt", "shard", ["extract"], [1]),
    ],
)
def test_what_a_path_is(below: str, kind: str, stages: list[str], shards: list[int], build: Path) -> None:
    found = lineage(build / below)
    assert (found.kind, [stage.stage for stage in found.stages]) == (kind, stages)
    assert [len(stage.shards) for stage in found.stages] == shards
    assert found.release == str(build)
    assert found.fingerprint == fingerprints.fingerprint_of(fingerprints.manifest_digests(str(build)))


@pytest.mark.parametrize("format", ["parquet", "mds"])
def test_other_formats_have_the_same_chain(format: str, text: Path, tmp_path: Path) -> None:
    root = make_build(tmp_path / "build", text, format=format).root
    files = sorted(path for path in (root / "examples").rglob(f"*.{format}") if path.name.startswith(("part", "shard")))
    found = lineage(files[-1])
    assert [(stage.stage, len(stage.shards)) for stage in found.stages] == [("examples", 1), ("extract", 1)]


def test_a_moved_build_is_followed_where_it_lies(build: Path, tmp_path: Path) -> None:
    moved = Path(shutil.move(build, tmp_path / "moved"))
    assert [stage.directory for stage in lineage(moved / "examples").stages] == [f"{moved}/examples", f"{moved}/text"]
    # Without its text the chain ends at the text's files.
    shutil.rmtree(moved / "text")
    change(moved / "examples" / "manifest.json", "/text/", "/gone/")
    found = lineage(moved / "examples")
    assert [stage.stage for stage in found.stages] == ["examples"]
    assert sum("/gone/" in source.path for source in found.sources) == 4


def test_links_that_do_not_fit(build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = checkpoint(tmp_path / "run", data_of(build))
    assert lineage(path.parent).problems == ()
    made = json.loads((build / "text" / "manifest.json").read_text())
    first = made["shards"][0]
    change(build / "text" / "manifest.json", first["sha256"], "ab")
    change(build / "examples" / "manifest.json", '"random_seed": 7', '"random_seed": 8')
    assert cli.main(["lineage", str(path)]) == 1
    said = capsys.readouterr()
    assert said.out.endswith("links        3 do not fit\n")
    for line, ending in zip(
        said.err.splitlines(),
        (
            f"{build}/examples: the checkpoint was trained on examples whose manifest has the sha256 ",
            f"{build}/text/{first['name']}: {build}/examples was made from this file when its sha256 was "
            f"{first['sha256']}, but its manifest now says ab.",
            f"{build}: the checkpoint was trained on the release with the fingerprint ",
        ),
        strict=True,
    ):
        assert line.startswith(f"maskmill lineage: does not fit: {ending}")


def test_a_checkpoint_goes_back_as_far_as_it_can(build: Path, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "run", data_of(build))
    found = lineage(path)
    assert found.checkpoint is not None
    assert (found.kind, found.checkpoint.step, found.checkpoint.init_checkpoint) == ("checkpoint", 7, "bert")
    assert [stage.stage for stage in found.stages] == ["examples", "extract"]
    shutil.rmtree(build)
    assert lineage(path).gaps == (
        f"{build}/examples: the examples of the checkpoint are no longer there.",
        f"{build}: this release is no longer there.",
    )
    (gap,) = lineage(checkpoint(tmp_path / "other", {})).gaps
    assert gap.endswith("this checkpoint does not name the manifests of its examples.")


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("enwiki-20260301-pages-articles-multistream27.xml-p68475910p69975909.bz2", (68475910, 69975909)),
        ("enwiki-2026-03-01-p20110420p21500133.xml.bz2", (20110420, 21500133)),
        ("enwiki-20260301-pages-articles.xml.bz2", None),
        ("map-p1p2x.xml", None),
    ],
)
def test_the_page_range_of_a_part_is_in_its_name(name: str, pages: tuple[int, int] | None) -> None:
    assert page_range(f"gs://bucket/{name}") == pages


@pytest.mark.parametrize(("page", "files"), [(1, [0]), (100, [0]), (101, [1]), (200, [1]), (201, [])])
def test_data_sets_with_a_page(page: int, files: list[int], build: Path, tmp_path: Path) -> None:
    """The first two text shards are of one part of the dump, the others of another."""
    path = build / "text" / "manifest.json"
    made = json.loads(path.read_text())
    for number, shard in enumerate(made["shards"]):
        shard["inputs"] = {f"/dumps/{PARTS[number // 2]}": "ab"}
    path.write_text(json.dumps(made))
    parts = [f"/dumps/{PARTS[number]}" for number in files]
    text = [tuple(shard["name"] for shard in made["shards"][2 * number : 2 * number + 2]) for number in files]
    found = {one.stage: one for one in data_sets_with(tmp_path / "enwiki", page)}
    assert [one.files for one in found.values()] == [tuple(parts)] * len(found)
    assert [one.shards for stage, one in found.items() if stage == "extract"] == text
    of_examples = [tuple(f"{name}.tfrecord" for name in names) for names in text]
    assert [one.shards for stage, one in found.items() if stage == "examples"] == of_examples
    assert ("eval" in found) == any("eval.txt" in names for names in text)


def test_a_dump_without_a_range_may_have_any_page(
    whole: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["lineage", str(whole.root), "--page", "12", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["stage"], len(one["shards"])) for one in found["data_sets"]] == [
        ("eval", 1),
        ("examples", 4),
        ("extract", 4),
    ]
    assert cli.main(["lineage", str(whole.root), "--page", "12"]) == 0
    assert f"text         {whole.root}/text: 4 of 4 shards\n" in capsys.readouterr().out
    assert cli.main(["lineage", str(tmp_path), "--page", "12"]) == 0
    assert "no data set below this directory was made of a file that may have page 12" in capsys.readouterr().out


def test_the_command_says_where_a_build_is_from(whole: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lineage", str(whole.root)]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == f"eval         {whole.root}/eval: 1 of 1 shards"
    assert any(line.startswith(f"dump         {DUMP}, ") for line in lines)
    assert lines[-1] == "links        all that is there fits"
    # Only what is not at its default.
    assert "random_seed 7" in said
    assert "masked_lm_prob" not in said
    assert cli.main(["lineage", str(whole.root), "--json"]) == 0
    assert str(DUMP) in [source["path"] for source in json.loads(capsys.readouterr().out)["sources"]]
    assert lineage_of(DUMP) is None


@pytest.mark.builds
def test_a_release_in_a_bucket(whole: Made, tmp_path: Path) -> None:
    release = f"gs://traced/enwiki/releases/{NAME}"
    with cloud.storage(tmp_path, "traced") as variables, cloud.set_environment(variables):
        for path in sorted(path for path in whole.root.rglob("*") if path.is_file() and ".maskmill" not in path.parts):
            name = f"enwiki/releases/{NAME}/{path.relative_to(whole.root)}"
            cloud.upload(variables, "traced", name, path.read_bytes())
        found = lineage(f"{release}/examples/eval.txt.tfrecord")
        holding = data_sets_with("gs://traced/enwiki", 12)
    assert [stage.directory for stage in found.stages] == [f"{release}/examples", f"{release}/text"]
    assert (found.release, found.problems) == (release, ())
    assert [one.directory for one in holding] == [f"{release}/{stage}" for stage in ("eval", "examples", "text")]
