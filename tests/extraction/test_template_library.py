"""maskmill extract --expand_templates: templates collected first, the same bytes however it runs, counts, going on."""

from pathlib import Path
from typing import Any

import pytest
from command_runs.commands import digests
from command_runs.extract_runs import extract_all, read_manifest
from made_up import dump_files

from maskmill.extraction.lua_process import Limits, LuaModules
from maskmill.inputs import units
from pipelines.commands import cli

pytestmark = pytest.mark.long


def article(number: int, text: str) -> str:
    return dump_files.page(number, f"Article {number}", text)


def template(number: int, name: str, text: str, **given: Any) -> str:
    return dump_files.page(number, f"Template:{name}", text, namespace=10, **given)


# Templates stand after the pages that call them, and in other units.
PAGES = [
    *[article(i, f"Town {i} has {{{{Inhabitants|{i}}}}} and {{{{river of|{i}}}}}.") for i in range(1, 29)],
    article(29, "Town 29 has {{Inhabitants|29}} and {{shout|river|29}}."),
    article(30, "It is {{nowrap|3 miles}} long{{unknown template}}, says {{Other|x}}."),
    article(31, "It is endless: {{Endless}}."),
    article(32, "It has no style{{Styles.css}}."),
    template(
        50, "Inhabitants", "{{#ifexpr: {{{1}}} > 20 | many | {{{1}}} }} people<noinclude>, as its page says</noinclude>"
    ),
    template(51, "River of", "#REDIRECT [[Template:Its river]]", redirect="Template:Its river"),
    template(52, "Its river", "the river {{{1}}}"),
    template(53, "Nowrap", "no rule was asked"),
    template(54, "Endless", "on {{Endless}}"),
    template(55, "Styles.css", ".a { color: red }", model="sanitized-css", schema="0.8"),
    template(56, "Inhabitants", "the second of a name"),
    template(57, "Shout", "{{#invoke:Shout|shout}}"),
    dump_files.page(
        58,
        "Module:Shout",
        "local function shout(args) return mw.ustring.upper(args[1] .. ' ' .. args[2]) end\n"
        "return { shout = function(frame) return shout(frame:getParent().args) end }",
        namespace=828,
        model="Scribunto",
    ),
]


