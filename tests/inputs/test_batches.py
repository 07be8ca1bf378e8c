"""Inputs with their checksums and dates, and their batches: the same whatever order Beam gives them in."""

import dataclasses
import gzip
import hashlib
import itertools
from pathlib import Path

import pytest
from data_sets.steps import equal_to, run_step
from made_up.dump_files import dump, page
from made_up.input_files import READING, write_file

from maskmill.errors import UnusableInputError
from maskmill.inputs import batches as batches_module
from maskmill.inputs import units
from maskmill.inputs.batches import digest_input, inputs_in_order, plan_batches, refuse_equal
from maskmill.inputs.found_inputs import DateEvidence
from maskmill.inputs.units import InputFile, Unit, UnitBatch
from maskmill.storage import files, progress
from transforms.inputs import CutIntoBatches, FindInputs

TEXTS = {"b.txt": b"Second.\n", "a.txt": b"First.\n\nOne more.\n", "c.txt": b"Third.\n"}


def input_file(folder: Path, name: str, content: bytes, date: str = "") -> InputFile:
    path = write_file(folder, content, name)
    return InputFile(path=path, size=len(content), sha256=hashlib.sha256(content).hexdigest(), date=date)


def whole(file: InputFile) -> Unit:
    return Unit(path=file.path, start=0, end=file.size, format="text", container="plain")


@pytest.fixture
def inputs(tmp_path: Path) -> list[InputFile]:
    """The files of TEXTS in their order, described."""
    return [input_file(tmp_path, name, content) for name, content in TEXTS.items()]


def test_the_date_is_the_one_named_or_the_dumps_own(tmp_path: Path) -> None:
    path = write_file(tmp_path, dump([page(1, "A", "x")]), "wiki-20200131.xml")
    info = files.FileInfo(path=path, size=files.size(path))
    assert digest_input((7, info), None) == (
        7,
        InputFile(path=path, size=info.size, sha256=files.sha256_of(path)),
        DateEvidence(wiki="https://test.wikipedia.org/wiki", named="2020-01-31"),
    )
    assert digest_input((7, info), "2001-02-03")[1].date == "2001-02-03"
    text = write_file(tmp_path, b"Just text.")
    assert digest_input((0, files.FileInfo(path=text, size=10)), None)[2] is None


def test_inputs_are_put_in_order_by_their_numbers(inputs: list[InputFile]) -> None:
    for shuffled in itertools.permutations((number, file, None) for number, file in enumerate(inputs)):
        assert inputs_in_order(shuffled) == inputs


def test_parts_of_a_dump_get_one_date(inputs: list[InputFile]) -> None:
    evidence = [DateEvidence(wiki="a", newest=f"2010-01-0{day}") for day in (2, 3)]
    digested = [(1, inputs[1], evidence[1]), (2, inputs[2], None), (0, inputs[0], evidence[0])]
    assert [file.date for file in inputs_in_order(digested)] == ["2010-01-03", "2010-01-03", ""]


def test_a_batch_is_a_unit_or_with_a_limit_a_file(inputs: list[InputFile], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_SMALLEST_UNIT", 2)
    monkeypatch.setattr(units, "_LARGEST_UNIT", 2)
    monkeypatch.setattr(batches_module, "_SMALL_FILE", 0)
    batches = plan_batches(inputs, input_format="auto", reading=READING, limit=None)
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert [(batch.files, batch.limit) for batch in batches if len(batch.units) != 1] == []
    cuts = {file.path: [b.units[0] for b in batches if b.files == (file,)] for file in inputs}
    assert {path: len(cut) for path, cut in cuts.items()} == {inputs[0].path: 1, inputs[1].path: 3, inputs[2].path: 1}
    for file in inputs:
        assert [u.start for u in cuts[file.path]] == [0, *(u.end for u in cuts[file.path][:-1])]
        assert cuts[file.path][-1].end == file.size
    limited = plan_batches(inputs, input_format="auto", reading=READING, limit=5)
    assert [(b.number, b.files, len(b.units), b.limit) for b in limited] == [
        (0, (inputs[0],), 1, 5),
        (1, (inputs[1],), 3, 5),
        (2, (inputs[2],), 1, 5),
    ]


def test_small_files_share_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches_module, "_SMALL_FILE", 12)
    monkeypatch.setattr(batches_module, "_BYTES_OF_SMALL_FILES", 30)
    monkeypatch.setattr(batches_module, "_MOST_FILES", 4)
    sizes = [10, 12, 8, 1, 13, 9, 13, *[2] * 6]
    files = [input_file(tmp_path, f"{k:02}.txt", b"x" * size) for k, size in enumerate(sizes)]
    batches = plan_batches(files, input_format="auto", reading=READING, limit=None)
    assert [[file.size for file in batch.files] for batch in batches] == [
        [10, 12, 8], [1], [13], [9], [13], [2] * 4, [2] * 2,
    ]  # fmt: skip
    assert [batch.number for batch in batches] == list(range(7))
    assert [file for batch in batches for file in batch.files] == files
    assert [unit for batch in batches for unit in batch.units] == [whole(file) for file in files]
    assert batches[0].parts == [(file, [whole(file)]) for file in files[:3]]
    limited = plan_batches(files, input_format="auto", reading=READING, limit=1)
    assert [(batch.files, batch.limit) for batch in limited] == [(batch.files, 1) for batch in batches]


