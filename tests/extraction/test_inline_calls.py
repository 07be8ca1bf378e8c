"""Every inline call of the Latgalian Wikipedia, against the text that another program gives for it."""

import re
from pathlib import Path

import pytest
from command_runs.commands import IN_MEMORY
from oracles import field_expansion

from pipelines.commands import cli

DUMP = "ltgwiki-pages-articles-multistream.xml.bz2"
MOST_LOST = 0.01  # of the calls


def words(text: str) -> str:
    """A text without what extraction mends: spaces and punctuation."""
    return re.sub(r"[\W_]+", " ", text).strip().lower()


def lost(calls: list[field_expansion.Call], output: Path) -> list[field_expansion.Call]:
    """The calls whose text the document of their article does not have; articles without one do not count."""
    documents = "".join(path.read_text() for path in sorted(output.glob("part-*"))).split("\n\n")
    by_title = {title: f" {words(body)} " for title, _, body in (text.partition("\n") for text in documents)}
    return [c for c in calls if c.title in by_title and f" {words(c.text)} " not in by_title[c.title]]


@pytest.mark.builds
@pytest.mark.shared
def test_inline_calls_of_a_whole_wiki(shared: Path, tmp_path: Path) -> None:
    calls = field_expansion.inline_calls(shared / "data" / "dumps" / DUMP)
    assert len(calls) > 250
    missing = {}
    for mode in ("off", "unknown", "all"):
        output = tmp_path / mode
        flags = ("--num_eval_articles=0", "--keep_titles", f"--expand_templates={mode}", *IN_MEMORY)
        assert cli.main(["extract", f"--input={shared / 'data' / 'dumps' / DUMP}", f"--output={output}", *flags]) == 0
        missing[mode] = lost(calls, output)
    assert len(missing["all"]) <= MOST_LOST * len(calls), missing["all"]
    assert len(missing["all"]) <= len(missing["unknown"]) <= len(missing["off"])
