"""Reading, verifying, indexing TFRecords and picking from them."""

import dataclasses
import gzip
import json
import random
import struct
from pathlib import Path

import hypothesis
import oracle_pretraining as oracle
import pytest
from hypothesis import strategies as st

from transforms.errors import UnusableInputError
from transforms.records import tfrecord
from transforms.records.eval_picking import pick_examples
from transforms.records.examples import write_examples
from transforms.masking.instances import MaskingOptions
from transforms.records.tfrecord import count_records, index_tfrecord, read_records
from transforms.tokenization.vocabulary import load_vocabulary

GOLD = oracle.DATA / "gold" / "pretraining"
PICKED = GOLD / "mlperf512.pick300.tfrecord.gz"


def write(path: Path, records: list[bytes]) -> str:
    path.write_bytes(b"".join(map(oracle.encode_tfrecord, records)))
    return str(path)


@pytest.fixture(scope="module")
def mlperf512(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The 1,721 examples that pick_eval_samples.py picked 300 of; that they are these, another test shows."""
    directory = tmp_path_factory.mktemp("mlperf512")
    (directory / "eval.txt").write_bytes(gzip.decompress((oracle.DATA / "gold/cleanup/eval.txt.gz").read_bytes()))
    case = json.loads((GOLD / "cases.json").read_text())["mlperf512"]
    fields = {field.name for field in dataclasses.fields(MaskingOptions)}
    output = str(directory / "examples")
    write_examples(
        [str(directory / "eval.txt")],
        [output],
        load_vocabulary(str(oracle.DATA / "vocab.txt")),
        MaskingOptions(**{name: value for name, value in case.items() if name in fields}),
    )
    return output


def test_the_reference_picks(mlperf512: str, tmp_path: Path) -> None:
    output = str(tmp_path / "picked")
    written = pick_examples(mlperf512, output, 300, max_seq_length=512, max_predictions_per_seq=76)
    assert oracle.read_examples(Path(output)) == oracle.read_examples(PICKED)
    assert written.size == Path(output).stat().st_size == 798766
    # Picking all of what the reference wrote, whose feature maps have another order, gives the same bytes.
    again = pick_examples(str(PICKED), str(tmp_path / "again"), 300)
    assert again.sha256 == written.sha256
    packed = pick_examples(str(PICKED), str(tmp_path / "again.gz"), 300)
    assert gzip.decompress(Path(packed.path).read_bytes()) == Path(output).read_bytes()


def test_several_files_are_read_as_one(mlperf512: str, tmp_path: Path) -> None:
    records = list(read_records(mlperf512))
    parts = [
        write(tmp_path / f"part{k}", records[start:end]) for k, (start, end) in enumerate([(0, 7), (7, 7), (7, 1721)])
    ]
    (tmp_path / "part0.gz").write_bytes(gzip.compress(Path(parts[0]).read_bytes()))
    whole = pick_examples(mlperf512, str(tmp_path / "whole"), 300)
    assert pick_examples(parts, str(tmp_path / "parts"), 300).sha256 == whole.sha256
    parts[0] = str(tmp_path / "part0.gz")
    assert pick_examples(parts, str(tmp_path / "packed"), 300).sha256 == whole.sha256


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_which_examples_are_picked(count: int, tmp_path: Path) -> None:
    records = [oracle.encode_example({"number": [k]}) for k in range(10)]
    pick_examples(write(tmp_path / "all", records), str(tmp_path / "some"), count)
    got = [example["number"][0] for example in oracle.read_examples(tmp_path / "some")]
    assert got == [int(k * (10 / count)) for k in range(count)]


def test_the_index_is_that_of_the_writer(mlperf512: str, tmp_path: Path) -> None:
    index_tfrecord(mlperf512, str(tmp_path / "index"))
    assert (tmp_path / "index").read_bytes() == Path(f"{mlperf512}.idx").read_bytes()
    (tmp_path / "x.gz").write_bytes(gzip.compress(Path(mlperf512).read_bytes()))
    index_tfrecord(str(tmp_path / "x.gz"), str(tmp_path / "packed"))
    assert (tmp_path / "packed").read_bytes() == (tmp_path / "index").read_bytes()


@hypothesis.settings(
    deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(
    records=st.lists(st.one_of(st.binary(max_size=3), st.integers(0, 5000).map(bytes)), max_size=30),
    block=st.sampled_from([16, 17, 100, 4096, 4 << 20]),
    room=st.sampled_from([1, 3, 1 << 16]),
)
def test_any_records_and_blocks(records: list[bytes], block: int, room: int, tmp_path: Path) -> None:
    path = write(tmp_path / "records", records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfrecord, "_BLOCK_BYTES", block)
        patch.setattr(tfrecord, "_BLOCK_RECORDS", room)
        assert list(read_records(path)) == records
        assert count_records(path) == len(records)
        index_tfrecord(path, str(tmp_path / "index"))
    expected, offset = [], 0
    for record in records:
        expected.append(f"{offset} {len(record) + 16}\n")
        offset += len(record) + 16
    assert (tmp_path / "index").read_text() == "".join(expected)


def test_a_plain_file_that_starts_like_gzip_is_read(tmp_path: Path) -> None:
    record = bytes(0x088B1F)  # its length has gzip's first bytes
    path = write(tmp_path / "records", [record])
    assert Path(path).read_bytes()[:3] == b"\x1f\x8b\x08"
    assert list(read_records(path)) == [record]


@pytest.mark.parametrize("end", [1, 11, 12, 15, 16 + 100 - 1, -1, -4, -5, -116 + 3])
def test_a_truncated_file_is_one_sentence(end: int, tmp_path: Path) -> None:
    path = write(tmp_path / "records", [bytes(100), bytes(100), bytes(100)])
    content = Path(path).read_bytes()[:end]
    Path(path).write_bytes(content)
    number = len(content) // 116
    sentence = rf"records: record {number} at byte {116 * number} is truncated; make or fetch the file again\."
    with pytest.raises(UnusableInputError, match=sentence):
        index_tfrecord(path, str(tmp_path / "index"))
    with pytest.raises(UnusableInputError, match=sentence):
        pick_examples(path, str(tmp_path / "picked"), 1)
    assert {p.name for p in tmp_path.iterdir()} == {"records"}


@pytest.mark.parametrize("place", range(116))
def test_any_damaged_byte_is_one_sentence(place: int, tmp_path: Path) -> None:
    path = write(tmp_path / "records", [bytes(100), bytes(100)])
    content = bytearray(Path(path).read_bytes())
    content[116 + place] ^= 1 << random.Random(place).randrange(8)
    Path(path).write_bytes(content)
    what = "a length" if place < 12 else "data"
    with pytest.raises(UnusableInputError, match=f"record 1 at byte 116 has {what} that does not fit its checksum"):
        list(read_records(path))


def test_a_length_that_no_file_has_is_one_sentence(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 40)
    (tmp_path / "records").write_bytes(length + struct.pack("<I", oracle.masked_crc(length)) + bytes(100))
    with pytest.raises(UnusableInputError, match=r"record 0 at byte 0 has 1,099,511,627,792 bytes; no reader takes"):
        list(read_records(str(tmp_path / "records")))


def test_a_damaged_gzip_file_is_one_sentence(tmp_path: Path) -> None:
    content = PICKED.read_bytes()
    for damaged in (content[:1000], content[:5000] + bytes(100) + content[5100:]):
        (tmp_path / "x.gz").write_bytes(damaged)
        with pytest.raises(UnusableInputError, match=r"x\.gz: (this gzip file is truncated or damaged|record \d+ at)"):
            count_records(str(tmp_path / "x.gz"))


def test_text_is_no_tfrecord(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a sentence that is no record\n" * 9)
    with pytest.raises(UnusableInputError, match="the file is damaged, or no TFRecord"):
        count_records(str(tmp_path / "text"))


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert count_records(str(tmp_path / "empty")) == 0


def test_more_examples_than_there_are_is_one_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "records", [oracle.encode_example({"a": [1]})] * 3)
    with pytest.raises(UnusableInputError, match=r"records: there are 3 examples, 4 cannot be picked; pick fewer, or"):
        pick_examples(path, str(tmp_path / "picked"), 4)
    with pytest.raises(UnusableInputError, match="0 examples to pick: this must be 1 or more"):
        pick_examples(path, str(tmp_path / "picked"), 0)
    assert not (tmp_path / "picked").exists()


def test_examples_of_another_length_are_one_sentence(tmp_path: Path) -> None:
    for options, sentence in (
        ({"max_seq_length": 128}, "record 0 has 512 values in input_ids, not 128; give the lengths"),
        ({"max_predictions_per_seq": 20}, "record 0 has 76 values in masked_lm_positions, not 20"),
    ):
        with pytest.raises(UnusableInputError, match=sentence):
            pick_examples(str(PICKED), str(tmp_path / "picked"), 3, **options)
    path = write(tmp_path / "records", [oracle.encode_example({"input_ids": [1, 2]})])
    with pytest.raises(UnusableInputError, match="record 0 has no such feature in input_mask, not 2"):
        pick_examples(path, str(tmp_path / "picked"), 1, max_seq_length=2)


@pytest.mark.parametrize(
    "record",
    [b"\x0b", b"\x10\x01", b"\x0a\x05", b"\xff" * 12, b"\x0a\x02\x10\x01", b"\x0a\x06\x0a\x04\x12\x02\x22\x00"],
)
def test_records_that_are_no_examples_are_one_sentence(record: bytes, tmp_path: Path) -> None:
    path = write(tmp_path / "records", [record])
    with pytest.raises(UnusableInputError, match=r"records: record 0 is not a tf\.train\.Example \("):
        pick_examples(path, str(tmp_path / "picked"), 1)


def test_features_of_every_kind_are_kept() -> None:
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    def entry(name: bytes, feature: bytes) -> bytes:
        return field(1, field(1, name) + field(2, feature))

    words = entry(b"words", field(1, field(1, b"ab") + field(1, b"")))
    packed = entry(b"packed", field(3, field(1, b"\x01\xac\x02")))
    loose = entry(b"loose", field(3, b"\x08\x01\x08\xac\x02"))
    floats = entry(b"floats", field(2, b"\x0d" + struct.pack("<f", 1.5) + field(1, bytes(8))))
    empty = entry(b"empty", b"")
    record = field(1, words + packed + loose) + field(1, floats + empty)
    features = parse_example(record)
    lengths = {name: len(feature) for name, feature in features.items()}
    assert lengths == {"empty": 0, "floats": 3, "loose": 2, "packed": 2, "words": 2}
    assert tfrecord.encode_example(features) == field(1, empty + floats + loose + packed + words)
