"""The stamp of machine code changes with the sources that it is made of, with numba's flags, and with nothing else."""

import importlib
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from maskmill.kernels import compiler, sources

WIKITEXT = "maskmill.extraction.kernels.wikitext"
TARGET = ("x86_64-unknown-linux-gnu", "x86-64-v3", "")


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Sources by module; an entry replaces what is on disk."""
    replaced: dict[str, bytes] = {}
    read = sources.source.__wrapped__
    monkeypatch.setattr(sources, "source", lambda name: replaced.get(name) or read(name))
    monkeypatch.setattr(sources, "reached", sources.reached.__wrapped__)
    return replaced


def stamp(module: str = WIKITEXT, target: tuple[str, str, str] = TARGET) -> str:
    return sources.stamp.__wrapped__(module, *target)


def test_a_module_reaches_what_it_imports_directly_or_not() -> None:
    reached = sources.reached(WIKITEXT)
    assert {"maskmill.extraction.kernels.render", "maskmill.kernels.compiler", "maskmill.errors"} <= reached
    assert "maskmill.sentences.kernels.boundaries" not in reached


@pytest.mark.parametrize("name", compiler.chosen_modules())
def test_all_modules_of_ours_that_are_imported_are_reached(name: str) -> None:
    """The sources are searched for imports; Python itself says here what they import."""
    module = importlib.import_module(name)
    ours = {
        value.__module__
        for value in vars(module).values()
        if str(getattr(value, "__module__", None)).startswith("maskmill.") and value.__module__ in sys.modules
    }
    assert ours <= sources.reached(name)


@pytest.mark.parametrize("name", [WIKITEXT, "maskmill.extraction.kernels.tags", "maskmill.kernels.dispatchers"])
def test_a_source_that_is_reached_changes_the_stamp(name: str, changed: dict[str, bytes]) -> None:
    before = stamp()
    changed[name] = sources.source(name) + b"\n"
    assert stamp() != before


def test_other_sources_do_not(changed: dict[str, bytes]) -> None:
    before = stamp()
    changed["maskmill.sentences.kernels.boundaries"] = b"\n"
    assert stamp() == before


@pytest.mark.parametrize("flag", ["BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "DEBUGINFO_DEFAULT"])
def test_a_flag_of_numbas_changes_the_stamp(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stamp()
    monkeypatch.setattr(numba.config, flag, 7)
    assert stamp() != before


def test_the_processor_and_the_libraries_change_the_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = {stamp(), stamp(target=("x86_64-unknown-linux-gnu", "znver5", "")), stamp(target=(*TARGET[:2], "+avx"))}
    monkeypatch.setattr(numba, "__version__", "0.68.99")
    stamps.add(stamp())
    monkeypatch.setattr(np, "__version__", "2.99.0")
    stamps.add(stamp())
    assert len(stamps) == 5


def test_a_patch_of_numpy_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    minor = np.__version__.rpartition(".")[0]
    before = stamp()
    monkeypatch.setattr(np, "__version__", f"{minor}.99")
    assert stamp() == before


def test_a_module_outside_of_the_package_has_its_own_source() -> None:
    assert sources.source(__name__) == Path(__file__).read_bytes()
