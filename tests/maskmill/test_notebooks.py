"""What a notebook shows of data sets, rows and findings: the facts, and hostile text as text."""

import html.parser
from pathlib import Path

import pytest
from command_runs.commands import DUMP, IN_MEMORY, VOCAB
from reporting.report_pages import HOSTILE

import maskmill
from maskmill.inspection.decoding import DecodedExample, DecodedPiece, PieceRole
from maskmill.notebooks import table
from maskmill.verification.findings import CheckOutcome, Finding, Verification
from pipelines.commands import cli

TAGS = {"bdi", "caption", "div", "mark", "p", "small", "span", "style", "table", "tbody", "td", "th", "tr"}
ATTRIBUTES = {"class", "dir", "scope", "style"}


class Shown(html.parser.HTMLParser):
    """The text that a browser shows; fails for an element or an attribute that is none of ours."""

    def __init__(self, shown: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(shown)
        self.text = " ".join("".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES

    def handle_data(self, data: str) -> None:
        self.texts.append(data + ("" if self.cdata_elem is None else "\n"))


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    text, examples = folder / "text", folder / "examples"
    flags = (*IN_MEMORY, "--quiet")
    assert cli.main(["extract", f"--input={DUMP}", f"--output={text}", *flags]) == cli.DONE
    sizes = ("--max_seq_length=64", "--max_predictions_per_seq=10", "--dupe_factor=1")
    command = ["examples", f"--input={text}", f"--output={examples}", f"--vocab_file={VOCAB}", *sizes, *flags]
    assert cli.main(command) == cli.DONE
    return examples


@pytest.mark.long
def test_a_loader_shows_what_it_reads_and_gives(examples: Path) -> None:
    with maskmill.open(examples, batch_size=32) as data:
        shown = Shown(data._repr_html_()).text
        (data_set,) = data.data_sets
    assert str(examples) in shown
    assert f"samples{data_set.samples:,} in 1 file" in shown
    assert "formattfrecord" in shown
    assert "at most 10, stored" in shown
    assert "30,522 ids" in shown
    assert "a batchinput_idsint32[32, 64]" in shown


@pytest.mark.long
def test_a_row_shows_its_masks(examples: Path) -> None:
    opened = maskmill.open_examples(examples)
    row = opened.decoded(0)
    shown = row._repr_html_()
    for role, mark in (("masked", "[MASK]"), ("kept", "class='kept'"), ("random", "class='random'")):
        assert shown.count(f"<mark><small>{mark}" if role == "masked" else mark) == sum(
            piece.role == role for piece in row.pieces
        )
    assert f"Record 1 of {row.file}, label: {row.label}" in Shown(shown).text
    opened.close()


@pytest.mark.long
def test_findings_are_a_table_and_no_findings_a_sentence(examples: Path) -> None:
    right = maskmill.verify(examples)
    assert Shown(right._repr_html_()).text.startswith(f"{examples}: right, ")
    finding = Finding("crc", "error", "part", 3, "part, record 3: it is damaged.")
    outcome = {"crc": CheckOutcome(check="crc", looked_at=1, findings=1)}
    wrong = Verification(paths=["data"], findings=[finding], outcomes=outcome, results=[], read_bytes=0)
    assert Shown(wrong._repr_html_()).text == "data: wrong, 1 checkserrorcrcpart, record 3: it is damaged.1"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_text(hostile: str) -> None:
    roles: tuple[PieceRole, ...] = ("text", "special", "masked", "kept", "random")
    pieces = tuple(
        DecodedPiece(position=at, id=at, text=hostile, surface=hostile, role=role, label=hostile)
        for at, role in enumerate(roles)
    )
    row = DecodedExample(file=hostile, record=1, sample=0, pieces=pieces, width=8, label=hostile)
    finding = Finding(hostile, "error", hostile, None, hostile)
    found = Verification(paths=[hostile], findings=[finding], outcomes={}, results=[], read_bytes=0)
    for shown in (row._repr_html_(), found._repr_html_(), table(hostile, [(hostile, hostile)])):
        text = Shown(shown).text
        assert "\u202e" in hostile or " ".join(hostile.split()) in text
