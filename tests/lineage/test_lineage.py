"""From shards, builds and releases back to the dump, and forward from it; and links that do not fit any more."""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import pytest
from command_runs.commands import DUMP, VOCAB
from data_sets.whole_builds import Made, extract_text, make_build

from maskmill.errors import UnusableInputError
from maskmill.lineage import descendants
from maskmill.lineage.origins import Lineage, lineage_of, page_range
from maskmill.releases import fingerprints, records
from maskmill.releases.names import ReleaseName
from maskmill.releases.records import ReleaseRecord, write_record
from maskmill.verification.manifest_checks import check_builds
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verify_targets import VerifyPlan, find_targets

NAME = ReleaseName(wiki="enwiki", date="2016-05-01", digest="0123abcd")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extract_text(tmp_path_factory.mktemp("text") / "text", documents=6, eval_articles=1, shard_mb=0.1)


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_build(tmp_path_factory.mktemp("whole") / "build", text, picked=5)


@pytest.fixture
def build(whole: Made, tmp_path: Path) -> Path:
    """A copy, which can be damaged."""
    return whole.copy(tmp_path / "build").root


def lineage(path: Path, *, checksums: bool = False) -> Lineage:
    found = lineage_of(str(path), checksums=checksums)
    assert found is not None
    return found


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checkpoint(path: Path, data: object, **run: object) -> Path:
    """A checkpoint as training writes it, of one number: its header is all that counts here."""
    settings = {"seed": 3, "model": {"vocab_size": 9}, "training_data": "ab"} | run
    header = json.dumps(
        {
            "__metadata__": {
                "format": "maskmill-training-1",
                "step": str(int(path.stem.removeprefix("step-"))),
                "run": json.dumps(settings),
                **({} if data is None else {"data": json.dumps(data)}),
            },
            "bert/a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        }
    ).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    return path


def data_of(examples: Path, **more: object) -> dict[str, object]:
    made = {"directory": str(examples), "stage": "examples", "sha256": sha256(examples / "manifest.json")}
    return {"input": [str(examples)], "manifests": [made], "release": None, "release_fingerprint": None} | more


def test_a_shard_of_examples_goes_back_to_the_dump(build: Path) -> None:
    found = lineage(build / "examples" / "part-00001-of-00003.tfrecord")
    assert found.kind == "shard"
    assert [stage.stage for stage in found.stages] == ["examples", "extract"]
    examples, text = found.stages
    assert [shard.name for shard in examples.shards] == ["part-00001-of-00003.tfrecord"]
    assert [shard.name for shard in text.shards] == ["part-00001-of-00003"]
    assert (text.all_shards, text.parameters["max_documents"]) == (4, 6)
    assert text.manifest_sha256 == sha256(build / "text" / "manifest.json")
    vocabulary, dump = found.sources
    assert (vocabulary.path, vocabulary.stage) == (str(VOCAB), "examples")
    assert (dump.path, dump.sha256, dump.bytes) == (str(DUMP), sha256(DUMP), DUMP.stat().st_size)
    assert (dump.state, dump.date) == ("there", text.decided["dump_date"])
    assert (found.problems, found.gaps) == ((), ())


@pytest.mark.parametrize(
    ("below", "kind", "stages"),
    [
        ("", "build", ["eval", "examples", "extract"]),
        ("report.html", "build", ["eval", "examples", "extract"]),
        ("examples", "stage", ["examples", "extract"]),
        ("examples/manifest.json", "stage", ["examples", "extract"]),
        ("eval/eval.tfrecord", "shard", ["eval", "examples", "extract"]),
        ("examples/part-00000-of-00003.tfrecord.idx", "shard", ["examples", "extract"]),
        ("text/eval.txt", "shard", ["extract"]),
    ],
)
def test_what_a_path_is(below: str, kind: str, stages: list[str], build: Path) -> None:
    found = lineage(build / below, checksums=True)
    assert (found.kind, [stage.stage for stage in found.stages]) == (kind, stages)
    assert found.problems == ()


def test_picked_eval_examples_are_of_the_eval_shard(build: Path) -> None:
    _, examples, text = lineage(build / "eval").stages
    assert [shard.name for shard in examples.shards] == ["eval.txt.tfrecord"]
    assert [shard.name for shard in text.shards] == ["eval.txt"]


@pytest.mark.parametrize("format", ["parquet", "mds"])
def test_other_formats_have_the_same_chain(format: str, text: Path, tmp_path: Path) -> None:
    root = make_build(tmp_path / "build", text, format=format).root
    shards = sorted(
        path for path in (root / "examples").rglob(f"*.{format}") if path.name.startswith(("part", "shard"))
    )
    found = lineage(shards[-1])
    assert [stage.stage for stage in found.stages] == ["examples", "extract"]
    assert [len(stage.shards) for stage in found.stages] == [1, 1]
    assert found.problems == ()


def test_a_moved_build_is_followed_where_it_lies(whole: Made, tmp_path: Path) -> None:
    first = whole.copy(tmp_path / "first").root
    moved = Path(shutil.move(first, tmp_path / "moved"))
    found = lineage(moved / "examples")
    assert [stage.directory for stage in found.stages] == [str(moved / "examples"), str(moved / "text")]
    assert found.problems == ()


def test_examples_without_their_text_end_there(build: Path, whole: Made) -> None:
    shutil.rmtree(build / "text")
    manifest = build / "examples" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(str(whole.root).encode(), b"/gone"))
    found = lineage(build / "examples")
    assert [stage.stage for stage in found.stages] == ["examples"]
    assert {source.state for source in found.sources if source.path.startswith("/gone/text/")} == {"gone"}