COUNTS = {
    "definitions": 6, "modules": 1, "partly_expanded_pages": 1, "unknown_calls": 3, "kept_arguments": 1,
    "known_calls": 1, "expanded_calls": 59,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dump_files.dump_folder(tmp_path_factory, PAGES)


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    output = tmp_path_factory.mktemp("expected") / "text"
    assert extract_all(folder, output, "--expand_templates") == 0
    return digests(output, manifests=False)


def test_pages_are_expanded(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "text"
    assert extract_all(folder, output, "--expand_templates") == 0
    documents = (output / "part-00000-of-00001").read_text().split("\n\n")
    assert documents[0] == "Town 1 has 1 people and the river 1."
    assert documents[28] == "Town 29 has many people and RIVER 29."
    # Rules go before definitions.
    assert documents[29] == "It is 3 miles long, says x."
    assert documents[30].startswith("It is endless: on on on")
    assert documents[31] == "It has no style."
    assert read_manifest(output)["counts"]["templates"] == COUNTS
    read = read_manifest(output)["counts"]["extract"]
    assert read.pop("read") == sum(read.values()) == len(PAGES)
    assert "templates 6 definitions, 59 expanded calls" in capsys.readouterr().out


def test_without_it_nothing_is_collected(folder: Path, tmp_path: Path) -> None:
    assert extract_all(folder, tmp_path / "text", "--holes=keep") == 0
    assert (tmp_path / "text" / "part-00000-of-00001").read_text().startswith("Town 1 has and.")
    templates = {"definitions": 8, "unknown_calls": 62, "kept_arguments": 1, "known_calls": 1}
    assert read_manifest(tmp_path / "text")["counts"]["templates"] == templates
    assert not (tmp_path / "text" / ".maskmill" / "templates").exists()


@pytest.mark.builds
def test_a_module_is_given_up_the_same_on_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(LuaModules.__init__, "__defaults__", (Limits(call_instructions=200_000),))
    monkeypatch.setattr(units, "_SMALLEST_UNIT", 4000)
    loop = "return { f = function(frame) for _ = 1, tonumber(frame.args[1]) do end return frame.args[2] end }"
    # Two of three pages need too much at first, later none does.
    texts = [f"Town {i} has {{{{Busy|{10**6 if i % 3 and i < 90 else i}|people and {i} cows}}}}." for i in range(150)]
    pages = [
        *(article(i, text) for i, text in enumerate(texts, 1)),
        template(200, "Busy", "{{#invoke:Busy|f|{{{1}}}|{{{2}}}}}"),
        dump_files.page(201, "Module:Busy", loop, namespace=828, model="Scribunto"),
    ]
    (tmp_path / "dump.xml").write_bytes(dump_files.dump(pages))
    found = []
    for workers in (1, 2, 4):
        output = tmp_path / f"text{workers}"
        flags = ("--eval_fraction=0", "--expand_templates", f"--workers={workers}")
        assert cli.main(["extract", f"--input={tmp_path}/*.xml", f"--output={output}", *flags]) == 0
        found.append((digests(output, manifests=False), read_manifest(output)["counts"]["templates"]))
    assert found[0] == found[1] == found[2]
    assert found[0][1]["given_up_modules"] == 3
    assert "given up modules" in capsys.readouterr().out
    kept = (tmp_path / "text1" / "part-00000-of-00001").read_text()
    assert "Town 0 has people and 0 cows." in kept
    assert "Town 27 has people" not in kept, "given up"
    assert "Town 149 has people and 149 cows." in kept, "a later unit calls it again"


@pytest.mark.builds
def test_each_wiki_has_templates_of_its_own(tmp_path: Path) -> None:
    for name, meaning in (("a", "one"), ("b", "two")):
        pages = [article(1, "The wiki has word {{own word}}."), template(2, "Own word", meaning)]
        xml = dump_files.dump(pages).replace(b"//test.wikipedia", f"//{name}.wikipedia".encode())
        (tmp_path / f"{name}.xml").write_bytes(xml)
    assert extract_all(tmp_path, tmp_path / "text", "--expand_templates") == 0
    text = (tmp_path / "text" / "part-00000-of-00001").read_text()
    assert text == "The wiki has word one.\n\nThe wiki has word two.\n\n"


@pytest.mark.builds
def test_a_trial_finds_templates_behind_its_pages(folder: Path, tmp_path: Path) -> None:
    assert extract_all(folder, tmp_path / "text", "--expand_templates", "--max_documents=2") == 0
    text = (tmp_path / "text" / "part-00000-of-00001").read_text()
    assert text.splitlines()[::2] == ["Town 1 has 1 people and the river 1.", "Town 2 has 2 people and the river 2."]


@pytest.mark.builds
@pytest.mark.parametrize("lost", ["part-00000-of-00001", ".maskmill/templates", ".maskmill/template-library"])
def test_what_is_lost_is_made_again(lost: str, folder: Path, expected: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "text"
    assert extract_all(folder, output, "--expand_templates") == 0
    (output / "part-00000-of-00001").unlink()
    if lost.startswith("."):
        for path in (output / lost).iterdir():
            path.unlink()
    assert extract_all(folder, output, "--expand_templates") == 0
    assert digests(output, manifests=False) == expected


@pytest.mark.builds
def test_the_latgalian_wikipedias_own_templates(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "dumps").mkdir()
    name = "ltgwiki-pages-articles-multistream.xml.bz2"
    (tmp_path / "dumps" / f"{name}.xml").symlink_to(shared / "data" / "dumps" / name)
    assert extract_all(tmp_path / "dumps", tmp_path / "text", "--expand_templates") == 0
    templates = read_manifest(tmp_path / "text")["counts"]["templates"]
    assert (templates["definitions"], templates["partly_expanded_pages"]) == (347, 0)
    text = (tmp_path / "text" / "part-00000-of-00001").read_text()
    assert "\nJaponeja (japāņu: 日本) — solu vaļsteiba Azejā.\n" in text
    assert "\nŠauli (lītaunīku: Šiauliai; žemaišu: Šiaulē) — mīsts Lītovys zīmeļūs.\n" in text
