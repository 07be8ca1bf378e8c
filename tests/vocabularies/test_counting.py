"""Counting: the words of text shards, in tables of any size, against the oracle; runs that are gone or damaged."""

import dataclasses
import random
import re
from collections.abc import Iterable
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from data_sets.steps import run_step
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import text_of
from oracles import pretraining as oracle
from oracles.word_counts import ALL_RULES, BPE, CASED, PREFIXED, WORDPIECE, Counts, as_dict, count
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.storage import completions, files
from maskmill.text.shards import TextShard
from maskmill.text.text_files import describe_text_shard
from maskmill.tokenization import text_blocks
from maskmill.vocabularies import counting, word_tables
from maskmill.vocabularies.counting import CountedShard, WordCounter, WordRules, count_shard, drop_runs
from maskmill.vocabularies.options import VocabularyOptions
from transforms.vocabularies import CountWords


def shard_of(folder: Path, content: bytes, name: str = "part-00000-of-00001") -> TextShard:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return describe_text_shard((0, str(folder / name)))


def counted(path: Path, rules: WordRules) -> tuple[Counts, WordCounter]:
    """The words of a file whose table never has to be written."""
    counter = WordCounter(rules)
    tables = [as_dict(table.word_counts()) for table in counter.full_tables(text_blocks.read_blocks(str(path)))]
    assert len(tables) <= 1
    return (tables or [{}])[0], counter