def test_other_text_than_the_examples_were_made_of_does_not_fit(build: Path) -> None:
    manifest = build / "text" / "manifest.json"
    made = json.loads(manifest.read_text())
    before, made["shards"][0]["sha256"] = made["shards"][0]["sha256"], "ab"
    manifest.write_text(json.dumps(made))
    (problem,) = lineage(build / "examples").problems
    name = made["shards"][0]["name"]
    assert problem.startswith(f"{build}/text/{name}: ")
    assert f"was made of this file when its sha256 was {before}, but its manifest now says ab." in problem


def test_a_damaged_shard_that_was_asked_for_does_not_fit(build: Path) -> None:
    path = build / "examples" / "part-00000-of-00003.tfrecord"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    (problem,) = lineage(path).problems
    assert problem.startswith(f"{path}: the sha256 of this file is {sha256(path)}, but {build}/examples/manifest.json")
    assert lineage(build).problems == ()
    (problem,) = lineage(build, checksums=True).problems
    assert problem.startswith(f"{path}: ")


def test_sizes_and_missing_shards_are_seen_at_once(build: Path) -> None:
    short, gone = (build / "text" / f"part-0000{number}-of-00003" for number in (0, 1))
    short.write_bytes(short.read_bytes()[:-1])
    gone.unlink()
    assert [problem.partition(": ")[2] for problem in lineage(build).problems] == [
        f"this shard has {short.stat().st_size:,} bytes, but its manifest says {short.stat().st_size + 1:,}.",
        "this shard is not there any more, and its manifest lists it.",
    ]


def test_a_changed_dump_does_not_fit(tmp_path: Path) -> None:
    dump = tmp_path / "enwiki-20260301-pages-articles-multistream1.xml-p1p41242.bz2"
    shutil.copyfile(DUMP, dump)
    text = extract_text(tmp_path / "text", dump=dump, documents=3, eval_articles=1)
    (source,) = lineage(text).sources
    assert (source.state, source.date, source.pages) == ("there", "2026-03-01", (1, 41242))
    content = bytearray(dump.read_bytes())
    content[-1] ^= 1
    dump.write_bytes(content)
    assert lineage(text).problems == ()
    changed = lineage(text, checksums=True)
    assert changed.sources[0].state == "changed"
    assert "the sha256 of this file is" in changed.problems[0]
    dump.write_bytes(content[:-1])
    assert "bytes, but it had" in lineage(text).problems[0]
    dump.unlink()
    assert (lineage(text).sources[0].state, lineage(text).problems) == ("gone", ())


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("enwiki-20260301-pages-articles-multistream27.xml-p68475910p69975909.bz2", (68475910, 69975909)),
        ("enwiki-2026-03-01-p10p1147431.xml.bz2", (10, 1147431)),
        ("enwiki-2026-03-01-p20110420p21500133.xml.bz2", (20110420, 21500133)),
        ("enwiki-20260301-pages-articles.xml.bz2", None),
        ("map-p1p2x.xml", None),
    ],
)
def test_the_page_range_of_a_part_is_in_its_name(name: str, pages: tuple[int, int] | None) -> None:
    assert page_range(f"gs://bucket/{name}") == pages


