"""Fragments: their texts and tables, whatever the cut into units; texts that are gone are made again."""

import dataclasses
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_sets.shard_builds import (
    MANY_UNITS,
    ONE_UNIT,
    PLAIN,
    article,
    cut_batches,
    equal_sorted,
    make_fragments,
    shuffled,
    write_dump,
)
from data_sets.steps import run_step
from made_up import dump_files

from maskmill.errors import RunFailedError
from maskmill.inputs.units import UnitBatch
from maskmill.storage import completions, files
from maskmill.text_shards import fragments as fragment_step
from maskmill.text_shards.eval_membership import eval_hash
from maskmill.text_shards.fragments import (
    Fragment,
    drop_texts,
    extract_batch,
    fragment_key,
    in_order,
    read_paragraphs,
    read_ranges,
    read_rejected,
    read_tables,
)
from maskmill.text_shards.options import ExtractionOptions, QualityOptions
from transforms.text_shards import ExtractDocuments

SIGNING = dataclasses.replace(PLAIN, quality=QualityOptions(drop_duplicates=True, min_duplicate_words=5))

PAGES = [
    *[article(i, f"Town {i} lies on a river. " * (i % 4 + 1), f"It has {i} old bridges.") for i in range(1, 16)],
    dump_files.page(20, "Moved", "#REDIRECT [[Article 1]]", redirect="Article 1"),
    dump_files.page(21, "Talk:Article 1", "A remark.", namespace=1),
    dump_files.page(22, "Nothing", ""),
    article(23, "A BROKEN page."),
    article(24, "The last town lies by the sea."),
]
ARTICLE_IDS = [*range(1, 16), 24]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_dump(tmp_path_factory.mktemp("dump"), PAGES)
    path.write_bytes(path.read_bytes().replace(b"BROKEN", b"\xff"))
    return path


def whole_text(fragments: Sequence[Fragment], output: Path, options: ExtractionOptions = PLAIN) -> bytes:
    pieces = [(fragment, np.array([[0, fragment.size]])) for fragment in fragments]
    return b"".join(read_ranges(pieces, {"": options}, str(output)))


def test_a_row_for_each_document(dump: Path, tmp_path: Path) -> None:
    (fragment,) = make_fragments(dump, tmp_path, unit_bytes=ONE_UNIT)
    text = whole_text([fragment], tmp_path)
    table, starts = read_tables([fragment], str(tmp_path))
    assert fragment.documents == len(table) == len(ARTICLE_IDS)
    assert fragment.size == len(text)
    assert starts.tolist() == [0, len(table)]
    twice, _ = read_tables([fragment], str(tmp_path), extents=True)
    assert twice["extent"].tolist() == twice["size"].tolist() == table["size"].tolist()
    assert table["hash"].tolist() == [eval_hash(PLAIN.random_seed, str(number)) for number in ARTICLE_IDS]
    documents = [text[row["offset"] : row["offset"] + row["size"]] for row in table]
    assert b"".join(documents) == text
    assert documents[0] == b"Town 1 lies on a river.\n" * 2 + b"It has 1 old bridges.\n\n"
    assert table["sentences"].tolist() == [len(document.splitlines()) - 1 for document in documents]


def test_every_page_is_counted_and_a_bad_one_listed(dump: Path, tmp_path: Path) -> None:
    (fragment,) = make_fragments(dump, tmp_path, unit_bytes=ONE_UNIT)
    assert fragment.counts == {
        "read": 20, "documents": 16, "redirects": 1, "other_namespaces": 1, "empty": 1, "rejected": 1
    }  # fmt: skip
    (rejected,) = read_rejected(fragment, str(tmp_path))
    assert (rejected["input"], rejected["title"]) == (str(dump), "Article 23")
    assert "UTF-8" in rejected["reason"]


