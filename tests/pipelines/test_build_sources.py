"""Builds whose text is a mix of sources, or was extracted before: same bytes however they run, counts, re-runs."""

import bz2
import itertools
import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_runs.commands import IN_MEMORY, ROOT, TWO_PROCESSES, VOCAB, digests, leftovers
from data_sets.shard_builds import article
from made_up import dump_files

from pipelines.building import build_options
from pipelines.commands import cli
from pipelines.settings import yaml_text
from pipelines.settings.source_options import MixOptions
from pipelines.stages.mix_stage import MixStage

pytestmark = pytest.mark.long

WORDS = (
    "the",
    "a",
    "river",
    "town",
    "old",
    "stone",
    "bridge",
    "walked",
    "slowly",
    "toward",
    "house",
    "garden",
    "light",
)
EXAMPLES = {"vocab_file": str(VOCAB), "max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}


def sentences(order: random.Random, count: int) -> list[str]:
    return [" ".join(order.choices(WORDS, k=order.randint(6, 14))).capitalize() + "." for _ in range(count)]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dump in two containers, and with books of many documents."""
    folder = tmp_path_factory.mktemp("corpora")
    order = random.Random(5)
    pages = [article(k, *sentences(order, order.randint(2, 30))) for k in range(1, 121)]
    (folder / "dump.xml").write_bytes(dump_files.dump(pages))
    (folder / "dump.xml.bz2").write_bytes(bz2.compress((folder / "dump.xml").read_bytes()))
    for book in range(3):
        chapters = ["\n".join(sentences(order, order.randint(2, 20))) for _ in range(8)]
        (folder / f"book{book}.txt").write_text("\n\n".join(chapters) + "\n")
    return folder


def sources_of(corpora: Path, dump: str = "dump.xml") -> dict[str, dict[str, object]]:
    return {
        "wiki": {"input": str(corpora / dump), "weight": 3},
        "books": {"input": str(corpora / "book*.txt"), "input_format": "text", "weight": 1, "max_epochs": 2},
    }


def build(output: Path, sources: Mapping[str, Mapping[str, object]], *flags: str, **extract: object) -> int:
    """Runs a small build of sources in this process."""
    content = {
        "output": str(output),
        "report": "off",
        "sources": sources,
        "extract": {"shard_size_mb": 0.01, "num_eval_articles": 9, **extract},
        "examples": EXAMPLES,
    }
    path = output.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return cli.main(["build", str(path), *IN_MEMORY, *flags])


@pytest.fixture(scope="module")
def built(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a finished build, which tests only read."""
    output = tmp_path_factory.mktemp("mix") / "out"
    assert build(output, sources_of(corpora)) == 0
    return output


def manifest_of(output: Path, stage: str = "text") -> dict[str, Any]:
    made: dict[str, Any] = json.loads((output / stage / "manifest.json").read_text())
    return made


def documents(paths: Sequence[Path]) -> list[str]:
    return [document for path in paths for document in path.read_text().strip().split("\n\n") if document]


def test_a_mix_has_its_shares_and_never_trains_on_what_is_held_out(built: Path, corpora: Path) -> None:
    train = [documents([path]) for path in sorted((built / "text").glob("part-*"))]
    held_out = documents([built / "text" / "eval.txt"])
    assert len(train) > 4
    assert len(held_out) == 9
    books = set(documents(sorted(corpora.glob("book*.txt"))))
    assert 0 < len(books & set(held_out)) < 9
    everything = list(itertools.chain.from_iterable(train))
    assert not set(everything) & set(held_out)
    assert sorted(d for d in everything if d in books) == sorted([*(books - set(held_out))] * 2)
    of_wiki = [document for document in everything if document not in books]
    assert len(set(of_wiki)) == len(of_wiki)
    for shard in train:
        size = sum(len(document) + 2 for document in shard)
        share = sum(len(document) + 2 for document in shard if document in books) / size
        assert abs(share - 0.25) < 0.2
    assert not [None for shard in train for one, other in itertools.pairwise(shard) if one == other]


def test_the_manifest_counts_each_source(built: Path) -> None:
    manifest = manifest_of(built)
    mixed = manifest["decided"]["sources"]
    assert set(mixed) == {"books", "wiki"}
    assert [entry["source"] for entry in manifest["inputs"]] == ["books", "books", "books", "wiki"]
    assert sum(entry["used"] for entry in mixed.values()) == manifest["counts"]["train"]["documents"]
    assert sum(entry["bytes"] for entry in mixed.values()) == manifest["counts"]["train"]["bytes"]
    assert sum(entry["held_out"] for entry in mixed.values()) == manifest["counts"]["eval"]["documents"] == 9
    assert sum(entry["read"] for entry in mixed.values()) == manifest["counts"]["extract"]["read"] == 144
    assert (mixed["books"]["epochs"], mixed["books"]["extract"]) == (2.0, {"read": 24, "documents": 24})
    assert mixed["books"]["share"] == pytest.approx(0.25, abs=0.02)
    assert 0.2 < mixed["wiki"]["epochs"] < 0.9
    assert mixed["books"]["share"] + mixed["wiki"]["share"] == pytest.approx(1, abs=1e-5)
    parameters = manifest["parameters"]
    assert (parameters["sources.books.weight"], parameters["sources.books.max_epochs"]) == (1.0, 2.0)
    assert (parameters["num_eval_articles"], "sources.books.num_eval_articles" in parameters) == (9, False)
    assert {entry["source"] for entry in manifest["decided"]["sentences"]} == {"books", "wiki"}


@pytest.mark.builds
def test_the_summary_has_a_line_for_each_source(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tmp_path / "out", sources_of(corpora)) == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert re.search(
        r"source books: 24 read, 24 documents, \d held out, \d+ used, [\d,]+ bytes, 2 epochs, 2\d(\.\d)? % of", text
    )
    assert re.search(r"source wiki: 120 read, 120 documents, .* 0\.\d+ epochs, 7\d(\.\d)? % of the mix", text)
    assert "sentences wiki: " in text


@pytest.mark.builds
def test_processes_containers_and_the_order_of_sources_change_no_byte(
    built: Path, corpora: Path, tmp_path: Path
) -> None:
    expected = digests(built, manifests=False)
    packed = dict(reversed(sources_of(corpora, "dump.xml.bz2").items()))
    assert build(tmp_path / "packed", packed) == 0
    assert digests(tmp_path / "packed", manifests=False) == expected
    output = tmp_path / "two"
    path = (built.parent / "out.yaml").read_text().replace(str(built), str(output))
    (tmp_path / "two.yaml").write_text(path)
    command = [sys.executable, "-m", "maskmill", "build", str(tmp_path / "two.yaml"), *TWO_PROCESSES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert digests(output, manifests=False) == expected
    assert leftovers(output) == []


@pytest.mark.builds
def test_a_rerun_makes_a_missing_shard_again_by_each_source_s_own_options(
    corpora: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    sources = sources_of(corpora)
    sources["wiki"]["keep_titles"] = True
    assert build(output, sources) == 0
    before = digests(output)
    lost = sorted((output / "text").glob("part-*"))[1]
    lost.unlink()
    capsys.readouterr()
    assert build(output, sources) == 0
    assert digests(output) == before
    assert f"{lost.name}: it was gone" in capsys.readouterr().out


@pytest.mark.builds
def test_sources_train_punkt_each_for_itself(tmp_path: Path) -> None:
    order = random.Random(3)
    vowels = "аеиоу"
    words = ["".join(order.choice("бвгдкмн") + order.choice(vowels) for _ in range(3)) for _ in range(40)]

    def text(count: int) -> str:
        return "\n\n".join(" ".join(order.choices(words, k=9)).capitalize() + "." for _ in range(count)) + "\n"

    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(text(3000))
    sources = {name: {"input": str(tmp_path / f"{name}.txt")} for name in ("one", "two")}
    assert build(tmp_path / "out", sources, shard_size_mb=1, language="uk") == 0
    folders = [entry["parameters"]["path"] for entry in manifest_of(tmp_path / "out")["decided"]["sentences"]]
    assert folders == ["punkt/one/ukrainian", "punkt/two/ukrainian"] or folders == ["punkt/one/uk", "punkt/two/uk"]
    assert all((tmp_path / "out" / "text" / folder).is_dir() for folder in folders)


# ---- from text shards


@pytest.mark.builds
def test_a_build_from_text_shards_extracts_nothing_and_gives_the_same_examples(built: Path, tmp_path: Path) -> None:
    path = tmp_path / "from.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "output": str(tmp_path / "out"),
                "report": "off",
                "extract": {"from": str(built / "text")},
                "examples": EXAMPLES,
            }
        )
    )
    assert cli.main(["build", str(path), *IN_MEMORY]) == 0
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["eval", "examples"]
    for stage in ("examples", "eval"):
        made, expected = (digests(folder / stage, manifests=False) for folder in (tmp_path / "out", built))
        assert made == expected
    assert manifest_of(tmp_path / "out", "examples")["counts"] == manifest_of(built, "examples")["counts"]
    again = ["build", str(path), f"--output={tmp_path}/other", "--examples.dupe_factor=2", *IN_MEMORY]
    assert cli.main(again) == 0
    counts = manifest_of(tmp_path / "other", "examples")["counts"]["train"]
    assert counts["examples"] > manifest_of(built, "examples")["counts"]["train"]["examples"]


