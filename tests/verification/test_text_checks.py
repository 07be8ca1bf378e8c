"""Checks of text shards: what is counted, what is wrong with their characters, and what two of them share."""

import hashlib
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from properties import tries

from transforms.reading.byte_ranges import LocalRanges
from transforms.verification.findings import Finding
from transforms.verification.pieces import ExpectedFile, Piece
from transforms.verification.text_checks import TextResult, check_text, read_articles
from transforms.verification.verifying import verify

LINE = "It has a bridge over the river and an old town hall with a tower of stone and brick"


def check(path: Path, content: bytes, scratch: Path | None = None, split: str = "train") -> TextResult:
    path.write_bytes(content)
    piece = Piece(
        kind="text",
        path=str(path),
        split=split,
        shard=0,
        directory=str(path.parent),
        expected=ExpectedFile(),
        scratch=None if scratch is None else str(scratch),
    )
    return check_text(piece, LocalRanges())


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
    statistics = result.statistics
    assert statistics is not None
    assert (statistics.documents, statistics.empty_documents, statistics.lines) == (2, 1, 4)
    assert statistics.words == 2 + 2 + 2 * len(LINE.split())
    assert statistics.characters == len("Ä river.") + len("A sea.") + 2 * len(LINE)
    assert statistics.repeated_lines == ((2, LINE),)
    assert statistics.longest_line == len(LINE)
    assert result.counts == {"sentences": 4}
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
    assert (finding.check, finding.severity, finding.record) == ("eval_leak", "error", 2)
    assert finding.file.endswith("part-00001-of-00002")
    assert finding.found == "document 2 of eval.txt"


def test_texts_that_are_there_many_times_are_a_leak_by_nature(tmp_path: Path) -> None:
    findings = found(
        tmp_path,
        part_00000_of_00001=documents(*["Dol", "Dol", "Brod", "Brod"]),
        eval_txt=documents("Dol"),
    )
    assert [(finding.check, finding.severity) for finding in findings] == [("eval_leak", "warning")]


def test_shards_with_the_same_documents_are_found(tmp_path: Path) -> None:
    findings = found(
        tmp_path,
        part_00000_of_00003=documents("Dol", "Brod", "Maribor", "Izola"),
        part_00001_of_00003=documents("Celje", "Ptuj", "Kranj", "Piran"),
        part_00002_of_00003=documents("Celje", "Ptuj", "Kranj", "Bled"),
    )
    (finding,) = [finding for finding in findings if finding.check == "similar_shards"]
    assert (finding.severity, finding.found.split()[0]) == ("warning", "75%")


@pytest.mark.parametrize(
    ("edit", "record"),
    [(lambda md5s: md5s[::-1], 1), (lambda md5s: md5s[:1], 2), (lambda md5s: [md5s[0], "0" * 32], 2)],
    ids=["other_order", "too_short", "another"],
)
def test_a_list_of_other_eval_articles_is_found(tmp_path: Path, edit: object, record: int) -> None:
    assert callable(edit)
    articles = documents("Koper", "Ptuj").split("\n\n")[:2]
    md5s = edit([hashlib.md5(article.encode()).hexdigest() for article in articles])
    (tmp_path / "eval.md5").write_text("\n".join(md5s) + "\n")
    findings = found(tmp_path, part_00000_of_00001=documents("Dol"), eval_txt=documents("Koper", "Ptuj"))
    assert [(finding.check, finding.record) for finding in findings] == [("eval_list", record)]
