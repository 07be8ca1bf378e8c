"""TFRecords that are damaged or none, and mistakes in the commands that read or write them."""

import bz2
import gzip
import lzma
import struct
from collections.abc import Mapping

from oracles import pretraining as oracle

from mistakes.table import Mistake

RECORDS = [
    oracle.encode_example({"input_ids": [k] * 8, "input_mask": [1] * 8, "segment_ids": [0] * 8}) for k in range(4)
]
PLAIN = b"".join(map(oracle.encode_tfrecord, RECORDS))
SIZE = len(PLAIN) // len(RECORDS)  # of a record with its frame


def flipped(content: bytes, place: int) -> bytes:
    """The content with one bit of a byte flipped."""
    damaged = bytearray(content)
    damaged[place] ^= 4
    return bytes(damaged)


def with_length(length: int) -> bytes:
    """A record of a length that it does not have, with the right checksum of the length."""
    coded = struct.pack("<Q", length)
    return coded + struct.pack("<I", oracle.masked_crc(coded)) + bytes(100)


_NO_RECORD = "has (a length|data) that does not fit its checksum: the file is damaged, or no TFRecord"
_TOO_LARGE = "has [0-9,]+ bytes; no reader takes so large a record"
_PACKED = "this file is packed with {}; a TFRecord is read plain or gzipped, so unpack it first"
_GZIP = r"this gzip file is truncated or damaged \(.*\); make or fetch it again"

