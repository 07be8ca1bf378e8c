"""The checksums of bzip2 streams are compared however the file is cut: into units, and into the parts that are read."""

import bz2
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up.bzip2_writer import (
    END,
    MARK,
    block,
    block_with_a_mark_in_it,
    large_bzip2_stream,
    stream,
    with_wrong_checksum,
)
from made_up.input_files import write_file
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.inputs.batches import digest_input
from maskmill.inputs.bzip2 import Bzip2Streams, Mark, MarkFinder
from maskmill.inputs.units import plan_units
from maskmill.storage import files
from pipelines.commands import cli

WRONG = "the checksum of the stream that ends there is wrong"
ONE, TWO = block(b"The quick brown fox"), block(b"jumps over")
LIARS = [block_with_a_mark_in_it(b"xyz", mark) for mark in (MARK, END)]


# ---- the marks


def marks_of(bits: str) -> list[Mark]:
    """The marks that MarkFinder should find."""
    return [
        Mark(bit=bit, is_end=bits.startswith(END, bit), checksum=int(bits[bit + 48 : bit + 80], 2))
        for bit in range(len(bits) - 79)
        if bits.startswith((MARK, END), bit)
    ]


def found_in(data: bytes, cuts: list[int]) -> list[Mark]:
    """The marks that MarkFinder finds in data that is cut into parts."""
    bounds = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    finder = MarkFinder()
    return [mark for start, end in itertools.pairwise(bounds) for mark in finder.add(data[start:end])]


def as_bytes(bits: str) -> bytes:
    return int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:]


@pytest.mark.parametrize("mark", [MARK, END], ids=["block", "end"])
def test_a_mark_is_found_at_every_bit_whatever_part_it_is_cut_by(mark: str) -> None:
    checksum = f"{0x9ABCDEF1:032b}"
    for shift in range(8):
        for behind in range(-shift % 8, 30, 8):
            bits = "01101001"[:shift] + mark + checksum + "1" * behind
            data = as_bytes(bits)
            expected = [Mark(bit=shift, is_end=mark == END, checksum=0x9ABCDEF1)]
            assert marks_of(bits) == expected
            assert found_in(data, list(range(len(data)))) == expected
            for cut in range(len(data)):
                assert found_in(data, [cut]) == expected, (shift, behind, cut)


pieces = st.one_of(
    st.sampled_from([MARK, END, MARK[:47], END[1:], MARK[:31], END[:9]]),
    st.text("01", max_size=90),
    st.integers(0, 2**32 - 1).map(lambda number: f"{number:032b}"),
)


@tries(300)
@given(st.lists(pieces, min_size=1, max_size=12), st.lists(st.integers(0, 130), max_size=8))
def test_the_marks_are_those_of_a_plain_search(parts: list[str], cuts: list[int]) -> None:
    bits = "".join(parts)
    bits += "0" * (-len(bits) % 8)
    assert found_in(as_bytes(bits), cuts) == marks_of(bits)


# ---- the checksums


def compare(path: str, part_bytes: int) -> None:
    """Gives a file part by part to Bzip2Streams."""
    content = Path(path).read_bytes()
    streams = Bzip2Streams(path)
    for start in range(0, len(content), part_bytes):
        streams.add(content[start : start + part_bytes])


GOOD = {
    "one-block": [stream([ONE])],
    "two-blocks": [stream([ONE, TWO])],
    "empty": [stream([])],
    "several": [stream([ONE, TWO]), stream([]), stream([TWO]), stream([ONE])],
    "chance-mark-of-a-block": [stream([ONE, LIARS[0], TWO]), stream([TWO, ONE])],
    "chance-mark-of-an-end": [stream([ONE, LIARS[1], TWO]), stream([TWO, ONE])],
    "chance-marks-in-several": [stream([TWO]), stream(LIARS), stream([]), stream([]), stream([*LIARS, ONE])],
}


@pytest.mark.parametrize("part_bytes", [4, 50, 1 << 20])
@pytest.mark.parametrize("streams", GOOD.values(), ids=GOOD)
def test_each_stream_is_compared(streams: list[bytes], part_bytes: int, tmp_path: Path) -> None:
    bz2.decompress(b"".join(streams))  # they are right
    compare(write_file(tmp_path, b"".join(streams)), part_bytes)
    for k, good in enumerate(streams):
        bad = with_wrong_checksum(good)
        packed = b"".join([*streams[:k], bad, *streams[k + 1 :]])
        with pytest.raises(OSError, match="Invalid data stream"):
            bz2.decompress(bad)
        with pytest.raises(UnusableInputError, match=WRONG):
            compare(write_file(tmp_path, packed), part_bytes)


def test_a_file_that_is_no_bzip2_file_is_not_searched(tmp_path: Path) -> None:
    compare(write_file(tmp_path, b"BZ is no head. " + with_wrong_checksum(stream([ONE]))), 1 << 20)


# ---- the whole command


@pytest.fixture(scope="module")
def large_stream() -> bytes:
    """JSON lines in one bzip2 stream of more than 4 MB, which is cut into several units."""
    return large_bzip2_stream()


@pytest.mark.builds
def test_a_wrong_checksum_of_a_stream_of_several_units_is_refused(
    large_stream: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_file(tmp_path, large_stream, "good.jsonl.bz2")
    assert len(plan_units(files.match(path))) > 1
    digest_input((0, files.FileInfo(path=path, size=len(large_stream))), None)
    path = write_file(tmp_path, with_wrong_checksum(large_stream), "bad.jsonl.bz2")
    assert cli.main(["extract", f"--input={path}", f"--output={tmp_path / 'out'}"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"maskmill extract: {path}: the bzip2 data at byte {len(large_stream) - 5} is damaged ")
    assert WRONG in said
    assert [name.name for name in (tmp_path / "out").iterdir()] == [".maskmill"]