def check_text(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    for rules in ALL_RULES:
        words, counter = counted(path, rules)
        expected, long_words = count(content, rules)
        assert list(words.items()) == list(expected.items()), rules
        assert counter.counts == {
            "bytes": len(re.sub(rb"\r+(?=\n|\Z)", b"", content)),
            "words": sum(expected.values()) + long_words,
            "long_words": long_words,
        }


@tries(60, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_words_of_made_up_text(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    check_text(text_of(rng, rng.choice([0, 1, 5, 30])), tmp_path / "text")


@tries(150, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@given(text=st.text(st.one_of(st.sampled_from("ab' \n\r\t1é漢ΣÅ\u0301\x00\u3000'slvre"), st.characters()), max_size=50))
def test_words_of_any_text(text: str, tmp_path: Path) -> None:
    check_text(text.encode("utf-8", "ignore"), tmp_path / "text")


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("rules", [CASED, PREFIXED], ids=["wordpiece", "bpe"])
def test_where_blocks_end_makes_no_difference(
    block: int, rules: WordRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (oracle.DATA / "gold" / "pretraining" / "torture.txt").read_bytes()[: 300 * block]
    content = content[: content.rindex(b"\n")]
    (tmp_path / "text").write_bytes(content)
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    assert counted(tmp_path / "text", rules)[0] == count(content, rules)[0]


def test_long_words_are_left_out_and_counted(tmp_path: Path) -> None:
    longest = "é".encode() * 100
    text = b" ".join([b"a" * 100, b"a" * 101, longest, longest + b"\xc3\xa9", b"b" * 300, b"b" * 100 + b".", b"a"])
    check_text(text, tmp_path / "text")
    words, counter = counted(tmp_path / "text", CASED)
    assert sorted(words.values()) == [1, 1, 1, 1, 1]
    assert counter.counts["long_words"] == 3


def test_pre_tokens_of_more_than_a_megabyte_are_left_out_and_counted(tmp_path: Path) -> None:
    most = 1 << 20
    (tmp_path / "text").write_bytes(b"a" * (most - 1) + b" " + b"b" * most + b" c\n\n" + b"d" * most)
    words, counter = counted(tmp_path / "text", BPE)
    assert words == {b" c": 1, b"a" * (most - 1): 1, b"d" * most: 1}
    assert counter.counts["long_words"] == 1
    assert counted(tmp_path / "text", PREFIXED)[0] == {b" c": 1, b" " + b"a" * (most - 1): 1}


# ---- tables and runs


def small_tables(monkeypatch: pytest.MonkeyPatch, first: int, most: int) -> None:
    """Has tables begin with room for few words and bytes, and grow to few."""
    monkeypatch.setattr(word_tables, "_FIRST_WORDS", first)
    monkeypatch.setattr(word_tables, "_FIRST_BYTES", 16 * first)
    monkeypatch.setattr(counting, "_MOST_WORDS", most)
    monkeypatch.setattr(counting, "_MOST_BYTES", 1024)


def records_of(content: bytes) -> list[tuple[bytes, int]]:
    """The words of records with their counts, in their order."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (content[at] & 0x7F) << shift
            at += 1
            if content[at - 1] < 0x80:
                return value, at
            shift += 7

    records = []
    at = 0
    while at < len(content):
        size, at = varint(at)
        number, at = varint(at)
        records.append((content[at : at + size], number))
        at += size
    assert at == len(content)
    return records


def added(runs: Iterable[list[tuple[bytes, int]]]) -> Counts:
    totals: Counts = {}
    for run in runs:
        for word, number in run:
            totals[word] = totals.get(word, 0) + number
    return dict(sorted(totals.items()))


def runs_of(shard: CountedShard, output: Path) -> list[list[tuple[bytes, int]]]:
    """The records of a shard's runs; checks that they are in order, and each in its bucket."""
    runs = []
    for run in shard.runs:
        content = (output / run.name).read_bytes()
        assert run.starts[0] == 0
        assert run.starts[-1] == len(content)
        buckets = [records_of(content[a:b]) for a, b in zip(run.starts, run.starts[1:], strict=False)]
        assert all(bucket == sorted(bucket) for bucket in buckets)
        runs.append([record for bucket in buckets for record in bucket])
    return runs


@pytest.mark.parametrize("rules", [WORDPIECE, BPE], ids=["wordpiece", "bpe"])
def test_a_full_table_becomes_a_run(rules: WordRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = text_of(random.Random(3), 200)
    expected, long_words = count(content, rules)
    at_once = count_shard(shard_of(tmp_path / "text", content), rules, str(tmp_path / "at once"))
    assert len(at_once.runs) == 1
    small_tables(monkeypatch, 4, 64)
    in_runs = count_shard(shard_of(tmp_path / "text", content), rules, str(tmp_path / "in runs"))
    assert len(in_runs.runs) >= 3
    assert added(runs_of(at_once, tmp_path / "at once")) == added(runs_of(in_runs, tmp_path / "in runs")) == expected
    assert at_once.counts == in_runs.counts
    assert at_once.counts["words"] == sum(expected.values()) + long_words


words_with_counts = st.lists(
    st.tuples(
        st.one_of(
            st.binary(min_size=1, max_size=20),
            st.binary(max_size=9).map(b"12345678".__add__),
            st.binary(max_size=9).map(b"12345678abcdefgh".__add__),
            st.text("\x00a", min_size=1, max_size=20).map(str.encode),
        ),
        st.one_of(st.integers(1, 200), st.integers(1, 2**40)),
    ),
    max_size=40,
)  # fmt: skip


@tries(150, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@given(words=words_with_counts, parts=st.integers(1, 3))
def test_records_are_read_as_they_were_written(
    words: list[tuple[bytes, int]], parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_tables, "_FIRST_WORDS", 4)
    monkeypatch.setattr(word_tables, "_FIRST_BYTES", 8)
    content = b"".join(_varint(len(word)) + _varint(number) + word for word, number in words)
    padded = np.frombuffer(bytearray(content + bytes(text_blocks.PADDING)), np.uint8)
    tables = []
    for part in range(parts):
        table = word_tables.WordTable()
        table.add(padded, len(content), part, parts)
        records, starts = table.records()
        assert starts.tolist() == sorted(starts.tolist())
        assert as_dict(table.word_counts()) == added([records_of(records.tobytes())])
        tables.append(as_dict(table.word_counts()))
        assert list(tables[-1]) == sorted(tables[-1])
    assert added(list(table.items()) for table in tables) == added([words])
    assert sum(map(len, tables)) == len(added([words]))  # a word is in one part alone


def _varint(value: int) -> bytes:
    content = b""
    while value >= 0x80:
        content += bytes([value & 0x7F | 0x80])
        value >>= 7
    return content + bytes([value])


# ---- pieces of work


def test_a_shard_is_counted_once(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    shard = shard_of(tmp_path / "text", b"One two.\nTwo.\n")
    first = count_shard(shard, WORDPIECE, output)
    (run,) = first.runs
    written = (tmp_path / "out" / run.name).stat().st_mtime_ns
    assert count_shard(shard, WORDPIECE, output) == first
    assert (tmp_path / "out" / run.name).stat().st_mtime_ns == written
    assert first.inputs == {shard.path: shard.sha256}


def test_what_decides_the_words_is_in_the_key(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    shard = shard_of(tmp_path / "text", b"One two.\n")
    keys = {count_shard(shard, rules, output).key for rules in ALL_RULES}
    assert len(keys) == 4
    other = shard_of(tmp_path / "text", b"One two!\n")
    assert count_shard(other, WORDPIECE, output).key not in keys
    # A shard is its text, not its name or number.
    renamed = dataclasses.replace(shard_of(tmp_path / "text", b"One two.\n", "part-00007-of-00009"), number=7)
    assert count_shard(renamed, WORDPIECE, output).key in keys


def test_options_decide_the_words() -> None:
    assert WordRules.of(VocabularyOptions()) == WORDPIECE
    assert WordRules.of(VocabularyOptions(do_lower_case=False)) == CASED
    assert WordRules.of(VocabularyOptions(kind="bpe")) == BPE
    assert WordRules.of(VocabularyOptions(kind="bpe", add_prefix_space=True)) == PREFIXED
    # What only the learner looks at makes no difference.
    assert WordRules.of(VocabularyOptions(size=99, min_frequency=7, limit_alphabet=50)) == WORDPIECE


def test_runs_that_are_gone_are_not_missed(tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    shard = shard_of(tmp_path / "text", b"One two.\n")
    first = count_shard(shard, WORDPIECE, output)
    drop_runs([first, first], output)
    assert not files.exists(files.join(output, first.runs[0].name))
    assert count_shard(shard, WORDPIECE, output) == first
    assert not files.exists(files.join(output, first.runs[0].name))


@pytest.mark.parametrize("damaged", ["run", "record"])
def test_a_damaged_piece_is_made_again(damaged: str, tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    shard = shard_of(tmp_path / "text", b"One two.\n")
    first = count_shard(shard, WORDPIECE, output)
    record = completions.work_path(output, counting.KIND, f"{first.key}.json")
    path = Path(files.join(output, first.runs[0].name) if damaged == "run" else record)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3] + b"\0" + whole[-2:])
    assert count_shard(shard, WORDPIECE, output) == first
    assert path.read_bytes() == whole
    (note,) = [
        completions.load(output, completions.REMADE, key) for key in completions.keys(output, completions.REMADE)
    ]
    assert note is not None
    assert note["name"] == "the counts of part-00000-of-00001"


@pytest.mark.parametrize("rules", [WORDPIECE, PREFIXED], ids=["wordpiece", "bpe"])
def test_what_is_not_utf8_is_one_sentence(rules: WordRules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_tables(monkeypatch, 4, 8)
    shard = shard_of(tmp_path / "text", b"a b c d e f g h i j\n k l m n\nab\xffc\n")
    with pytest.raises(UnusableInputError, match=r"part-00000-of-00001, line 3: this text is not UTF-8 \(byte 0xFF af"):
        count_shard(shard, rules, str(tmp_path / "out"))
    with pytest.raises(UnusableInputError, match="this input does not exist"):
        count_shard(dataclasses.replace(shard, path=f"{tmp_path}/none"), rules, str(tmp_path / "out"))


def test_a_text_without_words_has_no_run(tmp_path: Path) -> None:
    for content in (b"", b"\n \n\n"):
        shard = count_shard(shard_of(tmp_path / "text", content), WORDPIECE, str(tmp_path / "out"))
        assert shard.runs == ()
        assert shard.counts == {"bytes": len(content), "words": 0, "long_words": 0}


def test_the_step(tmp_path: Path) -> None:
    texts = [b"One two.\n", b"Two three.\n"]
    shards = [shard_of(tmp_path / "text", text, f"part-0000{n}-of-00002") for n, text in enumerate(texts)]
    expected = {str(tmp_path / "text" / f"part-0000{n}-of-00002"): text for n, text in enumerate(texts)}

    def check(outputs: list[CountedShard]) -> None:
        assert {shard.path for shard in outputs} == set(expected)
        for shard in outputs:
            assert added(runs_of(shard, tmp_path / "out")) == count(expected[shard.path], BPE)[0]

    step = CountWords(options=VocabularyOptions(kind="bpe"), output=str(tmp_path / "out"))
    run_step(shards, step, check)


def test_a_word_can_occur_more_often_than_32_bits_count(tmp_path: Path) -> None:
    table = word_tables.WordTable()
    content = b"".join(b"\x01" + _varint(2**40) + b"a" for _ in range(3))
    padded = np.frombuffer(bytearray(content + bytes(text_blocks.PADDING)), np.uint8)
    table.add(padded, len(content), 0, 1)
    assert as_dict(table.word_counts()) == {b"a": 3 * 2**40}
