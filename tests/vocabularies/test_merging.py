"""Merging: the words of all text whatever its cut into shards, runs and groups; rare words; tables that are damaged."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from data_sets.steps import run_step
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import text_of
from oracles.word_counts import ALL_RULES, BPE, WORDPIECE, Counts, as_dict, count
from properties import SEEDED, tries
from test_counting import added, shard_of, small_tables

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.text.shards import TextShard
from maskmill.vocabularies import merging
from maskmill.vocabularies.counting import WordRules, count_shard, drop_runs
from maskmill.vocabularies.making import VocabularySetup, make_vocabulary
from maskmill.vocabularies.merging import CountedWords, MergedWords, merge_runs, plan_merges, read_words
from maskmill.vocabularies.options import VocabularyOptions
from transforms.vocabularies import CountWords, MergeCounts


def shards_of(folder: Path, texts: Sequence[bytes]) -> list[TextShard]:
    return [shard_of(folder, text, f"part-{n:05d}-of-{len(texts):05d}") for n, text in enumerate(texts)]


def merged_of(shards: Sequence[TextShard], rules: WordRules, output: Path) -> list[MergedWords]:
    counted = [count_shard(shard, rules, str(output)) for shard in shards]
    return [merge_runs(plan, str(output)) for plan in plan_merges(counted)]


def words_of(texts: Sequence[bytes], rules: WordRules) -> Counts:
    """What all texts hold, by the oracle."""
    return added([list(count(text, rules)[0].items()) for text in texts])


@tries(20, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_the_words_of_any_texts(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    texts = [text_of(rng, rng.choice([0, 1, 5, 30])) for _ in range(rng.choice([1, 2, 4]))]
    texts += rng.choice([[], texts[:1]])  # shards with the same text count twice
    rules = rng.choice(ALL_RULES)
    folder = tmp_path_factory.mktemp("texts")
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_tables(monkeypatch, 4, rng.choice([16, 64, 1 << 20]))
        monkeypatch.setattr(merging, "_GROUP_BYTES", rng.choice([40, 400, 1 << 20]))
        merged = merged_of(shards_of(folder, texts), rules, folder / "out")
        got = read_words(merged, str(folder / "out"))
    expected = words_of(texts, rules)
    assert list(as_dict(got.words).items()) == list(expected.items())
    assert (got.threshold, got.left_out_words, got.left_out_occurrences) == (1, 0, 0)
    assert sum(piece.counts["distinct_words"] for piece in merged) == len(expected)
    assert sum(piece.counts["words"] for piece in merged) == sum(expected.values())


def test_the_words_of_no_text(tmp_path: Path) -> None:
    merged = merged_of(shards_of(tmp_path / "text", [b"\n", b""]), WORDPIECE, tmp_path / "out")
    got = read_words(merged, str(tmp_path / "out"))
    assert len(got.words) == 0
    assert (got.threshold, got.left_out_words) == (1, 0)


def test_pieces_of_work_are_no_larger_than_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(f"word{n * k}" for n in range(3000)).encode() for k in (1, 2)]
    counted = [count_shard(shard, BPE, str(tmp_path / "out")) for shard in shards_of(tmp_path / "text", texts)]
    (whole,) = plan_merges(counted)
    assert (whole.first, whole.end, whole.parts) == (0, 256, 1)
    monkeypatch.setattr(merging, "_GROUP_BYTES", 1000)
    plans = plan_merges(counted)
    assert plans == plan_merges(counted[::-1])
    assert [plan.first for plan in plans[1:]] == [plan.end for plan in plans[:-1]]
    assert all(sum(run.end - run.start for run in plan.runs) <= 1000 for plan in plans)
    assert len(plans) > 30
    # A bucket with more than that is cut into parts.
    monkeypatch.setattr(merging, "_GROUP_BYTES", 100)
    plans = plan_merges(counted)
    assert max(plan.parts for plan in plans) > 1
    assert len({plan.key for plan in plans}) == len(plans)
    merged = [merge_runs(plan, str(tmp_path / "out")) for plan in plans]
    assert as_dict(read_words(merged, str(tmp_path / "out")).words) == words_of(texts, BPE)


# ---- rare words


def read(tmp_path: Path, most: int, most_bytes: int) -> CountedWords:
    """Words of which 1 occurs four times, 2 three times, 3 twice, and 4 once; in small groups."""
    text = "d4 " * 4 + "c3 cc3 " * 3 + "b2 bb2 bbb2 " * 2 + "a1 aa1 aaa1 aaaa1"
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(merging, "_GROUP_BYTES", 10)
        merged = merged_of(shards_of(tmp_path / "text", [text.encode()]), WORDPIECE, tmp_path / "out")
    assert len(merged) > 1
    return read_words(merged, str(tmp_path / "out"), most, most_bytes)


@pytest.mark.parametrize(
    ("most", "most_bytes", "threshold", "words", "left_out"),
    [
        *[(10, 1000, 1, 10, (0, 0)), (9, 1000, 2, 6, (4, 4)), (6, 1000, 2, 6, (4, 4)), (5, 1000, 3, 3, (7, 10))],
        *[(2, 1000, 4, 1, (9, 16)), (10, 30, 1, 10, (0, 0)), (10, 29, 2, 6, (4, 4)), (10, 16, 2, 6, (4, 4))],
        *[(10, 15, 3, 3, (7, 10)), (10, 6, 4, 1, (9, 16))],
    ],
)
def test_rare_words_are_left_out_where_there_are_too_many_or_too_many_bytes(
    most: int, most_bytes: int, threshold: int, words: int, left_out: tuple[int, int], tmp_path: Path
) -> None:
    got = read(tmp_path, most, most_bytes)
    assert (got.threshold, len(got.words)) == (threshold, words)
    assert len(got.words.text) <= most_bytes
    assert all(number >= threshold for number in got.words.counts.tolist())
    assert (got.left_out_words, got.left_out_occurrences) == left_out
    assert list(as_dict(got.words)) == sorted(as_dict(got.words))


def test_where_all_words_are_equally_many_too_many_are_none(tmp_path: Path) -> None:
    merged = merged_of(shards_of(tmp_path / "text", [b"a a b b"]), WORDPIECE, tmp_path / "out")
    got = read_words(merged, str(tmp_path / "out"), 1)
    assert (len(got.words), got.threshold, got.left_out_words, got.left_out_occurrences) == (0, 3, 2, 4)


# ---- what is gone or damaged

TEXTS = [b"One two.\n", b"Two three four.\n", b"Three four, four!\n"]


def test_merged_counts_are_made_once(tmp_path: Path) -> None:
    shards = shards_of(tmp_path / "text", TEXTS)
    first = merged_of(shards, BPE, tmp_path / "out")
    path = tmp_path / "out" / first[0].name
    written = path.stat().st_mtime_ns
    assert merged_of(shards[::-1], BPE, tmp_path / "out") == first
    assert path.stat().st_mtime_ns == written
    # Another shard, one less, or one twice is other work.
    keys = {merged_of(some, BPE, tmp_path / "out")[0].key for some in (shards, shards[:2], [*shards, shards[0]])}
    assert len(keys) == 3


@pytest.mark.parametrize("damaged", ["merged counts", "record"])
def test_damaged_counts_are_made_again_from_the_texts_where_runs_are_gone(damaged: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    shards = shards_of(tmp_path / "text", TEXTS)
    counted = [count_shard(shard, BPE, str(output)) for shard in shards]
    (first,) = merged_of(shards, BPE, output)
    drop_runs(counted[:2], str(output))
    path = output / first.name if damaged == "merged counts" else output / first.name.replace(".words", ".json")
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] + b"\0" + whole[-2:])
    assert merged_of(shards, BPE, output) == [first]
    assert path.read_bytes() == whole
    assert as_dict(read_words([first], str(output)).words) == words_of(TEXTS, BPE)


@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_counts_that_are_damaged_while_they_are_needed_end_the_run(damage: str, tmp_path: Path) -> None:
    output = tmp_path / "out"
    (merged,) = merged_of(shards_of(tmp_path / "text", TEXTS), BPE, output)
    path = output / merged.name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-1] + (b"" if damage == "cut" else b"\xff"))
    with pytest.raises(RunFailedError, match="was deleted or damaged while the run needed it; run the same command"):
        read_words([merged], str(output))


# ---- the steps


def contents(output: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(output)): path.read_bytes()
        for path in output.rglob("*")
        if path.is_file() and path.suffix == ".words"
    }


def test_the_steps_write_the_same_files_whatever_the_order_of_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "_GROUP_BYTES", 20)
    shards = shards_of(tmp_path / "text", TEXTS)
    expected = sorted(merged_of(shards, WORDPIECE, tmp_path / "functions"), key=lambda piece: piece.key)

    def check(outputs: list[MergedWords]) -> None:
        assert sorted(outputs, key=lambda piece: piece.key) == expected

    for name, order in (("steps", shards), ("shuffled", shards[::-1])):
        output = str(tmp_path / name)
        run_step(order, [CountWords(VocabularyOptions(), output), MergeCounts(output)], check)
        assert contents(tmp_path / name) == contents(tmp_path / "functions")
    assert len(expected) > 1


@pytest.mark.parametrize("rules", [WORDPIECE, BPE])
@pytest.mark.parametrize(("text", "said"), [(b"\n", "there is no word"), (b"abc\n\nabc\n", "there is one word only")])
def test_fewer_than_two_words_are_refused(rules: WordRules, text: bytes, said: str, tmp_path: Path) -> None:
    merged = merged_of(shards_of(tmp_path, [text]), rules, tmp_path)
    setup = VocabularySetup(options=VocabularyOptions(kind=rules.kind).decided)
    with pytest.raises(UnusableInputError) as error:
        make_vocabulary(merged, setup, ["text"], str(tmp_path))
    assert str(error.value) == (
        f"text: {said} in this text to learn a vocabulary from; name text shards with sentences."
    )