def test_packed_files_count_as_what_they_are_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(b"x", mtime=0)
    monkeypatch.setattr(batches_module, "_SMALL_FILE", 4 * len(packed) - 1)
    files = [input_file(tmp_path, f"{k}.txt.gz", packed) for k in range(2)]
    assert len(plan_batches(files, input_format="auto", reading=READING, limit=None)) == 2
    monkeypatch.setattr(batches_module, "_SMALL_FILE", 4 * len(packed))
    assert len(plan_batches(files, input_format="auto", reading=READING, limit=None)) == 1


def test_an_input_of_another_format_is_one_sentence(inputs: list[InputFile]) -> None:
    with pytest.raises(UnusableInputError, match=r"b\.txt: this is no MediaWiki XML dump, it looks like a plain text"):
        plan_batches(inputs, input_format="mediawiki", reading=READING, limit=None)


def test_find_inputs_keeps_the_order_of_the_patterns(inputs: list[InputFile], tmp_path: Path) -> None:
    patterns = [f"{tmp_path}/b*", f"{tmp_path}/?.txt"]
    step = FindInputs(patterns=patterns, dump_date=None)
    run_step([files.match(patterns)], step, equal_to([[inputs[0], inputs[1], inputs[2]]]))


def test_find_inputs_gives_all_inputs_the_date_that_is_named(inputs: list[InputFile], tmp_path: Path) -> None:
    patterns = [f"{tmp_path}/*.txt"]
    step = FindInputs(patterns=patterns, dump_date="2001-02-03")

    def check(made: list[list[InputFile]]) -> None:
        assert [(Path(file.path).name, file.date) for file in made[0]] == [
            (name, "2001-02-03") for name in ("a.txt", "b.txt", "c.txt")
        ]

    run_step([files.match(patterns)], step, check)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_cut_into_batches(order: list[int], inputs: list[InputFile], tmp_path: Path) -> None:
    ordered = [inputs[k] for k in order]
    output = str(tmp_path / "out")
    step = CutIntoBatches(
        input_format="auto", reading=READING, limit=None, output=output, kinds=("templates", "extract")
    )
    together = UnitBatch(number=0, files=tuple(ordered), units=tuple(whole(file) for file in ordered))
    run_step([ordered], step, equal_to([together]))
    work = progress.Announced(pieces=1, bytes=sum(map(len, TEXTS.values())))
    assert progress.announced(output, "templates") == progress.announced(output, "extract") == work
    assert progress.announced(output, "clean") is None


def test_equal_inputs_are_refused_if_they_are_large_or_parts_of_a_dump(inputs: list[InputFile]) -> None:
    file = inputs[0]
    small = dataclasses.replace(file, path="copy")
    refuse_equal([file, small, small])
    for changes in ({"size": 2 << 20}, {"header": b"<mediawiki>"}):
        large = dataclasses.replace(file, **changes)
        with pytest.raises(UnusableInputError, match="copy: this input has the content of the input "):
            refuse_equal([inputs[1], large, dataclasses.replace(large, path="copy")])
        refuse_equal([large, dataclasses.replace(large, path="copy", sha256="other")])


def test_objects_are_equal_by_their_stores_checksum_and_size() -> None:
    one = InputFile(path="gs://b/a", size=2 << 20, sha256="", stored="crc 17")
    with pytest.raises(UnusableInputError, match="gs://b/c: this input has the content of the input gs://b/a"):
        refuse_equal([one, dataclasses.replace(one, path="gs://b/c", stored="crc 18")])
    refuse_equal([one, dataclasses.replace(one, path="gs://b/c", size=one.size + 1)])
    refuse_equal([one, dataclasses.replace(one, path="gs://b/c", stored="other 17")])