def test_a_relative_path_is_found_where_the_build_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dumps").mkdir()
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(DUMP, tmp_path / "dumps" / "dump.xml.bz2")
    monkeypatch.chdir(tmp_path)
    text = extract_text(Path("out/text"), dump=Path("dumps/dump.xml.bz2"), documents=3, eval_articles=1).absolute()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (source,) = lineage(text).sources
    assert (source.path, source.state) == (f"{tmp_path}/dumps/dump.xml.bz2", "there")
    Path("dumps").mkdir()
    Path("dumps/dump.xml.bz2").write_text("another file of this name")
    assert lineage(text).problems == ()


@pytest.fixture
def release(whole: Made, tmp_path: Path) -> Path:
    """A complete release below tmp_path."""
    directory = tmp_path / "releases" / str(NAME)
    whole.copy(directory)
    digests = fingerprints.manifest_digests(str(directory))
    folders = fingerprints.DATA_STAGES
    record = ReleaseRecord(
        name=NAME,
        config={},
        inputs=[
            {
                "path": str(DUMP),
                "bytes": DUMP.stat().st_size,
                "sha256": hashlib.sha256(DUMP.read_bytes()).hexdigest(),
                "url": "https://mirror.example.org/dump.bz2",
            }
        ],
        stages={stage: {"directory": folders[stage], "manifest_sha256": digest} for stage, digest in digests.items()},
        made_by={"maskmill": "0.1.0"},
    )
    write_record(str(tmp_path), record)
    return directory


def test_a_release_tells_its_fingerprint_and_where_its_dump_was_from(release: Path) -> None:
    found = lineage(release)
    assert found.kind == "release"
    assert found.release is not None
    digests = fingerprints.manifest_digests(str(release))
    assert (found.release.name, found.release.fingerprint) == (str(NAME), fingerprints.fingerprint_of(digests))
    assert found.sources[-1].url == "https://mirror.example.org/dump.bz2"
    assert found.problems == ()


def test_a_release_names_the_inputs_of_its_text(release: Path) -> None:
    (release / "release.json").unlink()
    digests = fingerprints.manifest_digests(str(release))
    content = {"bytes": 1, "sha256": "ab"}
    write_record(
        str(release.parents[1]),
        ReleaseRecord(name=NAME, config={}, inputs=[{"path": f"/in/{DUMP.name}", **content}], stages={}),
    )
    problems = (
        f"/in/{DUMP.name}: the release names this input, but {release}/text was not made of it",
        f"{DUMP}: {release}/text was made of this input, but the release does not name it",
    )
    assert lineage(release).problems == tuple(f"{problem} ({release}/release.json)." for problem in problems)
    assert tuple(records.check_inputs(str(release), [], digests)) == problems[1:]
    plan = VerifyPlan(targets=find_targets([str(release)]), options=VerifyOptions(), scratch="")
    findings = check_builds(plan, []).findings
    assert [finding.message for finding in findings if finding.file == f"{release}/release.json"] == [
        f"{release}/release.json: {problem}; run the build again." for problem in problems
    ]


def test_a_release_that_was_changed_does_not_fit_its_record(release: Path) -> None:
    manifest = release / "eval" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b"\n")
    (problem,) = lineage(release).problems
    assert "release.json says that the manifest of eval has the sha256" in problem


def test_a_damaged_record_is_one_sentence(release: Path) -> None:
    (release / "release.json").write_bytes(b"{")
    with pytest.raises(UnusableInputError, match=r"release.json: this record is damaged"):
        lineage(release)


def test_a_checkpoint_goes_back_to_its_release(release: Path, tmp_path: Path) -> None:
    fingerprint = fingerprints.fingerprint_of(fingerprints.manifest_digests(str(release)))
    data = data_of(release / "examples", release=str(release), release_fingerprint=fingerprint)
    path = checkpoint(tmp_path / "run" / "step-0000000007.safetensors", data, init_checkpoint="bert")
    for asked in (path, path.parent):
        found = lineage(asked)
        assert found.kind == "checkpoint"
        assert found.checkpoint is not None
        assert (found.checkpoint.step, found.checkpoint.init_checkpoint) == (7, "bert")
        assert found.release is not None
        assert found.release.fingerprint == found.checkpoint.release_fingerprint
        assert [stage.stage for stage in found.stages] == ["examples", "extract"]
        assert (found.problems, found.gaps) == ((), ())


