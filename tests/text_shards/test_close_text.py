"""The end of a build of text shards: manifest, eval.md5, what is swept and what stays."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from command_runs.extract_runs import read_manifest
from data_sets.shard_builds import (
    PLAIN,
    article,
    cut_batches,
    input_file,
    make_fragments,
    shuffled,
    write_dump,
    write_wiki_files,
)
from made_up import dump_files

from maskmill.extraction.options import WikitextOptions
from maskmill.extraction.template_library import bind_library, collect_templates
from maskmill.inputs.units import Digest
from maskmill.text.shards import TextShard
from maskmill.text_shards.close_text import close_text_shards
from maskmill.text_shards.fragments import Fragment, extract_batch
from maskmill.text_shards.mlperf_shards import CleanedBatch, clean_batch, gather_part, plan_parts, raw_files_of_inputs
from maskmill.text_shards.options import ExtractionOptions, QualityOptions, Source, SplitOptions
from maskmill.text_shards.planning import MEGABYTE, assemble_text_shard, plan_text_shards

SPLIT = SplitOptions(num_eval_articles=4, shard_size_mb=200 / MEGABYTE)
PAGES = [
    *[article(i, f"Town {i} has {i} bridges.", "The same sentence stands here.") for i in range(1, 13)],
    article(13, "The same sentence stands here."),
    dump_files.page(20, "Moved", "#REDIRECT [[Article 1]]", redirect="Article 1"),
    article(21, "A BROKEN page."),
]
PARAMETERS = {"input": "dump.xml", "num_eval_articles": 4}


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_dump(tmp_path_factory.mktemp("dump"), PAGES)
    path.write_bytes(path.read_bytes().replace(b"BROKEN", b"\xff"))
    return path


def write_shards(
    fragments: list[Fragment], output: Path, extraction: ExtractionOptions = PLAIN, split: SplitOptions = SPLIT
) -> list[TextShard]:
    plans = plan_text_shards(fragments, split, extraction, str(output))
    return [assemble_text_shard(plan, {"": extraction}, str(output)) for plan in plans]


def close(
    elements: list[TextShard | Fragment | CleanedBatch | Digest],
    output: Path,
    extraction: ExtractionOptions = PLAIN,
    max_documents: int | None = None,
) -> dict[str, Any]:
    """Closes a build, given its elements in another order; returns the manifest."""
    close_text_shards(
        shuffled(elements),
        [Source(extraction=extraction, max_documents=max_documents)],
        parameters=PARAMETERS,
        decided={"extractor": "maskmill"},
        output=str(output),
    )
    return read_manifest(output)


def visible_files(output: Path) -> list[str]:
    return sorted(path.name for path in output.iterdir() if path.is_file())


def work_files(output: Path) -> set[str]:
    return {str(path.relative_to(output / ".maskmill")) for path in (output / ".maskmill").rglob("*") if path.is_file()}


def test_the_manifest_says_what_the_directory_holds(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path)
    shards = write_shards(fragments, tmp_path)
    manifest = close([*fragments, *shards], tmp_path)
    assert (manifest["stage"], manifest["parameters"]) == ("extract", PARAMETERS)
    file = input_file(dump)
    assert manifest["inputs"] == [{"path": str(dump), "bytes": file.size, "sha256": file.sha256}]
    assert manifest["counts"]["extract"] == {"read": 15, "documents": 13, "redirects": 1, "rejected": 1}
    # Training shards by number, then the eval set.
    assert [entry["name"] for entry in manifest["shards"]] == [Path(shard.path).name for shard in shards]
    assert [entry["kind"] for entry in manifest["shards"]] == sorted((s.kind for s in shards), reverse=True)
    for entry in manifest["shards"]:
        content = (tmp_path / entry["name"]).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert (entry["documents"], entry["inputs"]) == (content.count(b"\n\n"), {str(dump): file.sha256})
    for kind, documents in (("train", 9), ("eval", 4)):
        of_kind = [shard for shard in shards if shard.kind == kind]
        assert manifest["counts"][kind] == {
            "shards": len(of_kind),
            "documents": documents,
            "sentences": sum(shard.sentences for shard in of_kind),
            "bytes": sum(shard.size for shard in of_kind),
        }
    (rejected,) = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert (rejected["input"], rejected["title"], "UTF-8" in rejected["reason"]) == (str(dump), "Article 21", True)
    assert len((tmp_path / "eval.md5").read_text().split()) == 4


def test_inputs_in_a_store_have_the_checksums_that_were_computed_beside_the_work(dump: Path, tmp_path: Path) -> None:
    plain = make_fragments(dump, tmp_path / "plain")
    expected = close([*plain, *write_shards(plain, tmp_path / "plain")], tmp_path / "plain")
    (file,) = {file for fragment in plain for file in fragment.batch.files}
    stored = dataclasses.replace(file, sha256="", stored="a checksum and a version")
    made = make_fragments(dump, tmp_path / "out")
    fragments = [dataclasses.replace(f, batch=dataclasses.replace(f.batch, files=(stored,))) for f in made]
    elements = [*fragments, *write_shards(fragments, tmp_path / "out"), Digest(file.path, file.sha256)]
    assert close(elements, tmp_path / "out") == expected


def test_elements_in_any_order_give_the_same_manifest(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path)
    elements = [*fragments, *write_shards(fragments, tmp_path)]
    close(elements, tmp_path)
    first = (tmp_path / "manifest.json").read_bytes()
    close(elements[::-1], tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == first


def test_what_older_builds_left_is_swept(dump: Path, tmp_path: Path) -> None:
    older = write_shards(
        make_fragments(dump, tmp_path, unit_bytes=100), tmp_path, split=dataclasses.replace(SPLIT, shard_size_mb=1)
    )
    (tmp_path / "notes.txt").write_text("mine")
    before = work_files(tmp_path)
    fragments = make_fragments(dump, tmp_path)
    shards = write_shards(fragments, tmp_path)
    close([*fragments, *shards], tmp_path)
    names = [Path(shard.path).name for shard in shards]
    assert not {Path(shard.path).name for shard in older} & set(names)
    assert visible_files(tmp_path) == sorted([*names, "eval.md5", "manifest.json", "notes.txt", "rejected.jsonl"])
    # Of the work files, the records and tables of this build stay; its texts are a cache and go.
    expected = {f"text/{shard.key}.json" for shard in shards}
    expected |= {f"extract/{fragment.key}.{ending}" for fragment in fragments for ending in ("json", "npy")}
    assert work_files(tmp_path) == expected | {"plan/text.json", "run/titles.json"}
    assert before - expected - {"plan/text.json"}


def test_documents_over_the_limit_are_counted(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path)
    shards = write_shards(fragments, tmp_path, split=dataclasses.replace(SPLIT, max_documents=10))
    counts = close([*fragments, *shards], tmp_path, max_documents=10)["counts"]
    assert counts["extract"]["over_max_documents"] == 3
    assert counts["train"]["documents"] + counts["eval"]["documents"] == 10
    assert "over_max_documents" not in close([*fragments, *shards], tmp_path, max_documents=13)["counts"]["extract"]


@pytest.mark.parametrize("max_documents", [None, 13, 12])
def test_duplicate_paragraphs_are_counted(max_documents: int | None, dump: Path, tmp_path: Path) -> None:
    extraction = dataclasses.replace(PLAIN, quality=QualityOptions(drop_duplicates=True, min_duplicate_words=4))
    split = dataclasses.replace(SPLIT, max_documents=max_documents)
    fragments = make_fragments(dump, tmp_path, extraction)
    shards = write_shards(fragments, tmp_path, extraction, split)
    manifest = close([*fragments, *shards], tmp_path, extraction, max_documents)
    assert manifest["counts"]["paragraphs"] == {
        "read": 25,
        "exact_duplicates": 12,
        "near_duplicates": 0,
        # The last article, where it is taken, has nothing but the repeated sentence.
        "emptied_documents": 0 if max_documents == 12 else 1,
    }
    assert len([name for name in work_files(tmp_path) if name.startswith("duplicates/")]) == 2
    assert not [name for name in work_files(tmp_path) if name.endswith(".paragraphs")]


def test_templates_are_counted_and_kept(tmp_path: Path) -> None:
    extraction = dataclasses.replace(PLAIN, wikitext=WikitextOptions(expand_templates=True))
    pages = [
        article(1, "It has {{count|3}}."),
        article(2, "It is endless: {{endless}}."),
        article(3, "It is plain."),
        dump_files.page(50, "Template:Count", "{{{1}}} bridges", namespace=10),
        dump_files.page(51, "Template:Endless", "on {{endless}}", namespace=10),
    ]
    output = tmp_path / "out"
    batches = cut_batches(write_dump(tmp_path, pages))
    pieces = [collect_templates(batch, extraction.reading, str(output)) for batch in batches]
    fragments = [extract_batch(batch, extraction, str(output)) for batch in bind_library(pieces, str(output))]
    shards = write_shards(fragments, output, extraction, SplitOptions(eval_fraction=0))
    counts = close([*fragments, *shards], output, extraction)["counts"]
    assert counts["templates"] == {"definitions": 2, "partly_expanded_pages": 1, "expanded_calls": 2}
    assert counts["extract"] == {"read": 5, "documents": 3, "other_namespaces": 2}
    assert len([name for name in work_files(output) if name.startswith("templates/")]) == 3 * len(pieces)
    assert len([name for name in work_files(output) if name.startswith("template-library/")]) == 3


def test_cleaned_files_are_counted_and_their_texts_dropped(tmp_path: Path) -> None:
    inputs = write_wiki_files(tmp_path, 3)
    options, output = SplitOptions(num_eval_articles=4, shard_size_mb=1), str(tmp_path / "out")
    english = dataclasses.replace(PLAIN, language="english")
    cleaned = [clean_batch((raw,), options, english, output) for raw in raw_files_of_inputs(inputs)]
    shards = [gather_part(plan, options, english, output) for plan in plan_parts(cleaned, options, output)]
    manifest = close([*cleaned, *shards], tmp_path / "out")
    assert manifest["counts"]["clean"] == {"documents": 15, "eval_articles": 4}
    assert "extract" not in manifest["counts"]
    assert sorted(entry["path"] for entry in manifest["inputs"]) == [file.path for file in inputs]
    expected = {f"clean/{file.key}.json" for file in cleaned} | {f"text/{shard.key}.json" for shard in shards}
    assert work_files(tmp_path / "out") == expected | {"plan/text.json"}
    assert visible_files(tmp_path / "out") == ["eval.md5", "eval.txt", "manifest.json", "part-00000-of-00500"]
