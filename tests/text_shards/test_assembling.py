"""Text shards written from their plans: the bytes, the records that are believed, any order of plans."""

import dataclasses
import hashlib
from pathlib import Path

import pytest
from data_sets.shard_builds import PLAIN, article, equal_sorted, make_fragments, shuffled, write_dump
from data_sets.steps import run_step

from maskmill.storage import completions
from maskmill.text.shards import KIND, TextShard, article_md5, write_eval_md5
from maskmill.text_shards.fragments import drop_texts
from maskmill.text_shards.options import ExtractionOptions, QualityOptions, SplitOptions
from maskmill.text_shards.planning import MEGABYTE, ShardPlan, assemble_text_shard, plan_text_shards
from transforms.text_shards import AssembleTextShards

UNIQUE = dataclasses.replace(PLAIN, quality=QualityOptions(drop_duplicates=True, min_duplicate_words=4))
SPLIT = SplitOptions(num_eval_articles=5, shard_size_mb=300 / MEGABYTE)
PAGES = [article(i, f"Town {i} has {i} bridges.", "The same sentence stands here.", "It is old.") for i in range(1, 31)]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dump(tmp_path_factory.mktemp("dump"), PAGES)


def make_plans(dump: Path, output: Path, extraction: ExtractionOptions = PLAIN) -> list[ShardPlan]:
    return plan_text_shards(make_fragments(dump, output, extraction), SPLIT, extraction, str(output))


def assemble(plans: list[ShardPlan], output: Path, extraction: ExtractionOptions = PLAIN) -> list[TextShard]:
    return [assemble_text_shard(plan, {"": extraction}, str(output)) for plan in plans]


def shard_bytes(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output.iterdir() if path.is_file()}


@pytest.mark.parametrize("extraction", [PLAIN, UNIQUE])
def test_a_shard_is_what_its_plan_says(extraction: ExtractionOptions, dump: Path, tmp_path: Path) -> None:
    plans = make_plans(dump, tmp_path, extraction)
    shards = assemble(plans, tmp_path, extraction)
    assert len(shards) > 4
    for plan, shard in zip(plans, shards, strict=True):
        content = Path(shard.path).read_bytes()
        assert shard.path == str(tmp_path / plan.name)
        assert (shard.kind, shard.number, shard.inputs) == (plan.kind, plan.number, plan.inputs)
        assert (
            (len(content), hashlib.sha256(content).hexdigest())
            == (plan.size, shard.sha256)
            == (shard.size, shard.sha256)
        )
        assert (content.count(b"\n\n"), shard.documents) == (plan.documents, plan.documents)
        assert content.count(b"\n") == shard.sentences + shard.documents


def test_the_eval_articles_have_hashes_in_order(dump: Path, tmp_path: Path) -> None:
    shards = assemble(make_plans(dump, tmp_path), tmp_path)
    write_eval_md5(shuffled(shards), str(tmp_path))
    held_out = b"".join(path.read_bytes() for path in sorted(tmp_path.glob("eval-*"))).split(b"\n\n")[:-1]
    assert (tmp_path / "eval.md5").read_text().split() == [article_md5(article) for article in held_out]
    assert len(held_out) == 5
    # The records of training shards, which are far larger, carry no hashes.
    (train, *_) = [shard for shard in shards if shard.kind == "train"]
    assert completions.finished(str(tmp_path), KIND, train.key)["md5"] == []


def test_a_shard_that_is_there_is_not_written_again(dump: Path, tmp_path: Path) -> None:
    plans = make_plans(dump, tmp_path)
    shards = assemble(plans, tmp_path)
    drop_texts([fragment for plan in plans for fragment, _ in plan.pieces], str(tmp_path))
    assert assemble(plans, tmp_path) == shards
    assert not list(tmp_path.rglob("*.text"))


@pytest.mark.parametrize("damage", ["lost", "changed", "cut"])
def test_a_shard_that_is_damaged_is_written_again_from_the_input(damage: str, dump: Path, tmp_path: Path) -> None:
    plans = make_plans(dump, tmp_path)
    shards = assemble(plans, tmp_path)
    before = shard_bytes(tmp_path)
    drop_texts([fragment for plan in plans for fragment, _ in plan.pieces], str(tmp_path))
    path = Path(shards[1].path)
    if damage == "lost":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + (b"x" if damage == "changed" else b""))
    assert assemble(plans, tmp_path) == shards
    assert shard_bytes(tmp_path) == before
    # Only the fragments that this shard draws from are extracted again.
    texts = {path.stem for path in tmp_path.rglob("*.text")}
    assert texts == {fragment.key for fragment, _ in plans[1].pieces}


@pytest.mark.parametrize("extraction", [PLAIN, UNIQUE])
def test_plans_in_any_order_give_the_same_shards(extraction: ExtractionOptions, dump: Path, tmp_path: Path) -> None:
    plans = make_plans(dump, tmp_path / "expected", extraction)
    shards = assemble(plans, tmp_path / "expected", extraction)
    beam = tmp_path / "beam"
    expected = [dataclasses.replace(shard, path=str(beam / Path(shard.path).name)) for shard in shards]
    step = AssembleTextShards(extractions={"": extraction}, output=str(beam))
    run_step(shuffled(plans), step, equal_sorted(expected, lambda shard: (shard.kind != "train", shard.number)))
    assert shard_bytes(beam) == shard_bytes(tmp_path / "expected")