@pytest.mark.parametrize("options", [PLAIN, SIGNING])
def test_every_cut_into_units_gives_the_same_documents(options: ExtractionOptions, dump: Path, tmp_path: Path) -> None:
    (one,) = make_fragments(dump, tmp_path / "one", options, unit_bytes=ONE_UNIT)
    for unit_bytes in (100, MANY_UNITS):
        output = tmp_path / str(unit_bytes)
        many = make_fragments(dump, output, options, unit_bytes)
        assert len(many) > 5
        assert whole_text(many, output, options) == whole_text([one], tmp_path / "one", options)
        expected, _ = read_tables([one], str(tmp_path / "one"))
        table, starts = read_tables(many, str(output))
        for field in ("hash", "size", "sentences"):
            assert table[field].tolist() == expected[field].tolist()
        assert np.diff(starts).tolist() == [fragment.documents for fragment in many]


def test_what_other_content_gave_does_not_bear_the_key(tmp_path: Path) -> None:
    path = write_dump(tmp_path, PAGES[:3])
    info = files.find(str(path))
    assert info is not None
    (batch,) = cut_batches(path, ONE_UNIT)
    batch = dataclasses.replace(batch, files=(dataclasses.replace(batch.files[0], changed=info.changed),))
    path.write_bytes(path.read_bytes().replace(b"river", b"RIVER"))
    os.utime(path, ns=(0, info.changed + 1))
    with pytest.raises(RunFailedError, match=r"this input was changed while the command ran; run the same"):
        extract_batch(batch, PLAIN, str(tmp_path))
    os.utime(path, ns=(0, info.changed))
    assert extract_batch(batch, PLAIN, str(tmp_path)).documents == 3


def test_a_limit_ends_a_batch_early(dump: Path, tmp_path: Path) -> None:
    units = tuple(unit for batch in cut_batches(dump) for unit in batch.units)
    batch = dataclasses.replace(cut_batches(dump)[0], units=units, limit=3)
    fragment = extract_batch(batch, PLAIN, str(tmp_path))
    assert (fragment.documents, fragment.counts) == (3, {"read": 3, "documents": 3})
    assert whole_text([fragment], tmp_path).count(b"\n\n") == 3


