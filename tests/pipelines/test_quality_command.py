"""`extract` with the quality filters: counts, the same bytes in every kind of run, re-runs and bad flags."""

import bz2
import random
import sys
from pathlib import Path

import pytest
from command_runs.commands import DUMP, digests
from command_runs.extract_runs import extract, read_manifest
from made_up import dump_files

from maskmill.inputs import units

pytestmark = pytest.mark.long

ALL = (
    "--min_characters=60", "--min_letter_share=0.4", "--max_repeated_share=0.3", "--max_list_share=0.5",
    "--drop_stubs", "--drop_duplicates", "--near_duplicate_threshold=0.8", "--lists=keep",
)  # fmt: skip
WORDS = ("river", "stone", "morning", "bridge", "garden", "winter", "music", "letter", "window", "story", "harbour")


def paragraph(number: int) -> str:
    """A paragraph of five sentences that no other number has."""
    draw = random.Random(number)
    return " ".join(f"The {' '.join(draw.choice(WORDS) + str(number) for _ in range(9))} ends." for _ in range(5))


def article(number: int, *paragraphs: str) -> str:
    """A page of these paragraphs."""
    return dump_files.page(number, f"Article {number}", "\n\n".join(paragraphs))


# Page 50 + k has, between paragraphs of its own, two of page k: one repeated, one with another last word.
NORMAL = [article(i, paragraph(3 * i), paragraph(3 * i + 1), "Short.", paragraph(3 * i + 2)) for i in range(1, 41)]
REPEATING = [
    article(
        i + 50,
        paragraph(1000 + i),
        paragraph(3 * i).upper(),
        paragraph(3 * i + 1).removesuffix("ends.") + "stops.",
        "Short.",
        paragraph(2000 + i),
    )
    for i in range(1, 21)
]
ODD = [
    article(100, paragraph(3), paragraph(6)),  # only duplicates
    article(101, "Too little text."),
    article(102, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34."),
    article(103, *[paragraph(5000)] * 3),
    article(104, "\n".join(f"* the river of number {i}" for i in range(20))),
    article(105, paragraph(5001), "{{geo-stub}}"),
]
PAGES = [*NORMAL, *ODD, *REPEATING]
COUNTS = {
    "extract": {
        "read": 66, "documents": 61, "too_short": 1, "few_letters": 1, "repeated_lines": 1, "list_pages": 1,
        "stub_pages": 1,
    },
    # The groups of pages have 120, 2 and 80 paragraphs. `Short.` is too short to count as a duplicate.
    "paragraphs": {"read": 202, "exact_duplicates": 22, "near_duplicates": 20, "emptied_documents": 1},
}  # fmt: skip


def filter_counts(output: Path) -> dict[str, dict[str, int]]:
    """The manifest's counts of documents and paragraphs, as COUNTS has them."""
    return {step: counts for step, counts in read_manifest(output)["counts"].items() if step in COUNTS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the dump of PAGES."""
    return dump_files.dump_folder(tmp_path_factory, PAGES)


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sha256 of each file that `extract` with all filters makes of PAGES."""
    output = tmp_path_factory.mktemp("expected") / "text"
    assert extract(folder, output, "--num_eval_articles=6", "--shard_size_mb=0.02", *ALL) == 0
    assert filter_counts(output) == COUNTS
    return digests(output, manifests=False)


def test_dropped_text_is_gone_and_the_first_duplicate_is_kept(folder: Path, tmp_path: Path) -> None:
    assert extract(folder, tmp_path / "text", "--eval_fraction=0", "--keep_titles", *ALL) == 0
    assert filter_counts(tmp_path / "text") == COUNTS
    text = (tmp_path / "text" / "part-00000-of-00001").read_text()
    documents = dict(d.split("\n", 1) for d in text.split("\n\n") if d)
    assert len(documents) == read_manifest(tmp_path / "text")["counts"]["train"]["documents"] == 60

    def lines(*paragraphs: str) -> str:
        return "\n".join(p.replace("ends. ", "ends.\n") for p in paragraphs)

    assert documents["Article 7"] == lines(paragraph(21), paragraph(22), "Short.", paragraph(23))
    assert documents["Article 57"] == lines(paragraph(1007), "Short.", paragraph(2007))
    assert not {f"Article {i}" for i in range(100, 106)} & set(documents)
    assert text.count("\n") == read_manifest(tmp_path / "text")["counts"]["train"]["sentences"] + 60


@pytest.mark.builds
@pytest.mark.parametrize("unit_bytes", [500, 3000])
def test_every_cut_into_units_gives_the_same_bytes(
    unit_bytes: int, folder: Path, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "_SMALLEST_UNIT", unit_bytes)
    output = tmp_path / "text"
    assert extract(folder, output, "--num_eval_articles=6", "--shard_size_mb=0.02", *ALL) == 0
    assert digests(output, manifests=False) == expected
    assert filter_counts(output) == COUNTS
    assert len(list((output / ".maskmill" / "extract").glob("*.json"))) > 5


@pytest.mark.builds
def test_filters_that_drop_nothing_change_nothing(tmp_path: Path) -> None:
    # The filter of duplicates splits the sample's text paragraph by paragraph.
    (tmp_path / "sample.xml").write_bytes(bz2.decompress(DUMP.read_bytes()))
    ineffective = (
        "--min_characters=1",
        "--drop_duplicates",
        "--near_duplicate_threshold=1",
        "--min_duplicate_words=100000",
    )
    assert extract(tmp_path, tmp_path / "plain", "--eval_fraction=0.1") == 0
    assert extract(tmp_path, tmp_path / "filtered", "--eval_fraction=0.1", *ineffective) == 0
    assert digests(tmp_path / "filtered", manifests=False) == digests(tmp_path / "plain", manifests=False)


@pytest.mark.builds
def test_a_lost_shard_is_made_again_from_the_old_decisions(
    folder: Path, expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "text"
    flags = ("--num_eval_articles=6", "--shard_size_mb=0.02", *ALL)
    assert extract(folder, output, *flags) == 0
    # The signatures, half a kilobyte for each paragraph, are deleted when the shards are written.
    assert not list((output / ".maskmill").rglob("*.paragraphs"))
    (output / "part-00001-of-00004").unlink()
    monkeypatch.setattr("maskmill.text_shards.duplicate_search.hash_paragraphs", None)
    assert extract(folder, output, *flags) == 0
    assert digests(output, manifests=False) == expected


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--min_characters=0",), "--min_characters must be 1 or more"),
        (("--near_duplicate_threshold=1.5",), "--near_duplicate_threshold must be above 0"),
        (
            ("--compat=mlperf", "--drop_stubs"),
            "--drop_stubs drops what the reference keeps; leave out --compat mlperf.",
        ),
        (("--compat=mlperf", "--max_list_share=0.5"), "--max_list_share drops what the reference keeps"),
        (("--min_characters=1000000",), "No article is left"),
    ],
)
def test_unusable_flags_are_refused(
    flags: tuple[str, ...], message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert extract(folder, tmp_path / "out", *flags) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors


def test_the_filter_of_stubs_needs_a_dump_with_templates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.xml").write_text("One document.\n")
    assert extract(tmp_path, tmp_path / "out", "--input_format=text", "--drop_stubs") == 2
    assert "--drop_stubs needs the templates of a dump" in capsys.readouterr().err


def test_near_duplicates_need_the_extra_quality(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "datasketch", None)
    assert extract(folder, tmp_path / "out", "--near_duplicate_threshold=0.8") == 2
    assert "needs datasketch; install it: pip install 'maskmill[quality]'." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
