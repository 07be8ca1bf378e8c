"""Every inline call of the Latgalian Wikipedia, against the text that another program gives for it."""

from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY
from oracles.field_expansion import Call, Extracted, inline_calls, sample

from pipelines.commands import cli

DUMP = "ltgwiki-pages-articles-multistream.xml.bz2"
MOST_LOST = 0.01  # of the calls


@pytest.mark.builds
def test_inline_calls_of_a_whole_wiki(shared: Path, tmp_path: Path) -> None:
    calls = inline_calls(shared / "data" / "dumps" / DUMP)
    assert len(calls) > 250
    lost = {}
    for mode in ("off", "unknown", "all"):
        output = tmp_path / mode
        flags = ("--num_eval_articles=0", "--keep_titles", f"--expand_templates={mode}", *IN_MEMORY)
        assert cli.main(["extract", f"--input={shared / 'data' / 'dumps' / DUMP}", f"--output={output}", *flags]) == 0
        extracted = Extracted(output)
        places = [extracted.place_of(call) for call in calls]
        assert places.count(None) <= MOST_LOST * len(calls)
        lost[mode] = [call for call, place in zip(calls, places, strict=True) if place == -1]
    assert len(lost["unknown"]) <= MOST_LOST * len(calls), lost["unknown"]
    assert len(lost["all"]) <= MOST_LOST * len(calls), lost["all"]
    assert len(lost["unknown"]) <= len(lost["off"])


def call_of(title: str, before: str, text: str, after: str) -> Call:
    return Call(title, "{{x}}", text, "", before, after, (before, after))


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (call_of("Lae", "'''Lae''' is ", "300 km", " from Mosbi, by the sea."), 5),
        (call_of("Lae", "Lae is ", "30 km", " from Mosbi, by the sea."), -1),
        # The text stands elsewhere, and not with that of the call's line.
        (call_of("Lae", "Lae is ", "sea", " from Mosbi, by the sea."), -1),
        # The text on one side of it is another.
        (call_of("Lae", "Once Lae was ", "300 km", " from Mosbi, by the sea."), 5),
        (call_of("Lae", "", "Port", ""), 27),
        (call_of("Lae", "A line of another section has ", "300 km", " as well."), None),
        (call_of("Nowhere", "Lae is ", "300 km", " from Mosbi."), None),
    ],
)
def test_a_call_is_looked_for_in_its_line(call: Call, place: int | None, tmp_path: Path) -> None:
    (tmp_path / "part-00000-of-00001").write_text("Lae\nLae is 300 km from Mosbi, by the sea.\n'Port'!\n\n")
    extracted = Extracted(tmp_path)
    assert extracted.place_of(call) == place
    if place == 5:
        assert extracted.shown(call, place) == "Lae is 300 km from Mosbi, by the sea. / 'Port'!\n".rstrip()


def test_a_sample_has_each_template_before_it_has_one_twice() -> None:
    calls = [(Call("T", f"{{{{{name}|{i}}}}}", "", "", "", "", ()), i) for name in ("Much", "few") for i in range(9)]
    drawn = sample(calls[:10], 5, 1)
    assert sorted(call.template for call, _ in drawn) == ["few", *["much"] * 4]
    assert drawn == sample(calls[:10], 5, 1) != sample(calls[:10], 5, 2)
