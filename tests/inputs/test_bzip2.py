"""bzip2 from any byte on: every block once, whatever the cuts; damage is always seen."""

import bz2
import io
import itertools
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up.bzip2_writer import block, block_with_a_mark_in_it, checksum, stream
from properties import tries

from maskmill.errors import UnusableInputError
from maskmill.inputs.bzip2 import Bzip2Blocks
from maskmill.inputs.kernels import bzip2 as kernels


def read(packed: bytes, start: int = 0, end: int | None = None) -> bytes:
    """The blocks that bytes [start, end) of a file own."""
    blocks = Bzip2Blocks(
        io.BytesIO(packed), lambda: io.BytesIO(packed), "x.bz2", start, len(packed) if end is None else end
    )
    out = b""
    while not blocks.last_is_read:
        out += blocks.read()
    return out


def read_in_ranges(packed: bytes, cuts: list[int]) -> bytes:
    bounds = sorted({0, len(packed), *(cut for cut in cuts if cut < len(packed))})
    return b"".join(read(packed, *pair) for pair in itertools.pairwise(bounds))


texts = st.one_of(
    st.binary(min_size=1, max_size=300),
    st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=5), st.integers(1, 900)),
    st.builds(
        lambda runs: b"".join(bytes([byte]) * times for byte, times in runs),
        st.lists(st.tuples(st.sampled_from(b"abc"), st.integers(1, 600)), min_size=1, max_size=8),
    ),
)


@tries(300)
@given(texts)
@example(b"a")
@example(b"aaaa")
@example(b"ab" * 5000)
@example(bytes(range(256)) * 40)
@example(b"\0" * 100_000)
def test_what_bzip2_packs_is_unpacked(text: bytes) -> None:
    assert read(bz2.compress(text)) == text


@tries(60)
@given(st.binary(min_size=1, max_size=60))
def test_the_tests_own_writer_writes_bzip2(text: bytes) -> None:
    packed = stream([block(text), block(text[::-1], also_used=[0, 255], more_selectors=3)])
    assert bz2.decompress(packed) == text + text[::-1]
    assert read(packed) == text + text[::-1]


@pytest.mark.parametrize("level", [1, 5, 9])
def test_large_blocks_of_every_level(level: int) -> None:
    rng = random.Random(level)
    words = [bytes(rng.choices(b"etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(2000)]
    text = b" ".join(rng.choices(words, k=300_000)) + rng.randbytes(300_000) + b"=" * 3_000_000
    packed = bz2.compress(text, level)
    assert read(packed) == text
    assert read_in_ranges(packed, list(range(0, len(packed), 70_001))) == text


streams = st.lists(st.lists(st.binary(min_size=1, max_size=40), max_size=4).map(tuple), min_size=1, max_size=4)


@tries(150)
@given(streams, st.lists(st.integers(0, 1500), max_size=12))
def test_every_block_belongs_to_one_range(texts: list[tuple[bytes, ...]], cuts: list[int]) -> None:
    packed = b"".join(stream([block(text) for text in some], level=1 + k) for k, some in enumerate(texts))
    assert read_in_ranges(packed, cuts) == b"".join(itertools.chain(*texts)) == bz2.decompress(packed)


# ---- a mark that is none


@pytest.mark.parametrize("before", range(4))
def test_a_mark_by_chance_is_no_block(before: int) -> None:
    texts = [b"first", b"second", b"third"][:before]
    liar = block_with_a_mark_in_it(b"xyz")
    packed = stream([*(block(text) for text in texts), liar, block(b"last")])
    expected = b"".join(texts) + b"xyz" + b"last"
    assert bz2.decompress(packed) == expected
    for cut in range(1, len(packed)):
        assert read(packed, 0, cut) + read(packed, cut) == expected, cut
    assert read_in_ranges(packed, list(range(len(packed)))) == expected


# ---- damage


PACKED = stream([block(b"The quick brown fox"), block(b"jumps over")]) + stream([block(b"the lazy dog.")])


@pytest.mark.parametrize("cuts", [[], [len(PACKED) // 3, 2 * len(PACKED) // 3]], ids=["whole", "ranges"])
def test_every_flipped_bit_is_seen_or_does_no_harm(cuts: list[int]) -> None:
    expected = bz2.decompress(PACKED)
    harmless = 0
    for bit in range(len(PACKED) * 8):
        damaged = bytearray(PACKED)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = read_in_ranges(bytes(damaged), cuts)
        except UnusableInputError:
            continue
        assert found == expected, bit
        harmless += 1
    # Neither the padding after a stream nor a level that is large enough makes a difference; the checksum of a stream
    # that is cut is compared by another reader.
    assert harmless < 2 * (7 + 4) or cuts


@pytest.mark.parametrize("size", range(1, len(PACKED)))
def test_a_file_cut_off_anywhere_is_seen(size: int) -> None:
    if size == PACKED.index(b"BZh", 1):
        assert read(PACKED[:size]) == b"The quick brown foxjumps over"  # a whole stream: only its content can tell
        return
    with pytest.raises(UnusableInputError, match=r"x\.bz2: .*(cut off|damaged)"):
        read(PACKED[:size])
    with pytest.raises(UnusableInputError):
        read_in_ranges(PACKED[:size], [size // 2])


def test_the_message_names_the_byte_of_the_damage() -> None:
    first = block(b"good")
    packed = stream([first, block(b"bad", wrong_checksum=True), block(b"good")])
    byte = 4 + len(first[0]) // 8
    with pytest.raises(UnusableInputError, match=rf"x\.bz2: the bzip2 data at byte {byte} is damaged"):
        read(packed)
    # A range that starts with the damaged block tells it from a mark by chance.
    with pytest.raises(UnusableInputError, match=rf"x\.bz2: the bzip2 data at byte {byte} is damaged"):
        read(packed, byte, len(packed))
    # So does one that starts with the last block, of which a part is missing.
    packed = stream([first, block(b"cut off")])[:-15]
    with pytest.raises(UnusableInputError, match=f"it ends at byte {len(packed)} in the middle"):
        read(packed, byte)


@pytest.mark.parametrize("garbage", [b"garbage", b"BZ", b"BZh0" + b"x" * 20, b"BZh9 is no stream", b"\0" * 40])
def test_garbage_behind_the_last_stream_is_seen(garbage: bytes) -> None:
    with pytest.raises(UnusableInputError, match=r"x\.bz2: "):
        read(PACKED + garbage)


def test_randomised_blocks_are_refused_by_name() -> None:
    with pytest.raises(UnusableInputError, match=r"bzip2 0\.9\.0 or older"):
        read(stream([block(b"old", randomised=True)]))


@tries(400)
@given(st.data())
def test_random_bits_never_crash_the_decoder(data: st.DataObject) -> None:
    bits = block(data.draw(st.binary(min_size=1, max_size=30)))[0]
    start = data.draw(st.integers(48, len(bits) - 1))
    noise = data.draw(st.binary(max_size=400))
    mixed = bits[:start] + "".join(f"{byte:08b}" for byte in noise)
    mixed += "0" * (-len(mixed) % 8)
    packed = b"BZh9" + int(mixed, 2).to_bytes(len(mixed) // 8, "big")
    with pytest.raises(UnusableInputError):
        read(packed)


@pytest.mark.builds
def test_checksums_of_every_length() -> None:
    rng = random.Random(0)
    for size in range(40):
        plain = np.frombuffer(rng.randbytes(size) + b"\xff" * (-size % 8), np.uint8)
        assert kernels.checksum(plain, size, kernels.CRC_TABLES) == checksum(plain[:size].tobytes())
