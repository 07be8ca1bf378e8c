"""The command `extract`: gold, containers, workers and bad input."""

import bz2
import gzip
import hashlib
import json
import lzma
from pathlib import Path

import pytest
from command_runs.commands import DUMP, IN_MEMORY, TWO_PROCESSES, digests, leftovers, maskmill

from pipelines.commands import cli

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def dump_xml() -> bytes:
    """The XML of the sample dump."""
    return bz2.decompress(DUMP.read_bytes())


def extract(input_path: object, output: Path, *flags: str) -> int:
    """Runs `extract` in this process. Returns the exit code."""
    return cli.main(["extract", f"--input={input_path}", f"--output={output}", *IN_MEMORY, *flags])


# ---- MLPerf's gold


@pytest.fixture
def wiki_files(data: Path, tmp_path: Path) -> Path:
    """A folder with the files that WikiExtractor wrote of the sample dump, unpacked."""
    folder = tmp_path / "AA"
    folder.mkdir()
    for packed in sorted((data / "gold" / "wikiextractor").glob("wiki_0?.gz")):
        (folder / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


@pytest.mark.parametrize("workers", [IN_MEMORY, pytest.param(TWO_PROCESSES, marks=pytest.mark.builds)])
def test_mlperf_shards_are_those_of_the_reference(
    wiki_files: Path, data: Path, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    output = tmp_path / "out"
    flags = ["--compat=mlperf", "--num_eval_articles=7", "--shard_size_mb=1.5", *workers]
    assert cli.main(["extract", f"--input={wiki_files}/wiki_??", f"--output={output}", *flags]) == 0
    expected = dict(reversed(line.split()) for line in (data / "gold/cleanup/results.md5").read_text().splitlines())
    assert {name: hashlib.md5((output / name).read_bytes()).hexdigest() for name in expected} == expected
    assert sorted(p.name for p in output.iterdir()) == sorted([*expected, ".maskmill", "manifest.json"])


@pytest.mark.builds
def test_mlperf_shards_from_a_dump_are_those_of_the_reference(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    # WikiExtractor ran on this day, and it writes the current year where a page asks for it.
    flags = ("--compat=mlperf", "--num_eval_articles=7", "--shard_size_mb=1.5", "--dump_date=2026-11-21")
    assert extract(DUMP, output, *flags) == 0
    expected = dict(reversed(line.split()) for line in (data / "gold/cleanup/results.md5").read_text().splitlines())
    assert {name: hashlib.md5((output / name).read_bytes()).hexdigest() for name in expected} == expected


# ---- the same bytes


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sha256 of each file that `extract` makes of the sample dump."""
    output = tmp_path_factory.mktemp("expected") / "text"
    assert extract(DUMP, output, "--num_eval_articles=7", "--shard_size_mb=0.5") == 0
    checksums = digests(output, manifests=False)
    assert {"eval.txt", "eval.md5"} <= set(checksums)
    assert sum(name.startswith("part-") for name in checksums) > 3
    return checksums


def single_stream(xml: bytes) -> bytes:
    return bz2.compress(xml)


def parallel_streams(xml: bytes) -> bytes:
    """Packs like pbzip2: a bzip2 stream for every 700,001 bytes, so that pages cross from one to the next."""
    return b"".join(bz2.compress(xml[i : i + 700_001]) for i in range(0, len(xml), 700_001))


@pytest.mark.builds
@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("plain.xml", bytes),
        ("single.xml.bz2", single_stream),
        ("pbzip2.xml.bz2", parallel_streams),
        ("packed.xml.xz", lzma.compress),
        ("packed.xml.gz", gzip.compress),
    ],
)
@pytest.mark.exhaustive_but("pbzip2.xml.bz2-parallel_streams", "packed.xml.gz-compress")
def test_every_container_gives_the_same_bytes(
    name: str, pack: object, dump_xml: bytes, expected: dict[str, str], tmp_path: Path
) -> None:
    # The date of a dump comes from its name or its pages. Neither name has a date, and the pages are the same.
    (tmp_path / name).write_bytes(pack(dump_xml))  # type: ignore[operator]
    output = tmp_path / "text"
    assert extract(tmp_path / name, output, "--num_eval_articles=7", "--shard_size_mb=0.5") == 0
    assert digests(output, manifests=False) == expected


def test_two_processes_give_the_same_bytes(expected: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "text"
    done = maskmill(
        "extract", f"--input={DUMP}", f"--output={output}", "--num_eval_articles=7", "--shard_size_mb=0.5",
        *TWO_PROCESSES,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert digests(output, manifests=False) == expected
    assert leftovers(output) == []


@pytest.mark.builds
def test_eval_articles_are_not_in_the_training_text(tmp_path: Path) -> None:
    output = tmp_path / "text"
    assert extract(DUMP, output, "--num_eval_articles=7", "--shard_size_mb=0.5") == 0
    held_out = [a for a in (output / "eval.txt").read_bytes().split(b"\n\n") if a]
    training = [a for p in sorted(output.glob("part-*")) for a in p.read_bytes().split(b"\n\n") if a]
    hashes = (output / "eval.md5").read_text().split()
    assert hashes == [hashlib.md5(a).hexdigest() for a in held_out]
    assert len(held_out) == 7
    assert not set(held_out) & set(training)
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["counts"]["train"]["documents"] == len(training)
    assert manifest["counts"]["extract"]["read"] == 206
    counts = manifest["counts"]["extract"]
    assert counts["read"] == sum(v for k, v in counts.items() if k != "read")


@pytest.mark.builds
def test_a_trial_takes_the_first_documents_of_several_inputs(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("The first of two.\n\nThe second of two.\n")
    flags = ("--max_documents=3", "--eval_fraction=0", "--text_documents=blank_line")
    assert extract(f"{text},{DUMP}", tmp_path / "trial", *flags) == 0
    trial = (tmp_path / "trial" / "part-00000-of-00001").read_text()
    assert trial.startswith("The first of two.\n\nThe second of two.\n\nAnarchism")
    assert trial.count("\n\n") == 3
    counts = json.loads((tmp_path / "trial" / "manifest.json").read_text())["counts"]
    assert (counts["extract"]["over_max_documents"], counts["train"]["documents"]) == (2, 3)
    assert extract(f"{text},{DUMP}", tmp_path / "unique", "--drop_duplicates", *flags) == 0
    assert (tmp_path / "unique" / "part-00000-of-00001").read_text() == trial


# ---- other corpora


def text_of(output: Path) -> str:
    """The text of an output that has a single shard."""
    return (output / "part-00000-of-00001").read_text()


SENTENCES = "One sentence here.\nAnd a second one.\n\nAnother document.\n\n"


def test_plain_text_is_cut_into_documents_at_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("One sentence here. And a second one.\n\n\nAnother document.\n")
    assert extract(tmp_path / "a.txt", tmp_path / "text", "--eval_fraction=0") == 0
    assert text_of(tmp_path / "text") == SENTENCES


def test_bad_json_lines_are_rejected(tmp_path: Path) -> None:
    lines = ['{"body": "One sentence here. And a second one."}', "{broken", '{"body": "Another document."}', "{}"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    assert extract(tmp_path / "a.jsonl", tmp_path / "text", "--eval_fraction=0", "--text_column=body") == 0
    assert text_of(tmp_path / "text") == SENTENCES
    manifest = json.loads((tmp_path / "text" / "manifest.json").read_text())
    assert manifest["counts"]["extract"]["rejected"] == 2
    assert len((tmp_path / "text" / "rejected.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("empty", ["0.txt", "2.txt"])
def test_an_empty_file_among_others_is_rejected(empty: str, tmp_path: Path) -> None:
    for name in ("0.txt", "1.txt", "2.txt"):
        (tmp_path / name).write_text("One sentence here. And a second one.")
    (tmp_path / empty).write_text("\n \n")
    assert extract(tmp_path / "?.txt", tmp_path / "text", "--eval_fraction=0") == 0
    assert text_of(tmp_path / "text") == "One sentence here.\nAnd a second one.\n\n" * 2
    (rejected,) = map(json.loads, (tmp_path / "text" / "rejected.jsonl").read_text().splitlines())
    assert rejected == {"input": str(tmp_path / empty), "title": empty, "reason": "the file is empty"}


def test_an_empty_file_beside_a_dump_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.xml").touch()
    assert extract(f"{DUMP},{tmp_path}/x.xml", tmp_path / "text") == 2
    assert "x.xml: this input is empty, and a dump is among the others: fetch it again" in capsys.readouterr().err


def test_empty_files_alone_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("0.txt", "1.txt"):
        (tmp_path / name).touch()
    assert extract(tmp_path / "?.txt", tmp_path / "text") == 2
    assert "0.txt: this input is empty, and so are all others." in capsys.readouterr().err


@pytest.mark.builds
def test_wikiextractor_files_in_the_default_mode(wiki_files: Path, tmp_path: Path) -> None:
    assert extract(f"{wiki_files}/wiki_0?", tmp_path / "text", "--eval_fraction=0") == 0
    manifest = json.loads((tmp_path / "text" / "manifest.json").read_text())
    assert manifest["counts"]["extract"] == {"read": 106, "documents": 105, "empty": 1}
    assert text_of(tmp_path / "text").startswith("Anarchism is a political philosophy")


# ---- bad input gives one sentence, an exit code, and no file under a final name


def test_a_bad_page_is_rejected(tmp_path: Path, dump_xml: bytes) -> None:
    assert dump_xml.count(b"<title>Autism</title>") == 1
    start = dump_xml.index(b"<title>Autism</title>")
    text = dump_xml.index(b"autism", start)
    (tmp_path / "dump.xml").write_bytes(dump_xml[:text] + b"\xff\xfe" + dump_xml[text:])
    assert extract(tmp_path / "dump.xml", tmp_path / "text", "--eval_fraction=0") == 0
    rejected = [json.loads(x) for x in (tmp_path / "text" / "rejected.jsonl").read_text().splitlines()]
    assert [(r["title"], "UTF-8" in r["reason"]) for r in rejected] == [("Autism", True)]
    counts = json.loads((tmp_path / "text" / "manifest.json").read_text())["counts"]["extract"]
    assert counts["rejected"] == 1
    assert counts["read"] == 206
