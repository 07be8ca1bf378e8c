"""Manifests that somebody has changed are summarized as far as they can be, or refused with a sentence."""

import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from data_sets.example_sets import setup_of, write_set
from hypothesis import given
from properties import SEEDED, tries

from maskmill.errors import UnusableInputError
from maskmill.inspection.summaries import summarize
from pipelines.commands import inspect_text

VALUES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3)
ODD = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("odd")
    write_set(made, setup_of(), picked=2)
    return made


def changed(value: Any, data: st.DataObject) -> Any:
    """A value from JSON, of which one part is another one."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)):
        name = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 6)):
            return {key: part for key, part in value.items() if key != name}
        return value | {name: changed(value[name], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [*value[:place], changed(value[place], data), *value[place + 1 :]]
    return data.draw(ODD)


@given(data=st.data())
@tries(20, suppress_health_check=SEEDED["suppress_health_check"])
def test_odd_manifests(data: st.DataObject, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = data.draw(st.sampled_from(["examples", "eval"]))
    file = folder / stage / "manifest.json"
    content = file.read_text()
    file.write_text(json.dumps(changed(json.loads(content), data)))
    try:
        for path in (folder, file, folder / stage):
            try:
                summary = summarize(str(path))
                json.dumps(summary.as_dict())
                inspect_text.print_summary(summary)
            except UnusableInputError as error:
                capsys.readouterr()
                print(error)
            assert capsys.readouterr().out.strip()
    finally:
        file.write_text(content)
