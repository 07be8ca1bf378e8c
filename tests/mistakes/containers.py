"""Containers and Parquet files that are damaged, cut off, empty, packed twice or not of the kind they should be."""

import bz2
import gzip
import io
import json
import lzma
import random
import zipfile
from collections.abc import Callable

import pyarrow
import pyarrow.parquet
from made_up.bzip2_writer import large_bzip2_stream, with_wrong_checksum
from made_up.dump_files import dump, page

from mistakes.table import Mistake

# Texts that do not pack well, so that damage lies after the first bytes, which tell the format.
_DRAW = random.Random(1)
_WORDS = ["".join(_DRAW.choices("abcdefghijklmnopqrstuvwxyz", k=3 + k % 7)) for k in range(5000)]
_TEXTS = [" ".join(_DRAW.choices(_WORDS, k=120)) + "." for k in range(300)]
DUMP = dump([page(k, f"Page {k}", text) for k, text in enumerate(_TEXTS, 1)])
JSON_LINES = "".join(json.dumps({"text": text}) + "\n" for text in _TEXTS).encode()
PLAIN = "\n\n".join(_TEXTS).encode()
EXTRACT = "extract --input={} --output=out"

Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {
    "bz2": lambda content: bz2.compress(content, 1),
    "gz": lambda content: gzip.compress(content, mtime=0),
    "xz": lzma.compress,
}
_NO_END_OF_XZ = (
    "the file is cut off, or something else follows its last stream: its last bytes are not the end of xz data; "
    "fetch it again, or take what stands before the cut with --keep_truncated"
)
NAMES = {"bz2": "bzip2", "gz": "gzip", "xz": "xz"}


def flipped(content: bytes, place: int) -> bytes:
    """The content with all bits of one byte flipped."""
    damaged = bytearray(content)
    damaged[place] ^= 0xFF
    return bytes(damaged)


