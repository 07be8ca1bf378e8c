"""maskmill estimate: what it says is what a build then gives; what it reads is counted."""

import bz2
import gzip
import json
import lzma
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_runs.commands import DUMP, VOCAB

from pipelines.commands import cli

WORDS = [
    "the",
    "of",
    "and",
    "a",
    "to",
    "in",
    "is",
    "was",
    "he",
    "for",
    "it",
    "with",
    "as",
    "his",
    "on",
    "be",
    "at",
    "by",
    "i",
    "this",
    "had",
    "not",
    "are",
    "but",
    "from",
    "or",
    "have",
    "an",
    "they",
]


def estimate(capsys: pytest.CaptureFixture[str], config: Path, *flags: str) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["estimate", str(config), "--json", *flags]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def built(config: Path, *flags: str) -> dict[str, Any]:
    """The manifests of a build's text and examples."""
    assert cli.main(["build", str(config), "--direct_num_workers=1", *flags]) == 0
    output = config.parent / "out"
    return {name: json.loads((output / name / "manifest.json").read_text()) for name in ("text", "examples")}


def totals(manifest: dict[str, Any], name: str) -> int:
    return sum(manifest["counts"].get(kind, {}).get(name, 0) for kind in ("train", "eval"))


def config_of(tmp_path: Path, extract: str, vocab: Path = VOCAB, more: str = "") -> Path:
    path = tmp_path / "build.yaml"
    path.write_text(f"output: {tmp_path}/out\nreport: off\n{extract}\nexamples:\n  vocab_file: {vocab}\n{more}")
    return path


def documents(count: int, seed: int = 1) -> list[str]:
    """Documents of sentences, some ten times as long as others."""
    draws = random.Random(seed)
    made = []
    for _ in range(count):
        sentences = [" ".join(draws.choices(WORDS, k=draws.randint(4, 20))) for _ in range(draws.randint(3, 30))]
        made.append("\n".join(f"{sentence.capitalize()}." for sentence in sentences))
    return made