def test_a_checkpoint_of_other_examples_does_not_fit(release: Path, tmp_path: Path) -> None:
    data = data_of(release / "examples", release=str(release), release_fingerprint="ab")
    data["manifests"][0]["sha256"] = "cd"  # type: ignore[index]
    path = checkpoint(tmp_path / "run" / "step-0000000007.safetensors", data)
    of_manifest, of_release = lineage(path).problems
    assert "was trained on examples whose manifest has the sha256 cd, but" in of_manifest
    assert "was trained on the release with the fingerprint ab, but" in of_release


def test_a_checkpoint_whose_release_was_removed_says_so(release: Path, tmp_path: Path) -> None:
    data = data_of(release / "examples", release=str(release), release_fingerprint="ab")
    path = checkpoint(tmp_path / "run" / "step-0000000007.safetensors", data)
    shutil.rmtree(release)
    found = lineage(path)
    assert found.problems == ()
    assert found.gaps == (
        f"{release}/examples: the examples of the checkpoint are not there any more.",
        f"{release}: this release is not there any more.",
    )


@pytest.mark.parametrize("data", [None, {}, {"input": ["gold.tfrecord"], "manifests": []}])
def test_a_checkpoint_that_says_nothing_is_a_gap(data: object, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "run" / "step-0000000007.safetensors", data)
    found = lineage(path)
    assert found.stages == ()
    assert "this checkpoint does not say which manifest its examples have" in found.gaps[0]


def test_what_is_none_of_these_has_no_lineage(tmp_path: Path) -> None:
    assert lineage_of(str(DUMP)) is None
    assert lineage_of(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize("named", [str(DUMP), DUMP.name, sha256(DUMP)])
def test_from_a_dump_to_all_that_was_made_of_it(named: str, release: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    shutil.copytree(release / "text", plain / "text")
    path = checkpoint(tmp_path / "runs" / "one" / "step-0000000007.safetensors", data_of(release / "examples"))
    checkpoint(tmp_path / "runs" / "two" / "step-0000000007.safetensors", None)
    other = data_of(release / "examples")
    other["manifests"][0]["sha256"] = "cd"  # type: ignore[index]
    checkpoint(tmp_path / "runs" / "three" / "step-0000000007.safetensors", other)
    by_build = {one.build: one for one in descendants.made_of_source(str(tmp_path), named)}
    assert set(by_build) == {str(plain), str(release)}
    assert [stage.stage for stage in by_build[str(plain)].stages] == ["extract"]
    made = by_build[str(release)]
    assert (made.release, made.read) == (str(NAME), (str(DUMP),))
    assert [(stage.stage, len(stage.names)) for stage in made.stages] == [("extract", 4), ("examples", 4), ("eval", 1)]
    assert [one.path for one in made.checkpoints] == [str(path)]


def test_a_vocabulary_is_a_source_of_all_examples(release: Path, tmp_path: Path) -> None:
    (made,) = descendants.made_of_source(str(tmp_path), VOCAB.name)
    assert [(stage.stage, len(stage.names)) for stage in made.stages] == [("examples", 4), ("eval", 1)]


def test_nothing_was_made_of_another_file(release: Path, tmp_path: Path) -> None:
    assert descendants.made_of_source(str(tmp_path), "dewiki-20260301-pages-articles.xml.bz2") == []
    assert descendants.made_of_source(str(tmp_path), "0" * 64) == []


def test_forward_from_one_text_shard(release: Path, tmp_path: Path) -> None:
    made = descendants.made_of_shards(str(tmp_path), str(release / "text"), ["part-00001-of-00003"])
    assert [(stage.stage, stage.names) for stage in made.stages] == [("examples", ("part-00001-of-00003.tfrecord",))]


def test_a_checkpoint_that_is_being_written_is_left_out(release: Path, tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "run" / "step-0000000007.safetensors", data_of(release / "examples"))
    path.write_bytes(path.read_bytes()[:-2])
    assert descendants.trainings_on(str(tmp_path), str(release)).checkpoints == ()


def test_a_lineage_is_plain_data(build: Path) -> None:
    found = lineage(build)
    assert json.loads(json.dumps(dataclasses.asdict(found)))["stages"][0]["stage"] == "eval"


def test_a_release_that_is_the_latest_is_found_once(release: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(Path("releases") / release.name)
    assert descendants.builds_below(str(tmp_path)) == [str(release)]