def damaged_containers(container: str, pack: Pack) -> list[Mistake]:
    """Extracting a dump in a container that is damaged in many ways."""
    whole, name = pack(DUMP), NAMES[container]
    cut_off = (
        f"the file is cut off: it ends at byte [0-9]+ in the middle of its {name} data; fetch it again, "
        "or take what stands before the cut with --keep_truncated"
    )
    if container == "xz":  # its last bytes tell before it is read
        cut_off += f"|{_NO_END_OF_XZ}"
    damage = rf"the {name} data (at|is damaged in front of) byte [0-9]+"
    cases: dict[str, tuple[bytes, str]] = {
        "empty": (b"", "this input is empty"),
        "only-its-mark": (whole[:8], cut_off),
        "cut-in-the-middle": (whole[: len(whole) // 2], f"{cut_off}|{damage}"),
        "without-its-last-byte": (whole[:-1], cut_off),
        "flipped-in-the-middle": (flipped(whole, len(whole) // 2), damage),
        "flipped-near-its-end": (flipped(whole, -6), damage),
        "garbage-after-it": (
            whole + b"garbage",
            rf"{damage}.*(something else follows|no further bzip2 stream starts)|{_NO_END_OF_XZ}",
        ),
        "a-cut-stream-after-it": (whole + pack(b"more")[:-4], f"{cut_off}|{damage}"),
        "of-nothing": (pack(b""), "this input is empty once it is unpacked"),
        "packed-twice": (pack(whole), f"this input is packed twice, {container} around {container}; unpack it once"),
        "of-half-a-dump": (pack(DUMP[:-30000]), "the XML is cut off: .*; fetch the file again, or .* --keep_truncated"),
        "of-zeros": (pack(bytes(100_000)), "neither text nor packed"),
    }
    file = f"x.xml.{container}"
    return [
        Mistake(
            f"extract-{container}-{case}",
            EXTRACT.format(file),
            rf"{file}: .*({says})|{file}: ({says})",
            files={file: content},
            leaves=("out",),
        )
        for case, (content, says) in cases.items()
    ]


def cut_documents(name: str, content: bytes) -> list[Mistake]:
    """Extracting documents from files that end in the middle of their packed data."""
    return [
        Mistake(
            f"extract-{name}-cut-{container}",
            EXTRACT.format(f"x.{name}.{container}") + " --num_eval_articles=10",
            f"the file is cut off: it ends at byte|data at byte|{_NO_END_OF_XZ}",
            files={f"x.{name}.{container}": pack(content)[:-9]},
            leaves=("out",),
        )
        for container, pack in PACKERS.items()
    ]


def parquet(checksums: bool = False, **columns: object) -> bytes:
    """A Parquet file of several row groups."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, row_group_size=50, write_page_checksum=checksums)
    return file.getvalue()


def zip_file() -> bytes:
    """A zip file with a dump in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dump.xml", DUMP)
    return file.getvalue()


PARQUET = parquet(text=_TEXTS, id=list(range(len(_TEXTS))))
CHECKED_PARQUET = parquet(checksums=True, text=_TEXTS)
_DAMAGED = r"the Parquet data( of row group [0-9]+)? is damaged or cut off \(.*\); make or fetch the file again"
_PARQUET_CASES: dict[str, tuple[bytes, str, str]] = {
    "only-its-mark": (b"PAR1", "", _DAMAGED),
    "cut-in-the-middle": (PARQUET[: len(PARQUET) // 2], "", _DAMAGED),
    "without-its-last-byte": (PARQUET[:-1], "", _DAMAGED),
    "without-its-footer": (PARQUET[:-500] + PARQUET[-8:], "", _DAMAGED),
    "flipped-in-data-with-checksums": (flipped(CHECKED_PARQUET, 3000), "", _DAMAGED),
    "garbage-after-it": (PARQUET + b"garbage", "", _DAMAGED),
    "of-the-wrong-length-of-footer": (PARQUET[:-8] + b"\xff\xff\xff\x7fPAR1", "", _DAMAGED),
    "encrypted": (PARQUET[:-4] + b"PARE", "", _DAMAGED),
    "without-text": (parquet(body=_TEXTS), "", r'there is no column "text"; .* its columns are body \(string\)'),
    "with-numbers-as-text": (parquet(text=[1, 2]), "", 'the column "text" holds int64 values, not text'),
    "with-bytes-as-text": (parquet(text=[b"a"]), "", 'the column "text" holds binary values, not text'),
    "with-lists-as-text": (parquet(text=[["a"]]), "", r'the column "text" holds list<.*> values, not text'),
    "without-the-column-of-ids": (PARQUET, "--id_column=key", 'there is no column "key"; name one with --id_column'),
    "with-fractions-as-ids": (parquet(text=["a"], id=[0.5]), "--id_column=id", 'the column "id" holds double values'),
    "without-columns": (parquet(), "", 'there is no column "text".* its columns are none'),
}

_OTHERS: dict[str, tuple[str, bytes, str, str]] = {
    "zip": ("x.zip", zip_file(), "", "packed with zip, which is not read; unpack it first"),
    "zip-named-as-a-dump": ("x.xml.bz2", zip_file(), "", "packed with zip, which is not read; unpack it first"),
    "zstd": ("x.jsonl.zst", b"\x28\xb5\x2f\xfd" + bytes(range(60)), "", "packed with zstd, which is not read"),
    "7z": ("x.7z", b"7z\xbc\xaf\x27\x1c" + bytes(60), "", "packed with 7z, which is not read"),
    "lz4": ("x.lz4", b"\x04\x22\x4d\x18" + bytes(60), "", "packed with lz4, which is not read"),
    "gz-around-bz2": ("x.gz", gzip.compress(bz2.compress(DUMP)), "", "packed twice, gz around bz2; unpack it once"),
    "xz-around-gz": ("x.xz", lzma.compress(gzip.compress(PLAIN)), "", "packed twice, xz around gz; unpack it once"),
    "bz2-around-xz": ("x.bz2", bz2.compress(lzma.compress(PLAIN)), "", "packed twice, bz2 around xz; unpack it once"),
    "gz-around-parquet": ("x.parquet.gz", gzip.compress(PARQUET), "", "a Parquet file; unpack it first"),
    "parquet-as-jsonl": ("x.parquet", JSON_LINES, "--input_format=parquet", "this is no Parquet file"),
    "jsonl-as-parquet": ("x.jsonl", PARQUET, "--input_format=jsonl", "it looks like a Parquet file"),
    "parquet-as-a-dump": ("x.xml", PARQUET, "--input_format=mediawiki", "it looks like a Parquet file"),
    "cut-dump": ("x.xml", DUMP[:-100], "", "the XML is cut off: .*, or .* with --keep_truncated"),
    "cut-dump-in-its-header": ("x.xml", DUMP[:150], "--keep_truncated", "no <page> was found"),
    "cut-doc-elements": (
        "wiki_00",
        b'<doc id="1" url="" title="A">\nA\n\nText.\n</doc>\n<doc id="2" url="" title="B">\nB\n',
        "",
        "the file is cut off: its last <doc> is not closed",
    ),
}

MISTAKES = [
    *(row for container, pack in PACKERS.items() for row in damaged_containers(container, pack)),
    *cut_documents("jsonl", JSON_LINES),
    *cut_documents("txt", PLAIN),
    *(
        Mistake(
            f"extract-parquet-{case}",
            EXTRACT.format("x.parquet") + f" {flags}",
            rf"x\.parquet: {says}",
            files={"x.parquet": content},
            leaves=("out",),
        )
        for case, (content, flags, says) in _PARQUET_CASES.items()
    ),
    *(
        Mistake(
            f"extract-{case}",
            EXTRACT.format(file) + f" {flags}",
            rf"{file}: .*{says}",
            files={file: content},
            leaves=("out",),
        )
        for case, (file, content, flags, says) in _OTHERS.items()
    ),
    Mistake(
        "extract-bz2-stream-of-several-units-with-a-wrong-checksum",
        EXTRACT.format("x.jsonl.bz2"),
        r"x\.jsonl\.bz2: the bzip2 data at byte [0-9]+ is damaged \(the checksum of the stream that ends there is",
        files={"x.jsonl.bz2": lambda path: path.write_bytes(with_wrong_checksum(large_bzip2_stream()))},
        leaves=("out",),
    ),
    Mistake(
        "extract-a-disk-that-fails",
        EXTRACT.format("/proc/self/mem"),
        r"/proc/self/mem: this input cannot be read on \(Input/output error\); run the same command again",
        code=1,
        leaves=("out",),
    ),
]
