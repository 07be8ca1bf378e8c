"""maskmill estimate: what it says is what a build then gives, and it writes nothing."""

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
from command_runs.commands import DUMP, IN_MEMORY, VOCAB

from pipelines.commands import cli

WORDS = (
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
)


def estimate(capsys: pytest.CaptureFixture[str], config: Path, *flags: str) -> dict[str, Any]:
    capsys.readouterr()
    assert cli.main(["estimate", str(config), "--json", *flags]) == 0
    assert not (config.parent / "out").exists()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def built(config: Path, *flags: str) -> dict[str, Any]:
    """The figures of a build by the names that an estimate has for them."""
    assert cli.main(["build", str(config), *IN_MEMORY, *flags]) == 0
    text, examples = (
        json.loads((config.parent / "out" / stage / "manifest.json").read_text())["counts"]
        for stage in ("text", "examples")
    )

    def total(counts: dict[str, dict[str, int]], name: str) -> int:
        return sum(counts.get(split, {}).get(name, 0) for split in ("train", "eval"))

    of_text = {"documents": total(text, "documents"), "text_bytes": total(text, "bytes")}
    return of_text | {
        "tokens": total(examples, "tokens"),
        "examples": total(examples, "examples"),
        "example_bytes": total(examples, "bytes"),
    }


def config_of(tmp_path: Path, text: str, examples: str = f"  vocab_file: {VOCAB}\n") -> Path:
    path = tmp_path / "build.yaml"
    path.write_text(f"output: {tmp_path}/out\nreport: off\n{text}\nexamples:\n  dupe_factor: 2\n{examples}")
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
    if ".parquet" in path.name:
        pq.write_table(pa.table({"body": made, "key": [f"d{n}" for n in range(len(made))]}), path, row_group_size=200)
        return
    lines = "".join(json.dumps({"body": text, "key": f"d{n}"}) + "\n" for n, text in enumerate(made))
    elements = "".join(f'<doc id="{n}" url="" title="d{n}">\nd{n}\n\n{text}\n</doc>\n' for n, text in enumerate(made))
    content = lines if ".jsonl" in path.name else elements if ".doc" in path.name else "\n\n".join(made) + "\n"
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": lambda data: bz2.compress(data, 1)}
    path.write_bytes(pack.get(path.suffix, bytes)(content.encode()))


def assert_near(found: dict[str, Any], made: dict[str, Any], tolerance: float) -> None:
    for name, value in made.items():
        assert found[name] == pytest.approx(value, rel=tolerance), name


@pytest.mark.builds
def test_an_input_that_is_read_whole_gives_what_the_build_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(tmp_path, f"extract:\n  input: {DUMP}\n  num_eval_articles: 7\n  shard_size_mb: 1")
    found = estimate(capsys, config)
    assert (found["input"]["share_read"], found["eval_documents"], found["shards"]) == (1, 7, 3)
    made = built(config)
    assert {name: found[name] for name in made} == made


@pytest.mark.builds
@pytest.mark.parametrize(
    "name", ["a.txt", "a.jsonl", "a.parquet", "a.doc", "a.txt.bz2", "a.jsonl.bz2", "a.txt.gz", "a.jsonl.xz"]
)
@pytest.mark.exhaustive_but("a.jsonl.bz2", "a.parquet", "a.txt.gz")
def test_a_small_share_of_every_format_is_near_the_whole(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = documents(16000)
    write_corpus(tmp_path / name, made)
    columns = "" if "txt" in name or "doc" in name else "\n  text_column: body\n  id_column: key"
    config = config_of(tmp_path, f"extract:\n  input: {tmp_path / name}\n  language: english{columns}")
    found = estimate(capsys, config, "--sample_share=0.3")
    assert found["input"]["share_read"] < 0.45
    assert found["documents"] == pytest.approx(len(made), rel=0.1)
    # Packers do better the more they have seen, so the beginning of a file holds less text than its other parts.
    assert found["text_bytes"] == pytest.approx(sum(len(text.encode()) + 2 for text in made), rel=0.1)


@pytest.mark.builds
@pytest.mark.parametrize("section", ["extract", "from", "sources"])
def test_text_shards_and_a_mix_and_a_vocabulary(
    section: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        write_corpus(tmp_path / f"corpus{number}.txt", documents(4000 * number, seed=number))
    inputs = [f"input: {tmp_path}/corpus{number}.txt, language: english" for number in (1, 2)]
    text = {
        "extract": f"extract: {{{inputs[0]}, max_documents: 3000}}\n"
        f"vocabulary: {{size: 400, model_dir: {tmp_path}/model}}",
        "sources": f"sources:\n  a: {{{inputs[0]}, weight: 1}}\n  b: {{{inputs[1]}, weight: 1}}",
        "from": f"extract: {{from: {tmp_path}/other/text}}",
    }[section]
    if section == "from":
        flags = [f"--input={tmp_path}/corpus1.txt", f"--output={tmp_path}/other/text", "--language=english"]
        assert cli.main(["extract", *flags, "--shard_size_mb=1", *IN_MEMORY]) == 0
    config = config_of(tmp_path, text, "" if section == "extract" else f"  vocab_file: {VOCAB}\n")
    found = estimate(capsys, config, "--sample_share=0.4")
    assert not (tmp_path / "model").exists()
    if section == "from":
        assert found["documents"] is None
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "text").symlink_to(tmp_path / "other" / "text")
    made = built(config)
    assert_near(found, {name: value for name, value in made.items() if found[name] is not None}, 0.1)


def test_the_summary_has_what_a_user_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = config_of(tmp_path, f"extract:\n  input: {DUMP}")
    assert cli.main(["estimate", str(config), "--cores=8", "--examples.dupe_factor=3", "--examples.format=mds"]) == 0
    printed = capsys.readouterr().out
    for words in ("read, 100.00%", "documents", "tokens", "at dupe factor 3, ", "% padding", "as mds", "on 8 cores"):
        assert words in printed


@pytest.mark.builds
@pytest.mark.long
def test_a_dump_is_estimated_from_a_part_of_it(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = shared / "data" / "dumps" / "enwik8-pages-articles-multistream.xml.bz2"
    config = config_of(tmp_path, f"extract:\n  input: {dump}\n  dump_date: 2024-01-01")
    found = estimate(capsys, config)
    assert found["input"]["share_read"] < 0.15
    assert_near(found, built(config), 0.05)