def write_corpus(path: Path, made: list[str]) -> None:
    """Writes documents in the format and container that the file's name says."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in made)
    if ".parquet" in path.name:
        pq.write_table(pa.table({"text": made}), path, row_group_size=200)
        return
    content = (lines if ".jsonl" in path.name else "\n\n".join(made) + "\n").encode()
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": lambda data: bz2.compress(data, 1)}
    path.write_bytes(pack.get(path.suffix, bytes)(content))


@pytest.mark.builds
def test_an_input_that_is_read_whole_gives_what_the_build_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(tmp_path, f"extract:\n  input: {DUMP}\n  num_eval_articles: 7", more="  dupe_factor: 3\n")
    found = estimate(capsys, config, "--sample_share=1")
    assert not (tmp_path / "out").exists()
    made = built(config)
    assert found["input"]["share_read"] == pytest.approx(1, abs=0.001)
    assert found["standard_error"] == 0
    assert found["documents"] == totals(made["text"], "documents")
    assert found["eval_documents"] == 7
    assert found["bytes"]["text"] == totals(made["text"], "bytes")
    assert found["tokens"] == totals(made["examples"], "tokens")
    # Of so few documents two seeds make up to a tenth more or fewer pairs.
    assert found["examples"] == pytest.approx(totals(made["examples"], "examples"), rel=0.1)
    assert found["example_bytes"] == pytest.approx(totals(made["examples"], "bytes"), rel=0.06)
    assert found["shards"] == made["text"]["counts"]["train"]["shards"]
    assert found["dupe_factors"]["10"]["examples"] == pytest.approx(found["examples"] * 10 / 3, abs=10)


@pytest.mark.builds
@pytest.mark.parametrize(
    "name", ["a.txt", "a.jsonl", "a.parquet", "a.txt.bz2", "a.jsonl.bz2", "a.txt.gz", "a.jsonl.xz"]
)
@pytest.mark.exhaustive_but("a.jsonl.bz2", "a.parquet")
def test_a_small_share_of_every_format_is_near_the_whole(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = documents(8000)
    write_corpus(tmp_path / name, made)
    config = config_of(tmp_path, f"extract:\n  input: {tmp_path / name}\n  language: english")
    found = estimate(capsys, config, "--sample_share=0.1")
    text_bytes = sum(len(text.encode()) + 2 for text in made)
    assert found["input"]["share_read"] < 0.2
    # Packers do better the more they have seen, so the beginning of a file holds less text than its other parts.
    is_beginning = name.endswith((".gz", ".xz"))
    assert found["bytes"]["text"] == pytest.approx(text_bytes, rel=0.1 if is_beginning else 0.04)
    assert found["documents"] == pytest.approx(len(made), rel=0.1)
    assert any("beginning" in note for note in found["notes"]) == is_beginning
    again = estimate(capsys, config, "--sample_share=0.1")
    for of_time in ("hours", "cpu_hours", "dupe_factors"):
        del found[of_time], again[of_time]
    assert found == again


@pytest.mark.builds
def test_many_files_are_one_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = documents(4000)
    for number in range(40):
        write_corpus(tmp_path / f"part-{number}.jsonl", made[number * 100 : (number + 1) * 100])
    config = config_of(tmp_path, f"extract:\n  input: {tmp_path}/part-*.jsonl\n  language: english")
    found = estimate(capsys, config, "--sample_share=0.3")
    assert found["input"]["files"] == 40
    assert found["documents"] == pytest.approx(4000, rel=0.1)


@pytest.mark.builds
def test_text_shards_and_a_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        write_corpus(tmp_path / f"corpus{number}.txt", documents(500 * number, seed=number))
    one = config_of(tmp_path, f"extract:\n  input: {tmp_path}/corpus1.txt\n  language: english\n  num_eval_articles: 5")
    text = built(one)["text"]
    (tmp_path / "shards").mkdir()
    shards = config_of(tmp_path / "shards", f"extract:\n  from: {tmp_path}/out/text")
    found = estimate(capsys, shards)
    assert (found["documents"], found["eval_documents"]) == (500, pytest.approx(5, abs=3))
    assert found["bytes"]["text"] == totals(text, "bytes")
    mix = config_of(
        tmp_path,
        "sources:\n"
        f"  a: {{input: {tmp_path}/corpus1.txt, language: english, weight: 1}}\n"
        f"  b: {{input: {tmp_path}/corpus2.txt, language: english, weight: 1}}\n",
    )
    mixed = estimate(capsys, mix, "--output", str(tmp_path / "mixed"))
    assert mixed["bytes"]["text"] == pytest.approx(2 * totals(text, "bytes"), rel=0.03)


@pytest.mark.builds
@pytest.mark.parametrize(
    "flags",
    [
        ("--examples.objective=mlm", "--examples.pack"),
        ("--examples.objective=blocks", "--examples.dynamic_masking", "--examples.format=parquet"),
        ("--examples.objective=sop", "--examples.format=mds"),
        ("--examples.bins=4",),
        ("--examples.packed",),
    ],
    ids=lambda flags: flags[0].removeprefix("--examples."),
)
def test_every_objective_and_format(flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_corpus(tmp_path / "a.txt", documents(300))
    config = config_of(tmp_path, f"extract:\n  input: {tmp_path}/a.txt\n  language: english")
    found = estimate(capsys, config, *flags)
    assert found["examples"] > 0
    assert found["example_bytes"] == found["bytes"][found["format"]]
    assert found["bytes"]["parquet"] < found["bytes"]["tfrecord"]


@pytest.mark.builds
def test_half_of_a_multistream_dump_tells_its_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = config_of(tmp_path, f"extract:\n  input: {DUMP}")
    half, whole = (estimate(capsys, config, f"--sample_share={share}") for share in (0.5, 1))
    assert half["input"]["share_read"] <= 0.5
    assert half["documents"] == pytest.approx(whole["documents"], rel=0.25)


def test_the_summary_has_what_a_user_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = config_of(tmp_path, f"extract:\n  input: {DUMP}")
    assert cli.main(["estimate", str(config), "--cores=8", "--examples.dupe_factor=3"]) == 0
    printed = capsys.readouterr().out
    for word in ("read, 100.00%", "documents", "tokens", "± ", "padding", "mds", "on 8 cores", "3*", "a worker"):
        assert word in printed


# Examples and bytes; docs/estimate.md says how much of ltgwiki's nearness is luck.
ACCEPTED = [("enwik8", 0.02, 0.05), ("ltgwiki", 0.1, 0.1)]


@pytest.mark.builds
@pytest.mark.shared
@pytest.mark.long
@pytest.mark.parametrize(("name", "share", "tolerance"), ACCEPTED, ids=[name for name, *_ in ACCEPTED])
@pytest.mark.exhaustive_but("ltgwiki")
def test_a_dump_is_estimated_from_little_of_it(
    name: str, share: float, tolerance: float, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = shared / "data" / "dumps" / f"{name}-pages-articles-multistream.xml.bz2"
    extract = f"extract:\n  input: {dump}\n  dump_date: 2024-01-01"
    config = config_of(tmp_path, extract, vocab=shared / "data" / "vocab.txt")
    found = estimate(capsys, config, f"--sample_share={share}")
    whole = estimate(capsys, config, "--sample_share=1")
    made = built(config)
    assert found["input"]["share_read"] <= share
    for one, most in ((found, tolerance), (whole, 0.01)):
        assert one["examples"] == pytest.approx(totals(made["examples"], "examples"), rel=most)
        # The files' indexes, 1.5 % of them, are in the estimate and not in the manifest's count.
        assert one["example_bytes"] == pytest.approx(totals(made["examples"], "bytes"), rel=max(most, 0.025))
