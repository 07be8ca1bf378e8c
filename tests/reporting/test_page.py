"""The page of a data set: whole, harmless whatever is in the data, and the same for the same data."""

import dataclasses
import itertools
import re
import shutil
from pathlib import Path

import pytest
from data_sets.whole_builds import extract_text, make_build
from made_up_facts import made_up_facts
from read_pages import ReadPage

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.inspection.shown_text import shown
from maskmill.reporting import facts, page
from maskmill.reporting.charts import charts_of
from maskmill.reporting.facts import Facts
from maskmill.reporting.made_stages import MadeStage
from maskmill.verification.verifying import verify
from pipelines.building import build_report

_HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": "\"><img src=x onerror='alert(1)'>",
    "style": "</style><style>body{display:none}</style>",
    "template": "{{ 7 * 7 }}{% raw %}",
    "comment": "<!-- --><svg onload=alert(1)>",
    "link": "javascript:alert(1)",
    "right-to-left": "\u202etxt.exe\u2066\u200f",
    "controls": "a\0b\x1b[31mc\x7f\r",
    "surrogate": "half \ud83d a pair",
    "arabic": "الويكيبيديا",
    "long": "x" * 1_000_000,
}


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    text = extract_text(folder / "first", documents=12, eval_articles=2)
    return make_build(folder / "build", text, picked=10).root


@pytest.fixture(scope="module")
def verified(build: Path) -> Facts:
    return facts.collect(str(build), verification=verify([str(build)]))


@pytest.fixture(scope="module")
def content(verified: Facts) -> str:
    return page.render(verified)


def check_whole(content: str) -> ReadPage:
    read = ReadPage(content)
    assert not read.unclosed
    assert len(read.ids) == len(set(read.ids))
    referred = [
        name
        for _, attributes in read.tags
        for attribute in ("aria-labelledby", "aria-describedby")
        for name in attributes.get(attribute, "").split()
    ]
    referred += [a["href"][1:] for a in read.named("a")]
    assert set(referred) <= set(read.ids)
    return read


def test_the_page_is_whole_and_loads_nothing(content: str) -> None:
    read = check_whole(content)
    assert not read.named("script")
    assert not read.named("link")
    assert not read.named("img")
    assert not read.named("iframe")
    assert all(a["href"].startswith("#") for a in read.named("a"))
    assert not any("src" in attributes for _, attributes in read.tags)
    (policy,) = [meta["content"] for meta in read.named("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert len(read.named("caption")) == len(read.named("table")) > 0
    drawings = read.named("svg")
    assert len(drawings) > 0
    assert all(svg["role"] == "img" and svg["aria-labelledby"] for svg in drawings)
    assert len(read.named("desc")) == len(drawings)


def test_headings_are_in_order(content: str) -> None:
    levels = [int(tag[1]) for tag, _ in ReadPage(content).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_chart_has_its_figures(verified: Facts) -> None:
    charts = charts_of(verified)
    assert set(charts) >= {"documents-chart", "places", "row-lengths", "masks-at", "masks", "zipf"}
    for chart in charts.values():
        assert chart.rows
        assert all(len(row) == len(chart.columns) for row in chart.rows)
        assert "#00ab" not in chart.svg
        assert "DejaVu" not in chart.svg


@pytest.mark.builds
def test_the_same_data_gives_the_same_page(build: Path, content: str) -> None:
    assert page.render(facts.collect(str(build), verification=verify([str(build)]))) == content


@pytest.mark.parametrize("stage", ["", "text", "examples", "eval"])
def test_a_page_of_manifests_alone(build: Path, stage: str) -> None:
    collected = facts.collect(str(build / stage))
    assert "Not verified" in check_whole(page.render(collected)).text
    assert collected.rows == {}


@pytest.mark.builds
def test_a_damaged_build_fails_and_has_a_report(build: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(build, tmp_path / "build")
    shard = damaged / "text" / "eval.txt"
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(RunFailedError, match="what was built is damaged"):
        build_report.of_build(str(damaged), "auto")
    read = check_whole((damaged / "report.html").read_text())
    assert "found errors" in read.text
    assert str(shard) in read.text


@pytest.mark.builds
def test_what_is_damaged_is_left_out_and_said(build: Path, tmp_path: Path) -> None:
    damaged = shutil.copytree(build, tmp_path / "build")
    for shard in (damaged / "examples").glob("*.tfrecord"):
        content = bytearray(shard.read_bytes())
        content[200] ^= 1
        shard.write_bytes(content)
    collected, _ = build_report.collect(str(damaged), "auto")
    assert collected.samples.examples == ()
    assert "does not fit its checksum" in check_whole(page.render(collected)).text


def test_a_build_without_a_report(build: Path, tmp_path: Path) -> None:
    build_report.of_build(str(tmp_path / "there is none"), "off")
    assert build_report.collect(str(build), "none")[1] is None


@pytest.mark.parametrize(("verified", "size", "shards"), [("auto", 1, ""), ("auto", 10, "0"), ("auto", 4, "0-1")])
def test_large_data_is_verified_in_part(verified: build_report.Verified, size: int, shards: str) -> None:
    entries = [{"name": f"part-{number}", "kind": "train", "bytes": size * 100_000_000} for number in range(8)]
    stage = MadeStage(name="extract", directory="text", manifest={"shards": entries})
    assert build_report.shards_to_verify([stage], verified, is_local=True) == shards
    assert build_report.shards_to_verify([stage], verified, is_local=False) is None
    assert build_report.shards_to_verify([stage], "all", is_local=False) == ""


def test_nothing_to_report_on(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match=r"there is no manifest\.json here"):
        facts.collect(str(tmp_path))


@pytest.mark.builds
@pytest.mark.parametrize("name", _HOSTILE)
def test_foreign_text_is_shown_and_not_run(name: str) -> None:
    hostile = _HOSTILE[name]
    content = page.render(made_up_facts(hostile[:20_000]), made_up_facts("other"))
    content.encode()
    plain = ReadPage(page.render(made_up_facts("text"), made_up_facts("other")))
    read = check_whole(content)
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in plain.tags]
    assert not set(re.findall(r"[\0-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]", content))
    assert read.text.count(shown(hostile[:100])) > 20


@pytest.mark.builds
def test_a_data_set_beside_itself_and_another(verified: Facts) -> None:
    assert "Nothing: inputs, options, versions and all figures are the same." in page.render(verified, verified)
    changed = dataclasses.replace(
        verified,
        figures=(verified.figures[0]._replace(value=1.0), *verified.figures[1:]),
        options=(verified.options[0]._replace(value="another"), *verified.options[1:]),
    )
    read = check_whole(page.render(verified, changed))
    assert "figures that differ" in read.text
    assert f"Option of {verified.options[0].stage}: {verified.options[0].name}another" in read.text
    assert f"{verified.figures[0].group}: {verified.figures[0].name}" in read.text


def test_titles_of_what_was_left_out_are_on_the_page(verified: Facts) -> None:
    assert verified.documents is not None
    (redirects,) = [one for one in verified.documents.set_aside if one.reason == "redirects"]
    assert redirects.count > 5
    assert len(redirects.titles) == 5
    assert "AccessibleComputing" in redirects.titles