# What both `index` and `pick-eval` say of a file x.
DAMAGED: Mapping[str, tuple[bytes, str]] = {
    "cut-in-a-length": (PLAIN[: SIZE + 5], rf"record 2 at byte {SIZE} is truncated; make or fetch the file again"),
    "cut-behind-a-length": (PLAIN[: SIZE + 12], rf"record 2 at byte {SIZE} is truncated"),
    "cut-in-the-middle": (PLAIN[: SIZE + SIZE // 2], rf"record 2 at byte {SIZE} is truncated"),
    "without-its-last-byte": (PLAIN[:-1], rf"record 4 at byte {3 * SIZE} is truncated"),
    "with-a-flipped-length": (flipped(PLAIN, 2 * SIZE), rf"record 3 at byte {2 * SIZE} {_NO_RECORD}"),
    "with-flipped-data": (flipped(PLAIN, 2 * SIZE + 30), rf"record 3 at byte {2 * SIZE} {_NO_RECORD}"),
    "with-a-byte-missing": (PLAIN[:50] + PLAIN[51:], f"record 1 at byte 0 {_NO_RECORD}"),
    "with-garbage-behind-it": (PLAIN + b"some more garbage", rf"record 5 at byte {4 * SIZE} {_NO_RECORD}"),
    "with-zeros-behind-it": (PLAIN + bytes(100), rf"record 5 at byte {4 * SIZE} {_NO_RECORD}"),
    "with-a-length-of-a-terabyte": (with_length(1 << 40), f"record 1 at byte 0 {_TOO_LARGE}"),
    "with-the-largest-length": (with_length((1 << 63) - 1), f"record 1 at byte 0 {_TOO_LARGE}"),
    "with-a-negative-length": (with_length((1 << 64) - 1), f"record 1 at byte 0 {_NO_RECORD}"),
    "packed-with-bz2": (bz2.compress(PLAIN), _PACKED.format("bzip2")),
    "packed-with-xz": (lzma.compress(PLAIN), _PACKED.format("xz")),
    "in-a-zip": (b"PK\x03\x04" + bytes(100), _PACKED.format("zip")),
    "packed-with-zstd": (b"\x28\xb5\x2f\xfd" + bytes(100), _PACKED.format("zstd")),
    "of-text": (b"A sentence that is no record.\n" * 9, f"record 1 at byte 0 {_NO_RECORD}"),
}
# What only `pick-eval` says: `index` takes no packed file.
DAMAGED_PACKED: Mapping[str, tuple[bytes, str]] = {
    "packed-twice": (gzip.compress(gzip.compress(PLAIN)), f"record 1 at byte 0 {_NO_RECORD}"),
    "packed-and-cut": (gzip.compress(PLAIN)[:-20], _GZIP),
    "packed-without-its-checksum": (gzip.compress(PLAIN)[:-8], _GZIP),
    "packed-and-flipped": (flipped(gzip.compress(PLAIN), -6), _GZIP),
    "packed-with-garbage-behind-it": (gzip.compress(PLAIN) + b"garbage", _GZIP),
    "packed-when-cut": (gzip.compress(PLAIN[:-1]), rf"record 4 at byte {3 * SIZE} is truncated"),
}

PICK = "pick-eval --input_tfrecord={} --output_tfrecord=picked --num_examples_to_pick=1"
_PICK_GOOD = "pick-eval --input_tfrecord=examples.tfrecord --output_tfrecord="


def commands_on(command: str, cases: Mapping[str, tuple[bytes, str]]) -> list[Mistake]:
    """A command on each of some files x."""
    return [
        Mistake(
            name=f"{command.split()[0]}-{case}", command=command.format("x"), says=f"x: {says}", files={"x": content}
        )
        for case, (content, says) in cases.items()
    ]


INDEX = [
    *commands_on("index {}", DAMAGED),
    Mistake(name="index-an-empty-name", command="index ''", says="No input was named"),
    Mistake(name="index-what-is-not-there", command="index x.tfrecord", says="x.tfrecord: this input does not exist"),
    Mistake(name="index-a-glob-of-nothing", command="index 'x-*'", says=r"x-\*: this input matches no file"),
    Mistake(
        name="index-one-that-is-there-and-one-that-is-not",
        command="index examples.tfrecord,x.tfrecord",
        says="x.tfrecord: this input does not exist",
    ),
    Mistake(name="index-a-directory", command="index folder", says="is a directory", files={"folder/x": PLAIN}),
    Mistake(name="index-an-empty-file", command="index x", says="x: this file is empty", files={"x": b""}),
    Mistake(
        name="index-a-packed-file",
        command="index x.gz",
        says="x.gz: this TFRecord is packed with gzip, and an index is of use only for one that is not; unpack it",
        files={"x.gz": gzip.compress(PLAIN)},
    ),
    Mistake(
        name="index-a-good-and-a-packed-file",
        command="index a b",
        says="b: this TFRecord is packed with gzip",
        files={"a": PLAIN, "b": gzip.compress(PLAIN)},
    ),
    Mistake(name="index-a-dump", command="index dump.xml", says=f"dump.xml: record 1 at byte 0 {_NO_RECORD}"),
    Mistake(name="index-a-packed-dump", command="index dump.xml.bz2", says=_PACKED.format("bzip2")),
    Mistake(name="index-parquet", command="index articles.parquet", says=_NO_RECORD),
    Mistake(name="index-a-vocabulary", command="index vocab.txt", says=_NO_RECORD),
    Mistake(name="index-an-index", command="index examples.tfrecord.idx", says=_NO_RECORD),
    Mistake(
        name="index-two-files-under-one-name",
        command="index a b --output=index",
        says="--output names one index, and there are 2 files; leave it out",
        files={"a": PLAIN, "b": PLAIN},
    ),
    Mistake(
        name="index-a-glob-of-two-under-one-name",
        command="index 'xy*' --output=index",
        says="--output names one index, and there are 2 files",
        files={"xy1": PLAIN, "xy2": PLAIN},
    ),
    Mistake(name="index-over-the-records", command="index x --output=./x", says="also the input x", files={"x": PLAIN}),
    Mistake(
        name="index-into-a-directory",
        command="index x --output=folder",
        says="folder: this output is a directory; name a file",
        files={"x": PLAIN, "folder/y": b""},
    ),
    Mistake(
        name="index-below-a-file",
        command="index x --output=book.txt/index",
        says="book.txt: this directory cannot be made",
        files={"x": PLAIN},
    ),
    Mistake(
        name="index-into-a-device",
        command="index x --output=/dev/full",
        says="/dev/full: this output is no regular file",
        files={"x": PLAIN},
    ),
    Mistake(name="index-with-a-flag-that-is-none", command="index x --outptu=y", says="--outptu", files={"x": PLAIN}),
    Mistake(
        name="index-on-a-disk-that-fails",
        command="index /proc/self/mem --output=index",
        says=r"/proc/self/mem: this input cannot be read on \(Input/output error\); run the same command again",
        code=1,
    ),
]

PICK_EVAL = [
    *commands_on(PICK, DAMAGED),
    *commands_on(PICK, DAMAGED_PACKED),
    Mistake(name="pick-no-record", command=f"{_PICK_GOOD}x --num_examples_to_pick=0", says="must be 1 or more, not 0"),
    Mistake(
        name="pick-less-than-none", command=f"{_PICK_GOOD}x --num_examples_to_pick=-5", says="must be 1 or more, not -5"
    ),
    Mistake(
        name="pick-more-records-than-there-are",
        command=f"{_PICK_GOOD}x --num_examples_to_pick=100000",
        says=r"examples.tfrecord: there are [0-9]+ examples, 100,000 cannot be picked; pick fewer, or make more",
    ),
    Mistake(
        name="pick-the-default-number-of-few",
        command=f"{_PICK_GOOD}x",
        says=r"examples.tfrecord: there are [0-9]+ examples, 10,000 cannot be picked; pick fewer, or make more",
    ),
    Mistake(name="pick-without-input", command="pick-eval --output_tfrecord=x", says="--input_tfrecord"),
    Mistake(name="pick-without-output", command="pick-eval --input_tfrecord=examples.tfrecord", says="output_tfrecord"),
    Mistake(name="pick-from-what-is-not-there", command=PICK.format("nothing"), says="nothing: .* does not exist"),
    Mistake(
        name="pick-from-a-directory",
        command=PICK.format("folder"),
        says="folder: this input is a directory",
        files={"folder/x": PLAIN},
    ),
    Mistake(
        name="pick-from-an-empty-file",
        command=PICK.format("x"),
        says="x: there is no example to pick from",
        files={"x": b""},
    ),
    Mistake(
        name="pick-from-a-good-and-a-damaged-file",
        command=PICK.format("examples.tfrecord,x"),
        says=rf"x: record 4 at byte {3 * SIZE} is truncated",
        files={"x": PLAIN[:-1]},
    ),
    Mistake(name="pick-from-a-dump", command=PICK.format("dump.xml"), says=f"dump.xml: record 1 .*{_NO_RECORD}"),
    Mistake(name="pick-from-parquet", command=PICK.format("articles.parquet"), says=_NO_RECORD),
    Mistake(name="pick-from-an-index", command=PICK.format("examples.tfrecord.idx"), says=_NO_RECORD),
    Mistake(
        name="pick-from-records-that-are-no-examples",
        command=PICK.format("x"),
        says=r"x: record 1 is not a tf\.train\.Example \(it cannot be decoded\)",
        files={"x": oracle.encode_tfrecord(b"\xff" * 12)},
    ),
    Mistake(
        name="pick-examples-of-another-length",
        command=f"{_PICK_GOOD}x --num_examples_to_pick=1 --max_seq_length=128",
        says="record 1 has 32 values in input_ids, not 128; give the lengths that the examples were made with",
    ),
    Mistake(
        name="pick-examples-with-another-number-of-predictions",
        command=f"{_PICK_GOOD}x --num_examples_to_pick=1 --max_predictions_per_seq=20",
        says="record 1 has 5 values in masked_lm_positions, not 20",
    ),
    Mistake(
        name="pick-examples-that-lack-a-feature",
        command=PICK.format("x") + " --max_predictions_per_seq=5",
        says="x: record 1 has no such feature in masked_lm_positions, not 5",
        files={"x": PLAIN},
    ),
    Mistake(
        name="pick-into-a-directory",
        command=f"{_PICK_GOOD}folder --num_examples_to_pick=1",
        says="folder: this output is a directory; name a file",
        files={"folder/x": b""},
    ),
    Mistake(
        name="pick-below-a-file",
        command=f"{_PICK_GOOD}book.txt/x --num_examples_to_pick=1",
        says="book.txt: this directory cannot be made",
    ),
    Mistake(
        name="pick-into-a-device",
        command=f"{_PICK_GOOD}/dev/full --num_examples_to_pick=1",
        says="/dev/full: this output is no regular file",
    ),
    Mistake(
        name="pick-over-one-of-a-glob",
        command="pick-eval --input_tfrecord='x*' --output_tfrecord=x2 --num_examples_to_pick=1",
        says="x2: this output is also the input",
        files={"x1": PLAIN, "x2": PLAIN},
    ),
    Mistake(
        name="pick-on-a-disk-that-fails",
        command=PICK.format("/proc/self/mem"),
        says=r"/proc/self/mem: this input cannot be read on \(Input/output error\)",
        code=1,
    ),
]

TEXT = b"A first sentence.\nA second one.\n\nAnother document.\n" * 20
# What the commands that make examples say of a file x that is no text shard.
NO_TEXT: Mapping[str, tuple[bytes, str]] = {
    "of-packed-text": (gzip.compress(TEXT), "x.*(not UTF-8|packed)"),
    "of-text-packed-with-bz2": (bz2.compress(TEXT), "x.*(not UTF-8|packed)"),
    "of-text-packed-with-xz": (lzma.compress(TEXT), "x.*(not UTF-8|packed)"),
    "of-records": (PLAIN + oracle.encode_tfrecord(b"\xff\xfe" * 20), "x.*(not UTF-8|TFRecord)"),
    "of-an-empty-file": (b"", "x: there is no sentence in this text"),
    "of-blank-lines": (b"\n \n\t\n" * 9, "there is no sentence in this text"),
    "of-damaged-text": (TEXT[:100] + b"\xff\xfe" + TEXT[100:], "x, line [0-9]+: this text is not UTF-8"),
    "of-utf16": (TEXT.decode().encode("utf-16"), "x.*UTF-"),
    "of-latin1": ("Ein schöner Satz.\n".encode("latin-1"), "x, line 1: this text is not UTF-8"),
}
_MAKERS = {
    "create-pretraining-data": "create-pretraining-data --vocab_file=vocab.txt --output_file=out --input_file={}",
    "examples": "examples --vocab_file=vocab.txt --output=out --input={}",
}
EXAMPLES = [
    row
    for command, line in _MAKERS.items()
    for row in (
        *(
            Mistake(
                name=f"{command}-{case}", command=line.format("x"), says=says, files={"x": content}, leaves=("out",)
            )
            for case, (content, says) in NO_TEXT.items()
        ),
        Mistake(
            name=f"{command}-of-a-directory",
            command=line.format("folder"),
            says="folder: this input is a directory",
            files={"folder/x": TEXT},
        ),
        Mistake(name=f"{command}-of-nothing", command=line.format("nothing"), says="nothing: .* does not exist"),
        Mistake(
            name=f"{command}-on-a-disk-that-fails",
            command=line.format("/proc/self/mem"),
            says=r"/proc/self/mem: this input cannot be read on \(Input/output error\)",
            code=1,
            leaves=("out",),
        ),
    )
]

CREATE = "create-pretraining-data --vocab_file=vocab.txt --input_file=part-00000-of-00001 --output_file="
OUTPUTS = [
    Mistake(
        name="create-two-outputs-that-are-one",
        command=f"{CREATE}a,./a",
        says="./a: this output, or an index beside it, is the same file as the output a; the outputs must be",
    ),
    Mistake(
        name="create-two-outputs-that-are-one-by-a-link",
        command=f"{CREATE}a,b",
        files={"a": b"old", "b": lambda path: path.symlink_to("a")},
        says="b: this output, or an index beside it, is the same file as the output a",
    ),
    Mistake(
        name="create-an-output-that-is-the-index-of-another",
        command=f"{CREATE}a,a.idx",
        says="a.idx: this output, or an index beside it, is the same file as the output a.idx",
    ),
    Mistake(
        name="create-the-same-output-twice",
        command=f"{CREATE}a,a",
        says="a: this output, or an index beside it, is the same file",
    ),
    Mistake(name="create-an-output-without-a-name", command=CREATE, says="--output_file is empty"),
    Mistake(name="create-an-output-that-ends-like-a-directory", command=f"{CREATE}a/", says='"a/" as output names no'),
    Mistake(
        name="create-packed-and-plain-outputs",
        command=f"{CREATE}a.gz,b",
        says="Of the outputs some end in .gz and some do not; name all of them with .gz, to pack them, or none",
    ),
    Mistake(name="pick-into-no-name", command=_PICK_GOOD, says="--output_tfrecord is empty"),
    Mistake(name="pick-into-a-name-of-a-directory", command=f"{_PICK_GOOD}new/", says='"new/" as output names no file'),
    Mistake(
        name="pick-from-no-name",
        command="pick-eval --input_tfrecord= --output_tfrecord=x",
        says="--input_tfrecord is empty",
    ),
    Mistake(name="index-into-no-name", command="index examples.tfrecord --output=", says="--output is empty"),
    Mistake(
        name="index-over-another-input",
        command="index x x.idx",
        files={"x": PLAIN, "x.idx": PLAIN},
        says="x.idx: this output is also the input x.idx",
    ),
    Mistake(
        name="index-a-glob-that-takes-the-indexes-too",
        command="index 'examples.tfrecord*'",
        says="examples.tfrecord.idx: this output is also the input",
    ),
]

MISTAKES = [*INDEX, *PICK_EVAL, *EXAMPLES, *OUTPUTS]