def test_large_texts_are_written_in_blocks(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (at_once,) = make_fragments(dump, tmp_path / "at_once", unit_bytes=ONE_UNIT)
    monkeypatch.setattr(fragment_step, "_WRITE_BYTES", 50)
    (in_blocks,) = make_fragments(dump, tmp_path / "in_blocks", unit_bytes=ONE_UNIT)
    assert whole_text([in_blocks], tmp_path / "in_blocks") == whole_text([at_once], tmp_path / "at_once")


def text_files(output: Path) -> list[Path]:
    return sorted([*output.rglob("*.text"), *output.rglob("*.paragraphs")])


def test_ranges_of_a_lost_text_are_read_from_a_new_one(dump: Path, tmp_path: Path) -> None:
    (fragment,) = make_fragments(dump, tmp_path, unit_bytes=ONE_UNIT)
    text = whole_text([fragment], tmp_path)
    (path,) = text_files(tmp_path)
    path.unlink()
    ranges = np.array([[3, 10], [20, 40]])
    assert list(read_ranges([(fragment, ranges)], {"": PLAIN}, str(tmp_path))) == [text[3:10], text[20:40]]
    assert path.read_bytes() == text


def test_a_text_that_has_become_shorter_ends_the_run(dump: Path, tmp_path: Path) -> None:
    (fragment,) = make_fragments(dump, tmp_path, unit_bytes=ONE_UNIT)
    (path,) = text_files(tmp_path)
    os.truncate(path, fragment.size - 1)
    with pytest.raises(RunFailedError, match=rf"{path.name}: this working file was deleted or damaged while the run"):
        whole_text([fragment], tmp_path)


def test_paragraphs_come_in_pieces_and_again_where_they_are_lost(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fragment,) = make_fragments(dump, tmp_path, SIGNING, unit_bytes=ONE_UNIT)
    text = whole_text([fragment], tmp_path, SIGNING)
    (rows,) = read_paragraphs(fragment, SIGNING, str(tmp_path))
    assert len(rows) == 2 * 15 + 1
    paragraphs = [text[row["offset"] : row["offset"] + row["size"]] for row in rows]
    assert b"".join(paragraphs) == text.replace(b"\n\n", b"\n")  # all but the documents' blank lines
    for path in text_files(tmp_path):
        path.unlink()
    monkeypatch.setattr(fragment_step, "_PARAGRAPHS_AT_ONCE", 7)
    pieces = list(read_paragraphs(fragment, SIGNING, str(tmp_path)))
    assert [len(piece) for piece in pieces] == [7, 7, 7, 7, 3]
    assert np.concatenate(pieces).tobytes() == rows.tobytes()


def test_finished_fragments_are_not_extracted_again(dump: Path, tmp_path: Path) -> None:
    fragments = make_fragments(dump, tmp_path, SIGNING)
    assert len(text_files(tmp_path)) == 2 * len(fragments)
    drop_texts(fragments, str(tmp_path))
    assert text_files(tmp_path) == []
    assert make_fragments(dump, tmp_path, SIGNING) == fragments
    assert text_files(tmp_path) == []
    drop_texts(fragments, str(tmp_path))  # nothing to delete is no error
    assert read_tables(fragments, str(tmp_path))[0]["sentences"].sum() > 0


def changed(batch: UnitBatch, **fields: Any) -> UnitBatch:
    return dataclasses.replace(batch, **fields)


def test_the_key_is_of_all_that_the_text_depends_on(dump: Path) -> None:
    first, second = cut_batches(dump)[:2]
    keys = [
        fragment_key(PLAIN, first),
        fragment_key(SIGNING, first),
        fragment_key(PLAIN, second),
        fragment_key(PLAIN, changed(first, units=first.units + second.units)),
        fragment_key(PLAIN, changed(first, limit=3)),
        fragment_key(PLAIN, changed(first, templates="library")),
        fragment_key(PLAIN, changed(first, files=(dataclasses.replace(first.files[0], sha256="0" * 64),))),
        fragment_key(PLAIN, changed(first, files=(dataclasses.replace(first.files[0], date="2011-01-01"),))),
    ]
    assert len(set(keys)) == len(keys)
    # Neither the place of the file nor the number of the batch says what is in it.
    moved = changed(first, number=9, files=(dataclasses.replace(first.files[0], path="elsewhere.xml"),))
    assert fragment_key(PLAIN, moved) == keys[0]


def test_a_record_that_is_missing_is_an_error(dump: Path, tmp_path: Path) -> None:
    (fragment,) = make_fragments(dump, tmp_path, unit_bytes=ONE_UNIT)
    with pytest.raises(RunFailedError):
        read_rejected(dataclasses.replace(fragment, key="other"), str(tmp_path))


def test_a_text_of_2_gib_and_more_has_rows_of_64_bits(dump: Path, tmp_path: Path) -> None:
    (fragment,) = make_fragments(dump, tmp_path, unit_bytes=ONE_UNIT)
    rows = completions.read_table(str(tmp_path), fragment_step.KIND, fragment.key)
    rows["offset"] += 5 << 30
    completions.write_table(str(tmp_path), fragment_step.KIND, fragment.key, rows)
    large, _ = read_tables([dataclasses.replace(fragment, size=(5 << 30) + fragment.size)], str(tmp_path))
    assert large["offset"].tolist() == rows["offset"].tolist()
    assert large.itemsize == 32


@pytest.mark.builds
@pytest.mark.parametrize("options", [PLAIN, SIGNING])
def test_batches_in_any_order_give_the_same_fragments(options: ExtractionOptions, dump: Path, tmp_path: Path) -> None:
    expected = make_fragments(dump, tmp_path / "expected", options)
    assert in_order(shuffled(expected)) == expected
    step = ExtractDocuments(options=options, output=str(tmp_path / "beam"))
    counts = sum((Counter(fragment.counts) for fragment in expected), Counter(bytes=sum(f.size for f in expected)))
    in_any_order = equal_sorted(expected, lambda fragment: fragment.batch.number)
    run_step(shuffled(cut_batches(dump)), step, in_any_order, counts)
    found = {path.name: path.read_bytes() for path in (tmp_path / "beam").rglob("*.*") if path.is_file()}
    assert found == {path.name: path.read_bytes() for path in (tmp_path / "expected").rglob("*.*") if path.is_file()}
    assert len(found) == (4 if options is SIGNING else 3) * len(expected)
