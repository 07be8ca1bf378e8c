"""The name of a release: what changes it, and what does not."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import VOCAB

from maskmill.errors import UnusableInputError
from maskmill.mirrors.dumps import Dump, DumpFile
from maskmill.releases.names import ReleaseName, release_path
from maskmill.releases.records import ReleaseRecord, write_record
from pipelines.building import build_options
from pipelines.releasing import release_plan
from pipelines.releasing.release_plan import make_plan
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage

DUMP = "enwiki-20260301-pages-articles.xml"
TRAIN = {"num_train_steps": 5, "num_warmup_steps": 1}


def build(folder: Path, **sections: Any) -> build_options.BuildOptions:
    """The options of a build into a folder, from a dump in it; `sections` add options to sections."""
    content: dict[str, Any] = {
        "output": str(folder / "out"),
        "extract": {"input": str(folder / DUMP), "num_eval_articles": 1},
        "examples": {"vocab_file": str(VOCAB)},
    }
    for name, values in sections.items():
        content[name] = content.get(name, {}) | values if isinstance(values, dict) else values
    return build_options.make_build(content, where="build.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / DUMP).write_text("<mediawiki>one</mediawiki>")
    return tmp_path


def name_of(options: build_options.BuildOptions) -> str:
    return str(make_plan(options).name)


def test_a_name_has_the_wiki_and_the_date_of_its_dump(folder: Path) -> None:
    plan = make_plan(build(folder))
    assert (plan.name.wiki, plan.name.date) == ("enwiki", "2026-03-01")
    assert ReleaseName.parse(str(plan.name)) == plan.name
    assert plan.directory == str(folder / "out" / "releases" / str(plan.name))
    assert plan.options[ExamplesStage].input == (f"{plan.directory}/text",)
    assert plan.options[EvalStage].output == f"{plan.directory}/eval"


@pytest.mark.parametrize(
    ("sections", "is_other"),
    [
        ({"extract": {"num_eval_articles": 2}}, True),
        ({"extract": {"lists": "drop"}}, True),
        ({"examples": {"dupe_factor": 3}}, True),
        ({"eval": {"num_examples_to_pick": 3}}, True),
        ({"train": TRAIN}, True),
        ({"compat": "google"}, True),
        ({"vocabulary": {"kind": "wordpiece", "size": 1000}, "examples": {"vocab_file": None}}, True),
        ({"output": "elsewhere"}, False),
        ({"report": "none"}, False),
        ({"release": {"keep": 3, "wait": 2.0}}, False),
        ({"on_event": "cat"}, False),
    ],
)
def test_what_decides_the_data_decides_the_name(folder: Path, sections: dict[str, Any], is_other: bool) -> None:
    assert (name_of(build(folder, **sections)) != name_of(build(folder))) == is_other


def test_a_training_is_named_by_what_decides_its_weights(folder: Path) -> None:
    plain = name_of(build(folder, train=TRAIN))
    assert name_of(build(folder, train=TRAIN | {"log_steps": 7, "num_devices": 2})) == plain
    assert name_of(build(folder, train=TRAIN | {"preset": "tiny"})) != plain


def test_the_content_of_the_inputs_counts_and_not_their_place(folder: Path) -> None:
    before = name_of(build(folder))
    (folder / "moved").mkdir()
    (folder / DUMP).rename(folder / "moved" / DUMP)
    moved = build(folder, extract={"input": str(folder / "moved" / DUMP)})
    assert name_of(moved) == before
    (folder / "moved" / DUMP).write_text("<mediawiki>two</mediawiki>")  # of the same size
    assert name_of(moved) != before


def test_a_vocabulary_counts_by_its_content(folder: Path) -> None:
    copy = folder / "other.txt"
    copy.write_bytes(VOCAB.read_bytes())
    assert name_of(build(folder, examples={"vocab_file": str(copy)})) == name_of(build(folder))
    copy.write_bytes(VOCAB.read_bytes() + b"further\n")
    assert name_of(build(folder, examples={"vocab_file": str(copy)})) != name_of(build(folder))


def test_another_format_of_the_code_gives_another_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maskmill.storage import completions

    before = name_of(build(folder))
    monkeypatch.setattr(completions, "FORMAT_VERSIONS", {**completions.FORMAT_VERSIONS, "text": 99})
    assert name_of(build(folder)) != before


@pytest.mark.parametrize(
    ("name", "release", "told"),
    [
        ("corpus.txt", {}, "set release.wiki"),
        ("corpus.txt", {"wiki": "corpus"}, "set release.date"),
        ("corpus.txt", {"wiki": "my-corpus", "date": "2026-01-01"}, "name no release"),
        ("corpus.txt", {"wiki": "corpus", "date": "2026-02-30"}, "name no release"),
    ],
)
def test_a_release_without_a_name_is_refused(folder: Path, name: str, release: dict[str, str], told: str) -> None:
    (folder / name).write_text("Some text.\n")
    options = build(folder, extract={"input": str(folder / name), "input_format": "text"}, release=release)
    with pytest.raises(UnusableInputError, match=told):
        make_plan(options)


def test_another_corpus_is_named_by_the_build(folder: Path) -> None:
    (folder / "corpus.txt").write_text("Some text.\n")
    release = {"wiki": "corpus", "date": "2026-01-01"}
    options = build(folder, extract={"input": str(folder / "corpus.txt"), "input_format": "text"}, release=release)
    assert name_of(options).startswith("corpus-2026-01-01-")


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"extract": {"input": "*.xml"}}, "several: dewiki, enwiki"),
        ({"output": "hdfs://host/out"}, "local disk, gs:// or s3://"),
        (
            {"vocabulary": {"kind": "wordpiece", "size": 1000, "model_dir": "model"}, "examples": {"vocab_file": None}},
            "outside of the release",
        ),
    ],
)
def test_what_makes_no_release_is_refused(folder: Path, sections: dict[str, Any], told: str) -> None:
    (folder / "dewiki-20260301-pages-articles.xml").write_text("<mediawiki>zwei</mediawiki>")
    with pytest.raises(UnusableInputError, match=told):
        make_plan(build(folder, **sections))


# ---- downloaded dumps

FILE = DumpFile(name=DUMP, url=f"https://x/{DUMP}", size=26, sums={"sha1": "ab"})
WHOLE = Dump(wiki="enwiki", date="2026-03-01", layout="classic", files=(FILE,))


def watching(folder: Path) -> build_options.BuildOptions:
    return build(folder, extract={"input": None}, watch={"wiki": "enwiki", "contact": "me@example.org"})


def downloaded(folder: Path, dump: Dump) -> Path:
    """Puts a dump where downloads are; returns its directory."""
    from maskmill.mirrors import download
    from maskmill.storage import completions

    directory = folder / "out" / "downloads" / f"{dump.wiki}-{dump.date}"
    directory.mkdir(parents=True)
    (directory / DUMP).write_text("<mediawiki>one</mediawiki>")
    record = completions.sealed_json(download._KIND, download._KEY, dataclasses.asdict(dump))
    (directory / download.COMPLETE).write_bytes(record)
    return directory


def test_a_downloaded_dump_is_the_input(folder: Path) -> None:
    directory = downloaded(folder, WHOLE)
    plan = make_plan(watching(folder), "2026-03-01")
    assert plan.options[ExtractStage].input == (str(directory / DUMP),)
    assert plan.inputs[0].url == FILE.url
    assert name_of(build(folder)) == str(plan.name)  # the same data as with an input that is named


def test_a_dump_that_is_not_downloaded_is_named(folder: Path) -> None:
    downloaded(folder, WHOLE)
    with pytest.raises(UnusableInputError, match="no dump of 2026-04-01 is downloaded"):
        make_plan(watching(folder), "2026-04-01")
    with pytest.raises(UnusableInputError, match="--dump chooses a downloaded dump"):
        make_plan(build(folder), "2026-03-01")


def complete(folder: Path) -> ReleaseRecord:
    """Completes the release of the downloaded dump, without data."""
    plan = make_plan(watching(folder))
    Path(release_path(plan.root, plan.name)).mkdir(parents=True)
    assert plan.dump is not None
    return write_record(
        plan.root,
        ReleaseRecord(
            name=plan.name,
            config={},
            inputs=[],
            dump=dataclasses.asdict(plan.dump),
            stages={},
            options_sha256=plan.options_sha256,
        ),
    )


def test_a_release_is_known_by_the_dump_as_the_mirror_lists_it(folder: Path) -> None:
    options = watching(folder)
    assert release_plan.built_from(options, WHOLE) is None
    downloaded(folder, WHOLE)
    record = complete(folder)
    found = release_plan.built_from(options, dataclasses.replace(WHOLE, layout="content"))
    assert found is not None
    assert found.name == record.name
    again = dataclasses.replace(WHOLE, files=(dataclasses.replace(FILE, sums={"sha1": "cd"}),))
    assert release_plan.built_from(options, again) is None  # published again
    other = build(folder, extract={"input": None}, watch={"wiki": "enwiki"}, examples={"dupe_factor": 3})
    assert release_plan.built_from(other, WHOLE) is None


def test_a_release_stays_known_when_its_download_is_gone(folder: Path) -> None:
    directory = downloaded(folder, WHOLE)
    record = complete(folder)
    (directory / "dump.json").unlink()
    for date in (None, "2026-03-01"):
        plan = make_plan(watching(folder), date)
        assert plan.name == record.name
        assert plan.record is not None
    with pytest.raises(UnusableInputError, match="no dump of 2026-04-01"):
        make_plan(watching(folder), "2026-04-01")


def test_a_newer_download_counts_before_an_older_release(folder: Path) -> None:
    downloaded(folder, WHOLE)
    record = complete(folder)
    downloaded(folder, dataclasses.replace(WHOLE, date="2026-04-01"))
    assert make_plan(watching(folder)).name.date == "2026-04-01"
    assert make_plan(watching(folder), "2026-03-01").name == record.name
