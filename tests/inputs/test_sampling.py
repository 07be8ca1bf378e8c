"""Samples of inputs: what is read is counted, and the parts stand for the whole."""

from pathlib import Path

import numpy as np
import pytest
from command_runs.commands import DUMP
from hypothesis import given
from hypothesis import strategies as st

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from transforms.inputs import multistream, sampling
from transforms.inputs.options import ReadOptions
from transforms.inputs.sampling import CountedReader


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_each_byte_that_is_read_counts_once(ranges: list[tuple[int, int]]) -> None:
    reader = CountedReader()
    for start, size in ranges:
        reader.note("a", start, start + size)
    assert reader.bytes_read == len({byte for start, size in ranges for byte in range(start, start + size)})


@pytest.mark.parametrize(
    ("content", "format", "records"),
    [
        (b"x</page><page>a<page>b</page>", "mediawiki", b"<page>a<page>b</page>"),
        (
            b"<page>a</page>\n<page>\n<text>b\nc",
            "mediawiki",
            b"<page>a</page>\n<page>\n<text>b\n</text></revision></page>",
        ),
        (b"<page>a</page>\n<page>\n<title>b", "mediawiki", b"<page>a</page>\n"),
        (b"no page", "mediawiki", b""),
        (b"b\n</doc>\n<doc >a\n</doc>\n<doc >b", "wikiextractor", b"<doc >a\n</doc>\n"),
        (b'"}\n{"text": "a"}\n{"te', "jsonl", b'{"text": "a"}\n'),
        (b"a\n\nb\n\nc", "text", b"b\n\n"),
        (b"one document", "text", b"one document"),
    ],
)
def test_a_part_is_cut_to_whole_records(content: bytes, format: str, records: bytes) -> None:
    assert sampling.whole_records(content, format, ReadOptions(), is_start=False) == records  # type: ignore[arg-type]


def test_pages_are_read_as_the_index_says() -> None:
    (file,) = files.match([str(DUMP)])
    reader = CountedReader()
    (kind,) = sampling.inputs_by_kind([file], "auto", reader)
    streams = multistream.read_streams(file, file.size, kind.header, (0,), reader)
    assert streams is not None
    assert (streams.pages.sum(), streams.pages[:, 0].sum()) == (206, 205)
    wanted = file.size // 2
    sample = multistream.sample_streams(kind, streams, wanted, (0,), ReadOptions(), reader)
    assert 0 < sum(part.text_measure for part in sample.parts) <= wanted
    pages = sum(part.content.count(b"<page>") for part in sample.parts)
    assert pages - 1 <= sum(part.document_measure for part in sample.parts) <= pages


@pytest.mark.parametrize(("taken", "least", "most"), [((0,), 0.95, 1.0), ((1,), 0.0, 0.0)])
def test_only_pages_of_the_taken_namespaces_count(taken: tuple[int, ...], least: float, most: float) -> None:
    (file,) = files.match([str(DUMP)])
    reader = CountedReader()
    (kind,) = sampling.inputs_by_kind([file], "auto", reader)
    streams = multistream.read_streams(file, file.size, kind.header, taken, reader)
    assert streams is not None
    sample = multistream.sample_streams(kind, streams, file.size, taken, ReadOptions(), reader)
    assert least <= sample.text_total / streams.sizes.sum() <= most


def test_an_index_of_another_dump_is_refused(tmp_path: Path) -> None:
    dump = tmp_path / "wiki-multistream.xml.bz2"
    dump.write_bytes(DUMP.read_bytes()[:100_000])
    index = tmp_path / "wiki-multistream-index.txt.bz2"
    reader = CountedReader()
    (file,) = files.match([str(dump)])
    for content, says in ((b"900000000:1:A\n", "is not the index of"), (b"BZh9 broken", "is damaged")):
        index.write_bytes(content)
        with pytest.raises(UnusableInputError, match=says):
            multistream.read_streams(file, 10**6, b"", (0,), reader)


@given(st.data())
def test_chosen_streams_fit_and_are_different(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 60))
    sizes = np.array(data.draw(st.lists(st.integers(1, 10_000), min_size=count, max_size=count)), np.int64)
    shares = np.array(data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    wanted = data.draw(st.integers(1, 100_000))
    chosen = multistream.choose_streams(sizes, sizes * np.maximum(shares, 0.01), wanted)
    assert len(set(chosen.tolist())) == len(chosen) > 0
    assert sizes[chosen].sum() <= max(wanted, sizes.min()) or len(chosen) == 1


def test_page_sizes_are_found_from_the_sizes_of_streams() -> None:
    draws = np.random.default_rng(1)
    pages = draws.integers(0, 100, (200, 3)).astype(np.float64)
    sizes = pages @ [500.0, 80.0, 1000.0] * draws.normal(1, 0.05, 200)
    assert multistream.page_sizes(sizes, pages) == pytest.approx([500, 80, 1000], rel=0.1)
