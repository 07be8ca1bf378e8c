"""The pictures of docs/pictures: charts say what the pages say, and nothing asks for anything elsewhere."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import ci_programs
import pytest
from conftest import ROOT

draw_pictures = ci_programs.load("draw_pictures")
PICTURES = ROOT / "docs" / "pictures"
CAST = PICTURES / "demo.cast"


def words(svg: str) -> list[str]:
    return [text.strip() for text in ET.fromstring(svg).itertext() if text.strip() and "{" not in text]


@pytest.mark.parametrize("name", draw_pictures.CHARTS)
def test_a_chart_has_the_figures_of_its_page(name: str) -> None:
    shown = words((PICTURES / f"{name}.svg").read_text())
    assert shown == words(draw_pictures.chart(name)), "draw it anew: python .ci/draw_pictures.py"
    assert len(shown) >= 6


def test_a_table_that_no_page_has_is_a_sentence() -> None:
    with pytest.raises(SystemExit, match="0 pages have a table with the head"):
        draw_pictures.table("| what | nobody | measured |")


def test_the_recording_is_asciinemas_and_the_picture_plays_it(tmp_path: Path) -> None:
    head, *events = map(json.loads, CAST.read_text().splitlines())
    assert head["version"] == 2
    assert {"width", "height"} <= head.keys()
    assert [kind for _, kind, _ in events] == ["o"] * len(events)
    times = [at for at, _, _ in events]
    assert times == sorted(times)
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for _, line in draw_pictures.screen(CAST)]
    assert lines[0] == "$ maskmill build examples/demo.yaml"
    assert [line.split()[0] for line in lines if "━" in line] == ["extract", "text", "examples", "verify"]
    assert "report:  demo/report.html (26 checks, nothing wrong)" in lines
    draw_pictures.write_played(CAST, tmp_path / "demo.svg")
    assert words((tmp_path / "demo.svg").read_text()) == words((PICTURES / "demo.svg").read_text())


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("bar 1\r\n\r\x1b[1Abar 2\x1b[K\r\n\x1b[J", ["bar 2", ""]),
        ("a\r\nb\r\n\r\x1b[2AA\x1b[K\r\n\x1b[Jc", ["A", "c"]),
        ("\x1b[1mbold J\x1b[0m K", ["\x1b[1mbold J\x1b[0m K"]),
    ],
)
def test_lines_that_are_written_over_have_their_last_text(printed: str, shown: list[str], tmp_path: Path) -> None:
    (tmp_path / "cast").write_text("{}\n" + json.dumps([1.0, "o", printed]))
    assert [line for _, line in draw_pictures.screen(tmp_path / "cast")] == shown


@pytest.mark.parametrize("path", sorted(PICTURES.iterdir()), ids=lambda path: path.name)
def test_a_picture_is_small_asks_for_nothing_and_names_no_machine(path: Path) -> None:
    assert path.stat().st_size < 150_000
    if path.suffix == ".png":
        assert path.read_bytes().startswith(b"\x89PNG")
        return
    text = path.read_text()
    assert not re.search(r"/(?:home|root|tmp|work|Users)/", text)
    if path.suffix == ".svg":
        assert not re.search(r"(?:href|src)=\"(?!#)|url\((?!#)|@import|<script", text)
        assert re.search("viewBox", text)
