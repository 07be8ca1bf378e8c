"""HTML in a column of texts is refused, prose that speaks of a tag is not."""

import dataclasses
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from made_up.input_files import READING, document, write_file

from maskmill.errors import UnusableInputError
from maskmill.inputs.html_texts import is_html
from maskmill.inputs.units import plan_units, read_unit
from maskmill.storage import files

HTML = [
    "<p>The river runs to the sea.</p>",
    "<!DOCTYPE html>\n<html><head><title>Rivers</title></head><body>The river runs.</body></html>",
    '<div class="a">The river <b>runs</b>.<br/>It is long.</div>',
    "I rented this film. <br /><br />The plot is thin.",
    "The river runs.<br>It is long.",
    "  <!-- saved --><P ALIGN=center>The river runs.<P>It is long.",
    "<ul><li>One<li>Two</ul>",
    "The <a href='https://example.org/?a=1&b=2'>river</a> runs to the <em>sea</em>.",
    "H<sub>2</sub>O is water.",
    "Rivers\n<table>\n<tr><td>Rhine</td><td>1230</td></tr>\n</table>",
    "<h2>Course</h2>It runs.",
    "<span>Der Fluss</span> m\u00fcndet hier.",
    "\u5ddd\u306f<strong>\u9577\u3044</strong>\u3002",
    "<blockquote><p>It is long.</p></blockquote>",
    'See <img src="x.png" alt="a > b"> and <code>x</code> there.',
]
PROSE = [
    "The river runs to the sea.",
    "The <br> tag breaks a line, and <hr> draws one.",
    "Use <p> for a paragraph.",
    "If a <b and c> d, the sum is less.",
    "Write to <river@example.org> or see <https://example.org/a>.",
    "I <3 rivers, and 5 < 6 > 2.",
    "List<String> names = new ArrayList<>();",
    "#include <stdio.h>",
    "<unk> is the token of an unknown word, <s> begins one.",
    "He said: <i don't know>.",
    "<ref>Smith</ref> <nowiki>[[x]]</nowiki>",
    "",
]


@pytest.mark.parametrize("text", HTML)
def test_html_is_told(text: str) -> None:
    assert is_html(text)


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_not_taken_for_html(text: str) -> None:
    assert not is_html(text)


def write(folder: Path, format: str, texts: list[str | None]) -> str:
    if format == "jsonl":
        return write_file(folder, "".join(json.dumps({"text": text}) + "\n" for text in texts).encode(), "x.jsonl")
    path = folder / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": pyarrow.array(texts, pyarrow.string())}), path)
    return str(path)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize(
    ("texts", "html"),
    [
        (HTML, 15),
        ([HTML[0]], 1),
        (["The river runs."] * 6 + [None] * 40 + [HTML[3]] * 4, 4),
        (["The river runs."] * 8 + [HTML[3]], 0),
        (PROSE, 0),
        (["Write <b>bold</b> for bold letters."], 0),
        (["", None, " "], 0),
    ],
)
def test_a_column_of_html_is_refused_unless_its_format_is_named(
    format: str, texts: list[str | None], html: int, tmp_path: Path
) -> None:
    path = write(tmp_path, format, texts)
    if html:
        told = rf'the column "text" holds HTML \(in {html} of its first \d+ records\).*--input_format {format}'
        with pytest.raises(UnusableInputError, match=told):
            plan_units(files.match(path), reading=READING)
    else:
        assert plan_units(files.match(path), reading=READING)
    units = plan_units(files.match(path), reading=READING, input_format=format)
    found = [item for unit in units for item in read_unit(unit, READING)]
    assert [item for text, item in zip(texts, found, strict=True) if text] == [
        dataclasses.replace(document(text), language="") for text in texts if text
    ]
