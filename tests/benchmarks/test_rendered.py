"""Text compared with rendered pages, on a page that is made up here: what counts as prose and as kept."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from benchmarks import rendered

WIKITEXT = """\
{{Infobox hill|height=90}}
'''Kallo''' is a hill.<ref>A note.</ref> It is {{height|m=90}} high, and {{lang|fi|kallio}} means rock.{{fact}} Few
climb it.

== Paths ==
* The first path, which begins at the church, leads to the top.
* [[North]]

== Works ==
* A poem of the hill
== References ==
* A book that nobody has read.
"""


def call(name: str) -> str:
    parts = {"parts": [{"template": {"target": {"wt": name}, "params": {}}}]}
    return f"typeof='mw:Transclusion' data-mw='{json.dumps(parts)}'"


HTML = f"""\
<!DOCTYPE html>
<html><head><title>Kallo</title></head><body><section>
<table about="#1" {call("Infobox hill")}><tr><td>Height<td>90 m</td></tr></table>
<p><b>Kallo</b> is a hill.<sup class="mw-ref reference">[1]</sup> It is <span about="#2" {call("height")}>90
metres</span> high, and <i about="#3" {call("lang")}>kallio</i> means rock.<sup about="#4" {call("fact")}>[citation
needed]</sup> Few climb it.</p></section>
<h2>Paths</h2><ul><li>The first path, which begins at the church, leads to the top.</li><li><a>North</a></li></ul>
<h2>Works</h2><ul><li>A poem of the hill</li></ul>
<h2>References</h2><ul><li>A book that nobody has read.</li></ul>
</body></html>
"""

RECORD = {
    "name": "Kallo",
    "namespace": {"identifier": 0},
    "in_language": {"identifier": "en"},
    "article_body": {"html": HTML, "wikitext": WIKITEXT},
}


def compare(text: str, monkeypatch: pytest.MonkeyPatch) -> rendered.Comparison:
    """The record compared with a text that an extractor might make of it."""
    comparison = rendered.Comparison()
    monkeypatch.setattr(comparison, "_words_of", lambda code, record, holes: rendered.find_words(text))
    comparison.add(RECORD)
    return comparison


def test_words_are_counted_by_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = compare("Kallo is a hill.\nIt is high, and kallio means rock.\nFew climb it, they say.", monkeypatch)
    figures = comparison.figures["en"]
    assert figures.words == {
        rendered.BESIDE: 3,  # Height, 90, m
        rendered.PARAGRAPH: 16,  # without the marks of the footnote and of what is not sourced
        rendered.OTHER: 3,  # the headings
        rendered.ITEM: 13,  # of both items
        rendered.APPENDIX: 11,  # and of a list of works
    }
    assert figures.kept[rendered.PARAGRAPH] == 14
    assert figures.kept[rendered.ITEM] == 0
    assert (figures.of_templates, figures.kept_of_templates) == (3, 1)
    assert (figures.ours, figures.ours_on_page) == (16, 14)


def test_sentences_dropped_for_a_hole_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"drop": "Kallo is a hill.\nFew climb it.", "keep": "Kallo is a hill.\nIt is high.\nFew climb it."}
    comparison = rendered.Comparison()
    monkeypatch.setattr(comparison, "_words_of", lambda code, record, holes: rendered.find_words(texts[holes]))
    comparison.add(RECORD)
    figures = comparison.figures["en"]
    assert figures.dropped == {rendered.PARAGRAPH: 9}  # "It is 90 metres high, and kallio means rock."
    assert figures.kept[rendered.PARAGRAPH] == figures.words[rendered.PARAGRAPH] == 7


def test_words_are_aligned_in_their_order() -> None:
    page = list("abcdefgabx")
    assert rendered.align(list("abcefgqab"), page) == [0, 1, 2, -1, 3, 4, 5, 7, 8, -1]
    assert rendered.align([], page) == [-1] * 10
    assert rendered.align(list("gabc"), list("abc")) == [1, 2, 3]


def test_a_word_of_a_heading_and_of_the_prose_after_it_is_the_latter() -> None:
    page = rendered.RenderedPage(words=list("nabxabcd"), kinds=[rendered.PARAGRAPH, *[rendered.OTHER] * 3, *[0] * 4])
    assert rendered.align(list("nabcd"), page.words) == [0, 1, 2, -1, -1, -1, 3, 4]
    assert rendered.find_places(list("nabcd"), page) == [0, -1, -1, -1, 1, 2, 3, 4]


def test_the_command_reads_plain_and_packed_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = json.dumps(RECORD).encode() + b"\n"
    plain, packed = tmp_path / "a.ndjson", tmp_path / "b.json.tar.gz"
    plain.write_bytes(line)
    with tarfile.open(packed, "w:gz") as archive:
        member = tarfile.TarInfo("b_0.ndjson")
        member.size = 2 * len(line)
        archive.addfile(member, io.BytesIO(2 * line))
    rendered.main([str(plain), str(packed)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split()[:3] == ["en", "3", "48"]
    assert printed[2].split()[1:] == printed[1].split()[1:]
