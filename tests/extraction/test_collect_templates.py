"""A dump's templates, collected by the batch: what a piece holds, which definition counts, any order of batches."""

import dataclasses
import importlib.metadata
import random
from pathlib import Path

import numpy as np
import pytest
from data_sets.steps import equal_to, run_step
from made_up import dump_files

from maskmill.errors import RunFailedError
from maskmill.extraction import template_library
from maskmill.extraction.template_library import TemplateLibrary, bind_library, collect_templates
from maskmill.inputs.mediawiki import read_header
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import InputFile, UnitBatch, plan_units
from maskmill.storage import completions, files
from transforms.extraction import CollectTemplates

WIKI = "https://test.wikipedia.org/wiki"
UNIT_BYTES = 300  # so that the dump is cut into many units


def template(number: int, name: str, text: str, **given: str) -> str:
    return dump_files.page(number, f"Template:{name}", text, namespace=10, **given)  # type: ignore[arg-type]


PAGES = [
    dump_files.page(1, "Article", "It calls {{first}}."),
    template(2, "First", "the first"),
    template(3, "Twice", "defined here"),
    dump_files.page(4, "Module:Code", "return {}", namespace=828, model="Scribunto"),
    template(5, "Styles.css", ".a {}", model="sanitized-css", schema="0.8"),
    template(6, "Sub/page: with colon", "čeština"),
    template(7, "Twice", "defined too late"),
    template(8, "Empty", ""),
    *[template(10 + i, f"Number {i}", f"number {i}" * i) for i in range(20)],
]
DEFINITIONS = {
    b"First": b"the first",
    b"Twice": b"defined here",
    b"Sub/page: with colon": "čeština".encode(),
    b"Empty": b"",
    b"#Code": b"return {}",
    **{f"Number {i}".encode(): f"number {i}".encode() * i for i in range(20)},
}


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[UnitBatch]:
    path = dump_files.dump_folder(tmp_path_factory, PAGES) / "dump.xml"
    info = files.FileInfo(path=str(path), size=path.stat().st_size)
    header = read_header(info.path)
    file = InputFile(
        path=info.path, size=info.size, sha256=files.sha256_of(info.path), date="2020-01-01", header=header
    )
    units = plan_units([info], unit_bytes=UNIT_BYTES)
    return [UnitBatch(number=i // 2, files=(file,), units=tuple(units[i : i + 2])) for i in range(0, len(units), 2)]


def found(output: Path, library: str) -> dict[bytes, bytes | None]:
    templates = TemplateLibrary(str(output), library)
    return {name: templates.find(WIKI, name) for name in DEFINITIONS}


def test_a_piece_holds_the_templates_of_its_batch(batches: list[UnitBatch], tmp_path: Path) -> None:
    whole = dataclasses.replace(batches[0], units=tuple(unit for batch in batches for unit in batch.units))
    piece = collect_templates(whole, ReadOptions(), str(tmp_path))
    assert piece.batch == whole
    rows = completions.read_table(str(tmp_path), template_library.PIECES, piece.key)
    text = (tmp_path / ".maskmill" / "templates" / f"{piece.key}.text").read_bytes()
    names = [
        b"First",
        b"Twice",
        b"Sub/page: with colon",
        b"Twice",
        b"Empty",
        *(b"Number %d" % i for i in range(20)),
        b"#Code",
    ]
    assert rows["hash"].tolist() == [template_library.name_hash(WIKI, name) for name in names]
    texts = [text[row["offset"] : row["offset"] + row["size"]] for row in rows]
    assert texts[:5] == [b"the first", b"defined here", "čeština".encode(), b"defined too late", b""]
    assert b"".join([*texts[:2], texts[-1], *texts[2:-1]]) == text, "they stand in the order of the pages"


def test_a_piece_is_made_once_and_again_when_its_text_is_gone(batches: list[UnitBatch], tmp_path: Path) -> None:
    piece = collect_templates(batches[0], ReadOptions(), str(tmp_path))
    text = tmp_path / ".maskmill" / "templates" / f"{piece.key}.text"
    content, written = text.read_bytes(), text.stat().st_mtime_ns
    assert collect_templates(batches[0], ReadOptions(), str(tmp_path)) == piece
    assert text.stat().st_mtime_ns == written
    text.unlink()
    assert collect_templates(batches[0], ReadOptions(), str(tmp_path)) == piece
    assert text.read_bytes() == content


def test_the_first_definition_counts_in_whatever_order_pieces_come(batches: list[UnitBatch], tmp_path: Path) -> None:
    pieces = [collect_templates(batch, ReadOptions(), str(tmp_path)) for batch in batches]
    assert len(pieces) > 5
    keys = set()
    for order in (pieces, pieces[::-1]):
        bound = bind_library(order, str(tmp_path))
        assert [dataclasses.replace(batch, templates="") for batch in bound] == batches
        keys |= {batch.templates for batch in bound}
    [library] = keys
    assert found(tmp_path, library) == DEFINITIONS
    index = completions.read_table(str(tmp_path), template_library.LIBRARY, library)
    assert (np.diff(index["hash"].astype(object)) > 0).all()
    record = template_library.read_library(str(tmp_path), library)
    assert (record["templates"], record["modules"]) == (len(DEFINITIONS) - 1, 1)
    assert record["pieces"] == [piece.key for piece in pieces]
    text = tmp_path / ".maskmill" / template_library.LIBRARY / f"{library}.text"
    assert len(text.read_bytes()) == sum(map(len, DEFINITIONS.values())), "each definition stands in it once"
    text.unlink()
    with pytest.raises(RunFailedError, match=r"\.text: this working file was deleted or damaged"):
        TemplateLibrary(str(tmp_path), library)


def test_modules_under_another_version_of_lua_are_others(
    batches: list[UnitBatch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [collect_templates(batch, ReadOptions(), str(tmp_path)) for batch in batches]
    keys = {bind_library(pieces, str(tmp_path))[0].templates}
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "99")
    keys.add(bind_library(pieces, str(tmp_path))[0].templates)
    assert len(keys) == len({TemplateLibrary(str(tmp_path), key).find(WIKI, b"#") for key in keys}) == 2


def test_what_a_library_lacks(batches: list[UnitBatch], tmp_path: Path) -> None:
    [bound] = bind_library([collect_templates(batches[0], ReadOptions(), str(tmp_path))], str(tmp_path))
    templates = TemplateLibrary(str(tmp_path), bound.templates)
    assert templates.find(WIKI, b"First") == b"the first"
    assert templates.find("https://other.wikipedia.org/wiki", b"First") is None
    assert templates.find(WIKI, b"Number 19") is None
    with pytest.raises(RunFailedError, match=r"template-library/0123\.json: this working file was deleted or damaged"):
        TemplateLibrary(str(tmp_path), "0123")


def test_a_dump_without_templates_has_an_empty_library(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_bytes(dump_files.dump(PAGES[:1]))
    info = files.FileInfo(path=str(path), size=path.stat().st_size)
    file = InputFile(path=info.path, size=info.size, sha256=files.sha256_of(info.path))
    batch = UnitBatch(number=0, files=(file,), units=tuple(plan_units([info])))
    [bound] = bind_library([collect_templates(batch, ReadOptions(), str(tmp_path))], str(tmp_path))
    assert TemplateLibrary(str(tmp_path), bound.templates).find(WIKI, b"First") is None


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffled_batches_get_the_same_library(seed: int, batches: list[UnitBatch], tmp_path: Path) -> None:
    pieces = [collect_templates(batch, ReadOptions(), str(tmp_path / "expected")) for batch in batches]
    expected = bind_library(pieces, str(tmp_path / "expected"))
    output = tmp_path / "text"
    shuffled = random.Random(seed).sample(batches, len(batches))
    step = CollectTemplates(reading=ReadOptions(), output=str(output))
    run_step(shuffled, step, equal_to(expected))
    [library] = {batch.templates for batch in expected}
    assert found(output, library) == DEFINITIONS
    for kind in (template_library.PIECES, template_library.LIBRARY):
        written = {path.name: path.read_bytes() for path in (output / ".maskmill" / kind).iterdir()}
        wanted = {path.name: path.read_bytes() for path in (tmp_path / "expected" / ".maskmill" / kind).iterdir()}
        assert written == wanted