@pytest.mark.builds
def test_a_flag_and_a_glob_name_text_shards(built: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(yaml.safe_dump({"output": str(tmp_path / "out"), "examples": EXAMPLES}))
    assert cli.main(["build", str(path), f"--extract.from={built}/text/part-*", *IN_MEMORY]) == 0
    assert set(manifest_of(tmp_path / "out", "examples")["counts"]) == {"train"}


# ---- options


def test_what_is_printed_of_a_mix_or_of_text_shards_loads_as_the_same_build(corpora: Path) -> None:
    mixed = {"sources": sources_of(corpora), "extract": {"num_eval_articles": 4, "random_seed": 7, "keep_titles": True}}
    for section in (mixed, {"extract": {"from": "text"}}, {"extract": {"from": ["a/part-*", "b"]}}):
        build = build_options.make_build({"output": "o", "examples": EXAMPLES, **section}, where="x")
        printed = yaml_text.parse(build_options.print_config(build).encode(), where="x")
        assert build_options.make_build(printed, where="x") == build
    printed = yaml_text.parse(build_options.print_config(None).encode(), where="x")
    assert printed["extract"]["from"] is None


def test_the_printed_section_of_sources_loads_once_it_is_filled_in() -> None:
    lines = build_options.print_config().splitlines()
    start = lines.index("# sources:")
    section = "\n".join(line.removeprefix("# ") for line in lines[start : lines.index("extract:")])
    content = yaml_text.parse(section.encode(), where="x")
    content["sources"]["NAME"]["input"] = "i"
    made = build_options.make_build(content | {"output": "o", "examples": EXAMPLES}, where="x")[MixStage]
    assert isinstance(made, MixOptions)
    (source,) = made.sources
    assert (source.name, source.weight, source.max_epochs, source.extract.input) == ("NAME", None, 1.0, ("i",))


def test_a_source_takes_what_it_does_not_give_from_the_section_extract(corpora: Path) -> None:
    extract = {"input_format": "jsonl", "max_documents": 5, "random_seed": 3, "shard_size_mb": 2}
    content = {
        "output": "o",
        "compat": "google",
        "sources": sources_of(corpora),
        "extract": extract,
        "examples": EXAMPLES,
    }
    flags = {"extract.keep_titles": True, "extract.num_eval_articles": 8}
    made = build_options.make_build(content, where="x", overrides=flags)[MixStage]
    books, wiki = made.sources
    assert (books.extract.input_format, wiki.extract.input_format) == ("text", "jsonl")
    for source in made.sources:
        assert (source.extract.compat, source.extract.output) == ("google", "o/text")
        assert source.extract.extraction.keep_titles
        assert source.extract.extraction.random_seed == made.random_seed == 3
        assert source.source.max_documents == 5
    assert (made.split.num_eval_articles, made.split.shard_size_mb, made.split.max_documents) == (8, 2.0, None)
    assert set(made.defaults) <= set(made.parameters)
