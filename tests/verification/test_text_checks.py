"""Checks of text shards: what is counted, what is wrong with their characters, and what two of them share."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from properties import tries

from maskmill.reading.byte_ranges import LocalRanges
from maskmill.verification.findings import Finding
from maskmill.verification.listed_shards import ListedFile
from maskmill.verification.text_checks import check_text, read_articles
from maskmill.verification.verifying import verify
from maskmill.verification.work_items import ItemResult, WorkItem

LINE = "It has a bridge over the river and an old town hall with a tower of stone and brick"


def check(path: Path, content: bytes, scratch: Path | None = None, split: str = "train") -> ItemResult:
    path.write_bytes(content)
    item = WorkItem(
        kind="text",
        path=str(path),
        split=split,
        shard=0,
        directory=str(path.parent),
        expected=ListedFile(),
        scratch=None if scratch is None else str(scratch),
    )
    return check_text(item, LocalRanges())


@tries(60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(st.lists(st.sampled_from([b"\n", b"\n\n", b"a", b"bc d", b" "])), st.integers(1, 9))
def test_articles_are_split_as_the_whole_text_is(tmp_path: Path, parts: list[bytes], block_bytes: int) -> None:
    content = b"".join(parts)
    (tmp_path / "text").write_bytes(content)
    found = [a for articles in read_articles(str(tmp_path / "text"), LocalRanges(), block_bytes) for a in articles]
    *articles, last = content.split(b"\n\n")
    assert found == articles + ([last] if last else [])


def test_text_is_counted(tmp_path: Path) -> None:
    result = check(tmp_path / "part", f"Ä river.\nA sea.\n\n{LINE}\n{LINE}\n\n\n\n".encode())
    statistics = result.text
    assert statistics is not None
    assert (statistics.documents, statistics.lines) == (2, 4)
    assert statistics.words == 2 + 2 + 2 * len(LINE.split())
    assert statistics.characters == len("Ä river.") + len("A sea.") + 2 * len(LINE)
    assert statistics.shared_lines == ()
    assert result.counts == {"sentences": 4, "documents": 2}
    assert [(finding.severity, finding.record) for finding in result.findings] == [("note", 3)]


@pytest.mark.parametrize(
    ("content", "record"), [(b"A sea.\n\nA \xff road.\n\n", 3), (b"A road.\n" + bytes(600) + b"\n\n", 2)]
)
def test_damaged_characters_are_found_with_their_line(tmp_path: Path, content: bytes, record: int) -> None:
    (finding,) = check(tmp_path / "part", content).findings
    assert (finding.check, finding.severity, finding.record) == ("documents", "error", record)


def found(directory: Path, **files: str) -> list[Finding]:
    """What is found of text shards without a manifest."""
    for name, content in files.items():
        (directory / name.replace("_", "-").replace("eval-", "eval.")).write_text(content)
    return list(verify([str(directory)]).findings)


def documents(*words: str) -> str:
    return "".join(f"The town of {word} lies on a river. {LINE}. {word} has a road to the sea.\n\n" for word in words)


def test_an_eval_article_in_the_training_text_is_found(tmp_path: Path) -> None:
    (finding,) = found(
        tmp_path,
        part_00000_of_00002=documents("Dol", "Brod", "Maribor"),
        part_00001_of_00002=documents("Celje", "Ptuj", "Kranj"),
        eval_txt=documents("Koper", "Ptuj"),
    )
    assert (finding.check, finding.severity, finding.record) == ("eval_leak", "warning", 2)
    assert finding.file.endswith("part-00001-of-00002")
    assert "100% of eval article 2 of " in finding.message


def test_texts_that_are_there_many_times_are_a_leak_by_nature(tmp_path: Path) -> None:
    findings = found(
        tmp_path,
        part_00000_of_00001=documents(*["Dol", "Dol", "Brod", "Brod"]),
        eval_txt=documents("Dol"),
    )
    found_by = {(finding.check, finding.severity) for finding in findings}
    assert found_by == {("eval_leak", "note"), ("repeated_documents", "warning")}


# ---- eval articles that are in the training text in part, or changed

VARIANTS: Mapping[str, Callable[[str], str]] = {
    "less_a_line": lambda article: "\n".join(article.splitlines()[1:]),
    "in_lower_case": str.lower,
    "in_upper_case_without_commas": lambda article: article.upper().replace(",", ""),
    "one_word_changed": lambda article: article.replace(" river", " stream", 1),
    "the_first_half": lambda article: "\n".join(article.splitlines()[: article.count("\n") // 2 + 1]),
    "the_last_third": lambda article: "\n".join(article.splitlines()[article.count("\n") * 2 // 3 :]),
    "on_one_line": lambda article: article.replace("\n", " "),
    "between_others": lambda article: f"{_article(901)}\n{article}\n{_article(902)}",
    "lines_in_another_order": lambda article: "\n".join(reversed(article.splitlines())),
}


def _article(seed: int, lines: int = 12) -> str:
    """Lines of words drawn at random, as no other article has them."""
    chosen = random.Random(seed)
    return "\n".join(
        " ".join("".join(chosen.choices("abcdefgh", k=5)) for _ in range(24)).capitalize() + ", by the river ."
        for _ in range(lines)
    )


def _split(*articles: str) -> str:
    return "".join(f"{article}\n\n" for article in articles)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_eval_article_that_was_changed_is_found_in_the_training_text(variant: str, tmp_path: Path) -> None:
    article = _article(100)
    (finding,) = found(
        tmp_path,
        part_00000_of_00002=_split(*map(_article, range(20))),
        part_00001_of_00002=_split(_article(30), VARIANTS[variant](article), *map(_article, range(31, 50))),
        eval_txt=_split(*map(_article, range(98, 103))),
    )
    assert (finding.check, finding.severity, finding.record) == ("eval_leak", "warning", 2)
    assert finding.file.endswith("part-00001-of-00002")
    assert "% of eval article 3 of " in finding.message


def test_a_whole_eval_set_in_every_shard_is_found(tmp_path: Path) -> None:
    held_out = _split(*map(_article, range(1000, 1010)))
    shards = {
        f"part_0000{place}_of_00004": _split(*map(_article, range(40 * place, 40 * place + 40))) + held_out.lower()
        for place in (0, 1, 3, 2)
    }
    findings = [one for one in found(tmp_path, **shards, eval_txt=held_out) if one.check == "eval_leak"]
    assert {finding.severity for finding in findings} <= {"error", "warning"}
    assert sum(finding.count for finding in findings) == 10


@pytest.mark.parametrize("lines", [2, 6, 11])
def test_passages_that_the_corpus_repeats_are_no_leak(lines: int, tmp_path: Path) -> None:
    passage = _article(900, lines)
    articles = [_split(f"{_article(n, 12 - lines)}\n{passage}") for n in range(45)]
    findings = found(tmp_path, part_00000_of_00001="".join(articles[:40]), eval_txt="".join(articles[40:]))
    assert [finding.check for finding in findings] == ["profile"]  # its lines stand under all documents


def test_a_sentence_that_two_articles_share_is_no_leak(tmp_path: Path) -> None:
    text = _split(*map(_article, range(40)))
    assert found(tmp_path, part_00000_of_00001=text, eval_txt=_split(f"{_article(50)}\n{_article(7, 2)}")) == []
