"""Damages that are done to good builds: each says what it does, to which builds, and which checks must find it.

A damage is done to a copy of a build, which is verified as it is, and once more with the manifests regenerated over the
damage (regenerating.py). The table in docs/verify.md is made of this list: `python tests/verification/damages.py`.
"""

import dataclasses
import gzip
import hashlib
import itertools
import json
import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from command_runs.commands import VOCAB
from data_sets.mds_reader import read_shard
from data_sets.whole_builds import Made, files_made
from sample_files import FRAME_HEAD, Row, frames, read_rows, records_of, write_rows

from maskmill.records.tfrecord import frame

# Builds of BERT's pairs in each format; then of other objectives and ways to fill rows. test_defects.py makes them.
PAIRS = ("tfrecord", "parquet", "mds")
OBJECTIVES = ("packed", "bins", "dynamic")
STORED = (*PAIRS, "packed", "bins")  # with masks in the files
ALL = (*PAIRS, *OBJECTIVES)
GZIP = "gzip"

PIECES = VOCAB.read_text().split("\n")
PAD, UNK, CLS, SEP, MASK = 0, 100, 101, 102, 103
VOCABULARY_SIZE = 30522

Apply = Callable[["Scene"], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Damage:
    """Something that happens to a build.

    Attributes:
      name: of the damage, as tests are called.
      what: for the table, what it does.
      apply: does it.
      builds: the builds that it is done to, by name.
      found: the checks of which one must find it, as it is.
      again: the checks of which one must find it with the manifests regenerated; empty: then nothing is wrong any more.
    """

    name: str
    what: str
    apply: Apply
    builds: tuple[str, ...]
    found: frozenset[str]
    again: frozenset[str]


DAMAGES: list[Damage] = []


def damage(
    what: str, *, builds: Sequence[str] = ("tfrecord",), found: str, again: str = ""
) -> Callable[[Apply], Apply]:
    """Adds a function to the list; `found` and `again` have names of checks, with spaces between them."""

    def add(apply: Apply) -> Apply:
        DAMAGES.append(
            Damage(
                name=apply.__name__.strip("_"),
                what=what,
                apply=apply,
                builds=tuple(builds),
                found=frozenset(found.split()),
                again=frozenset(again.split()),
            )
        )
        return apply

    return add


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """A build that is damaged.

    Attributes:
      made: the build.
      scratch: a directory for what a damage needs beside it.
      chance: random numbers, the same in each run.
    """

    made: Made
    scratch: Path
    chance: random.Random

    @property
    def root(self) -> Path:
        """The build's directory."""
        return self.made.root

    @property
    def examples(self) -> Path:
        """The directory of the examples."""
        return self.root / "examples"

    @property
    def format(self) -> str:
        """Of the examples."""
        return self.made.setup.format.format

    def files(self, kind: str = "train") -> list[Path]:
        """The files of the examples of a split, in order."""
        suffix = {"tfrecord": ".tfrecord*", "parquet": ".parquet", "mds": ".mds"}[self.format]
        start = "part-" if kind == "train" else "eval"
        paths = sorted(path for path in self.examples.rglob(f"*{suffix}") if path.name.startswith(start))
        return [path for path in paths if path.suffix != ".idx"]

    @property
    def file(self) -> Path:
        """The file that most damages are done to: of the second shard, with the longest rows."""
        return max(
            (path for path in self.files() if path.name.startswith("part-00001")), key=lambda p: p.stat().st_size
        )

    @property
    def text(self) -> Path:
        """The text of that shard."""
        (path,) = (self.root / "text").glob("part-00001-of-*")
        return path

    def edit(self, change: Callable[[Row], None], *, every: int = 0, path: Path | None = None) -> None:
        """Changes the seventh row of a file, or every n-th."""
        path = path or self.file
        rows = read_rows(path)
        for row in rows[::every] if every else rows[6:7]:
            change(row)
        write_rows(path, rows)

    def remake(self, *, path: Path | None = None, text: Path | None = None, **options: Any) -> None:
        """Makes the examples of the file's shard again with other options, or of another text under the same name."""
        path = path or self.file
        shards = {shard.path: shard for shard in self.made.text_shards()}
        names = {Path(p).name: p for p in shards}
        shard = shards[next(p for name, p in names.items() if path.name.startswith(name))]
        if text is not None:
            content = text.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            shard = dataclasses.replace(shard, path=str(text), size=len(content), sha256=sha256)
        found = files_made(self.made, shard, self.made.with_options(**options), self.scratch)
        shutil.copyfile(found[str(path.relative_to(self.examples))], path)

    def remake_all(self, **options: Any) -> None:
        """Makes all examples again with other options; the manifest stays as it is."""
        setup = self.made.with_options(**options)
        for number, shard in enumerate(self.made.text_shards()):
            for name, path in files_made(self.made, shard, setup, self.scratch / str(number)).items():
                shutil.copyfile(path, self.examples / name)

    def manifest(self, change: Callable[[dict[str, Any]], None], stage: str = "examples") -> None:
        """Changes a manifest."""
        path = self.root / stage / "manifest.json"
        made = json.loads(path.read_bytes())
        change(made)
        path.write_text(json.dumps(made, indent=1, sort_keys=True))


def length_of(row: Row) -> int:
    """The number of pieces of a row."""
    return int(row["input_mask"].sum()) if "input_mask" in row else len(row["input_ids"])


def masks_of(row: Row) -> int:
    """The number of masks of a row."""
    return int(row["masked_lm_weights"].sum())


def original(row: Row) -> Any:
    """The ids of a row before masking."""
    ids, count = row["input_ids"].copy(), masks_of(row)
    ids[row["masked_lm_positions"][:count]] = row["masked_lm_ids"][:count]
    return ids


def plain_place(row: Row) -> int:
    """A place of a row with a piece of text that is not masked, with one of text behind it."""
    ids = row["input_ids"]
    masked = set(row["masked_lm_positions"][: masks_of(row)].tolist()) if "masked_lm_positions" in row else set()
    return next(
        n
        for n in range(2, length_of(row) - 3)
        if not {n, n + 1} & masked and min(ids[n], ids[n + 1]) > MASK and ids[n] != ids[n + 1]
    )


def change_bytes(path: Path, change: Callable[[bytearray], None]) -> None:
    """Changes a file's content."""
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def flip(path: Path, place: int, bit: int = 2) -> None:
    """Flips a bit of a file."""

    def change(content: bytearray) -> None:
        content[place] ^= 1 << bit

    change_bytes(path, change)


# Records, frames and files.


@damage("a bit of a record's length is flipped", found="framing crc", again="framing crc")
def bit_in_length(scene: Scene) -> None:
    flip(scene.file, frames(scene.file)[20][0])


@damage("a bit of the checksum of a record's length is flipped", found="framing crc", again="framing crc")
def bit_in_length_checksum(scene: Scene) -> None:
    flip(scene.file, frames(scene.file)[20][0] + 9)


@damage("a bit of a record's data is flipped", found="crc", again="crc")
def bit_in_data(scene: Scene) -> None:
    at, size = frames(scene.file)[20]
    flip(scene.file, at + FRAME_HEAD + size // 2)


@damage("a bit of the checksum of a record's data is flipped", found="crc", again="crc")
def bit_in_data_checksum(scene: Scene) -> None:
    at, size = frames(scene.file)[20]
    flip(scene.file, at + FRAME_HEAD + size + 1)


@damage(
    "a bit in the middle of the file is flipped", builds=("parquet", "packed"), found="sha256 size", again="crc framing"
)
def bit_in_parquet(scene: Scene) -> None:
    flip(scene.file, scene.file.stat().st_size // 2)


@damage("a bit of the file's metadata is flipped", builds=("parquet",), found="sha256 size", again="framing crc")
def bit_in_parquet_footer(scene: Scene) -> None:
    content = scene.file.read_bytes()
    flip(scene.file, len(content) - 8 - struct.unpack("<I", content[-8:-4])[0] // 2)


@damage(
    "a bit of a sample is flipped",
    builds=("mds", "dynamic"),
    found="sha256 size",
    again="seed ids masks schema segments",
)
def bit_in_sample(scene: Scene) -> None:
    flip(scene.file, scene.file.stat().st_size // 2)


@damage("pyarrow has written the file again", builds=("parquet", "packed"), found="sha256 size", again="")
def written_again(scene: Scene) -> None:
    pq.write_table(pq.read_table(scene.file), scene.file, compression="zstd", row_group_size=100)


@damage("an offset of a sample is changed", builds=("mds",), found="sha256 size", again="framing schema")
def offset_in_mds(scene: Scene) -> None:
    change_bytes(scene.file, lambda content: content.__setitem__(slice(40, 44), struct.pack("<I", 5)))


@damage("the index.json of the samples is that of before", builds=("mds",), found="index", again="")
def stale_mds_index(scene: Scene) -> None:
    path = scene.file.parent / "index.json"
    index = json.loads(path.read_bytes())
    index["shards"][1]["samples"] -= 3
    path.write_text(json.dumps(index, sort_keys=True))


@damage("index.json leaves out a shard", builds=("mds",), found="index", again="")
def shard_not_in_mds_index(scene: Scene) -> None:
    path = scene.file.parent / "index.json"
    index = json.loads(path.read_bytes())
    del index["shards"][1]
    path.write_text(json.dumps(index, sort_keys=True))


@damage("index.json is missing", builds=("mds",), found="missing index", again="")
def no_mds_index(scene: Scene) -> None:
    (scene.file.parent / "index.json").unlink()


@damage("the file is cut in the middle of a record", builds=(*PAIRS, "packed"), found="size", again="framing schema")
def cut_in_a_record(scene: Scene) -> None:
    size = scene.file.stat().st_size
    change_bytes(scene.file, lambda content: content.__delitem__(slice(size * 2 // 3 + 5, size)))


@damage("the file is cut behind a record", found="size", again="seed")
def cut_behind_a_record(scene: Scene) -> None:
    at = frames(scene.file)[300][0]
    change_bytes(scene.file, lambda content: content.__delitem__(slice(at, len(content))))


@damage("the file is empty", builds=ALL, found="size", again="framing missing counts seed")
def empty_file(scene: Scene) -> None:
    scene.file.write_bytes(b"")


@damage(
    "4 KiB in the middle of the file are zeros",
    builds=ALL,
    found="sha256 size",
    again="framing crc schema masks special_tokens",
)
def zeros_in_the_file(scene: Scene) -> None:
    middle = scene.file.stat().st_size // 2
    change_bytes(scene.file, lambda content: content.__setitem__(slice(middle, middle + 4096), bytes(4096)))


@damage("bytes stand behind the last record", builds=PAIRS, found="size", again="framing schema")
def bytes_at_the_end(scene: Scene) -> None:
    change_bytes(scene.file, lambda content: content.extend(b"\x17" * 11))


@damage("bytes stand between two records", found="size", again="framing crc")
def bytes_between_records(scene: Scene) -> None:
    at = frames(scene.file)[20][0]
    change_bytes(scene.file, lambda content: content.__setitem__(slice(at, at), b"\x17" * 11))


@damage("a record is not a tf.train.Example", found="schema", again="schema")
def not_an_example(scene: Scene) -> None:
    records = records_of(scene.file)
    records[20] = b"\x0a\x05hello"
    scene.file.write_bytes(b"".join(map(frame, records)))


@damage("the gzip file is cut", builds=(GZIP,), found="size", again="framing")
def gzip_cut(scene: Scene) -> None:
    size = scene.file.stat().st_size
    change_bytes(scene.file, lambda content: content.__delitem__(slice(size // 2, size)))


@damage("a bit of the gzip file is flipped", builds=(GZIP,), found="sha256 size", again="framing crc")
def gzip_bit(scene: Scene) -> None:
    flip(scene.file, scene.file.stat().st_size // 2)


@damage("a bit of a record is flipped before it is packed with gzip", builds=(GZIP,), found="crc", again="crc")
def gzip_of_damaged_records(scene: Scene) -> None:
    content = bytearray(gzip.decompress(scene.file.read_bytes()))
    content[5000] ^= 4
    scene.file.write_bytes(gzip.compress(bytes(content), mtime=0))


# Whole shards.


@damage("a shard is missing", builds=ALL, found="missing", again="missing shard_inputs foreign seed")
def missing_shard(scene: Scene) -> None:
    scene.file.unlink()


@damage("two shards are swapped", builds=ALL, found="sha256 size", again="seed shard_inputs")
def swapped_shards(scene: Scene) -> None:
    other = next(path for path in scene.files() if path.name == scene.file.name.replace("part-00001", "part-00002"))
    mine, theirs = scene.file.read_bytes(), other.read_bytes()
    scene.file.write_bytes(theirs)
    other.write_bytes(mine)


@damage("a shard is a copy of another one", builds=ALL, found="sha256 size", again="repeated_records")
def copied_shard(scene: Scene) -> None:
    other = next(path for path in scene.files() if path.name == scene.file.name.replace("part-00001", "part-00002"))
    scene.file.write_bytes(other.read_bytes())


@damage(
    "nine in ten rows of a shard are those of another one",
    builds=(*PAIRS, "packed"),
    found="sha256 size",
    again="repeated_records",
)
def similar_shard(scene: Scene) -> None:
    other = next(path for path in scene.files() if path.name == scene.file.name.replace("part-00001", "part-00002"))
    mine, theirs = read_rows(scene.file), read_rows(other)
    write_rows(scene.file, [theirs[n % len(theirs)] if n % 10 else row for n, row in enumerate(mine)])


@damage("a shard has another name", builds=PAIRS, found="missing foreign", again="missing foreign shard_inputs")
def renamed_shard(scene: Scene) -> None:
    scene.file.rename(scene.file.with_name(scene.file.name.replace("part-00001", "part-00017")))


@damage(
    "a shard of another build lies among the files",
    builds=PAIRS,
    found="foreign",
    again="foreign missing repeated_records",
)
def foreign_shard(scene: Scene) -> None:
    name = scene.file.name
    shutil.copyfile(
        scene.file, scene.file.with_name(name.replace("part-00001", "part-00003").replace("-of-0", "-of-1"))
    )


@damage("half of a shard is from a build with another seed", builds=STORED, found="sha256 size", again="seed")
def half_of_another_build(scene: Scene) -> None:
    mine = read_rows(scene.file)
    scene.remake(random_seed=99)
    theirs = read_rows(scene.file)
    write_rows(scene.file, [*mine[: len(mine) // 2], *theirs[len(theirs) // 2 :]])


@damage("a shard was made with another seed", builds=STORED, found="sha256 size", again="seed")
def another_seed(scene: Scene) -> None:
    scene.remake(random_seed=99)


@damage("all shards were made with another seed", builds=PAIRS, found="sha256 size", again="seed")
def another_seed_everywhere(scene: Scene) -> None:
    scene.remake_all(random_seed=99)


@damage("a shard has a twentieth of its text", builds=PAIRS, found="sha256 size", again="counts")
def tiny_shard(scene: Scene) -> None:
    lines = scene.text.read_bytes().split(b"\n")
    scene.text.write_bytes(b"\n".join(lines[: len(lines) // 20]) + b"\n\n")
    scene.remake()


@damage("the rows of a shard are in another order", builds=PAIRS, found="sha256 size", again="seed")
def shuffled_rows(scene: Scene) -> None:
    rows = read_rows(scene.file)
    scene.chance.shuffle(rows)
    write_rows(scene.file, rows)


@damage("a row is there twice", builds=ALL, found="size sha256", again="repeated_records seed")
def row_twice(scene: Scene) -> None:
    rows = read_rows(scene.file)
    write_rows(scene.file, [*rows[:10], rows[3], *rows[10:]])


@damage("a row is missing", builds=ALL, found="size sha256", again="seed")
def row_missing(scene: Scene) -> None:
    rows = read_rows(scene.file)
    write_rows(scene.file, [*rows[:10], *rows[11:]])


@damage(
    "documents were used six times, not twice",
    builds=PAIRS,
    found="sha256 size",
    again="seed",
)
def more_dupes(scene: Scene) -> None:
    scene.remake_all(dupe_factor=6)


@damage("a text is used by two shards", builds=PAIRS, found="sha256 size", again="seed")
def text_used_twice(scene: Scene) -> None:
    (other,) = (scene.root / "text").glob("part-00002-of-*")
    scene.remake(text=Path(shutil.copyfile(other, scene.scratch / scene.text.name)))


# Indexes.


@damage("an index is that of another shard", found="index", again="")
def index_of_another_shard(scene: Scene) -> None:
    shutil.copyfile(f"{scene.files()[2]}.idx", f"{scene.file}.idx")


@damage("an index is missing", found="missing index", again="")
def missing_index(scene: Scene) -> None:
    Path(f"{scene.file}.idx").unlink()


@damage("an index is cut", found="index", again="")
def cut_index(scene: Scene) -> None:
    change_bytes(Path(f"{scene.file}.idx"), lambda content: content.__delitem__(slice(len(content) // 2, len(content))))


@damage("a shard was written again, and its index was not", found="index", again="")
def stale_index(scene: Scene) -> None:
    write_rows(scene.file, read_rows(scene.file)[1:])


# What stands in rows.


@damage("an id is not in the vocabulary", builds=STORED, found="ids", again="ids")
def id_beyond_vocabulary(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"][plain_place(row)] = VOCABULARY_SIZE

    scene.edit(change)


@damage("an id is negative", found="ids schema", again="ids schema")
def negative_id(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"][plain_place(row)] = -7

    scene.edit(change)


@damage("a masked id is not in the vocabulary", builds=STORED, found="ids masks", again="ids masks")
def label_beyond_vocabulary(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["masked_lm_ids"][0] = VOCABULARY_SIZE + 5

    scene.edit(change)


@damage("a piece of text is another one", builds=ALL, found="sha256 size", again="seed")
def another_piece(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"][plain_place(row)] = 2003 if row["input_ids"][plain_place(row)] != 2003 else 2004

    scene.edit(change)


@damage("two neighbouring pieces are swapped", builds=ALL, found="sha256 size", again="seed")
def swapped_pieces(scene: Scene) -> None:
    def change(row: Row) -> None:
        n = plain_place(row)
        row["input_ids"][[n, n + 1]] = row["input_ids"][[n + 1, n]]

    scene.edit(change)


@damage("padding stands in the middle of a row", builds=ALL, found="padding", again="padding")
def padding_in_the_middle(scene: Scene) -> None:
    def change(row: Row) -> None:
        n = plain_place(row)
        row["input_ids"][n : n + 2] = PAD
        if "input_mask" in row:
            row["input_mask"][n : n + 2] = 0

    scene.edit(change)


@damage("the padding id stands among the pieces", builds=ALL, found="padding", again="padding")
def padding_id_among_pieces(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"][plain_place(row)] = PAD

    scene.edit(change)


@damage("input_mask is one too long", builds=("tfrecord", "parquet", "mds", "bins"), found="padding", again="padding")
def mask_too_long(scene: Scene) -> None:
    _edit_short_row(scene, lambda row: row["input_mask"].__setitem__(length_of(row), 1))


@damage("input_mask is one too short", builds=STORED, found="padding special_tokens", again="padding special_tokens")
def mask_too_short(scene: Scene) -> None:
    scene.edit(lambda row: row["input_mask"].__setitem__(length_of(row) - 1, 0))


@damage(
    "a piece stands in the padding", builds=("tfrecord", "parquet", "mds", "bins"), found="padding", again="padding"
)
def piece_in_padding(scene: Scene) -> None:
    _edit_short_row(scene, lambda row: row["input_ids"].__setitem__(length_of(row) + 1, 2003))


def _edit_short_row(scene: Scene, change: Callable[[Row], None]) -> None:
    """Changes the first row with room for ten more pieces, and so for a mask; it may be in another file."""
    for path in scene.files():
        rows = read_rows(path)
        short = [row for row in rows if length_of(row) + 10 < len(row["input_ids"])]
        if short:
            change(short[0])
            write_rows(path, rows)
            return
    raise AssertionError("there is no short row")


@damage("the [CLS] of a row is missing", builds=ALL, found="special_tokens", again="special_tokens")
def no_cls(scene: Scene) -> None:
    scene.edit(lambda row: row["input_ids"].__setitem__(0, 2003))


@damage("the last [SEP] of a row is missing", builds=ALL, found="special_tokens", again="special_tokens")
def no_sep_at_the_end(scene: Scene) -> None:
    scene.edit(lambda row: row["input_ids"].__setitem__(length_of(row) - 1, 2003))


@damage(
    "the [SEP] between the parts is missing",
    builds=PAIRS,
    found="special_tokens segments",
    again="special_tokens segments",
)
def no_sep_between(scene: Scene) -> None:
    scene.edit(lambda row: row["input_ids"].__setitem__(int(np.flatnonzero(row["input_ids"] == SEP)[0]), 2003))


@damage("a [SEP] stands within a part", builds=PAIRS, found="special_tokens segments", again="special_tokens segments")
def sep_within(scene: Scene) -> None:
    scene.edit(lambda row: row["input_ids"].__setitem__(plain_place(row), SEP))


@damage("segment ids are inverted", builds=(*PAIRS, "packed"), found="segments", again="segments")
def inverted_segments(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["segment_ids"][: length_of(row)] = 1 - row["segment_ids"][: length_of(row)]

    scene.edit(change, every=1)


@damage("segment ids are shifted by one place", builds=(*PAIRS, "packed"), found="segments", again="segments")
def shifted_segments(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["segment_ids"][1:] = row["segment_ids"][:-1].copy()

    scene.edit(change)


@damage("segment ids are 0 everywhere", builds=(*PAIRS, "packed"), found="segments", again="segments")
def no_segments(scene: Scene) -> None:
    scene.edit(lambda row: row["segment_ids"].fill(0), every=1)


@damage("a label of a pair is 2", builds=(*PAIRS, "packed"), found="labels", again="labels")
def label_two(scene: Scene) -> None:
    scene.edit(lambda row: row["next_sentence_labels"].__setitem__(0, 2))


@damage(
    "the labels of pairs are inverted", builds=(*PAIRS, "packed"), found="labels seed sha256 size", again="labels seed"
)
def inverted_labels(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["next_sentence_labels"][:] = 1 - row["next_sentence_labels"]

    for path in [*scene.files(), *scene.files("eval")]:
        scene.edit(change, every=1, path=path)


@damage("all labels of a shard are 0", builds=(*PAIRS, "packed"), found="pair_share", again="pair_share labels seed")
def labels_all_zero(scene: Scene) -> None:
    scene.edit(lambda row: row["next_sentence_labels"].fill(0), every=1)


# Masks.


@damage("the masked positions are shifted by one", builds=STORED, found="masks", again="masks")
def shifted_masks(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["masked_lm_positions"][: masks_of(row)] += 1

    scene.edit(change, every=1)


@damage(
    "the masked positions of one row are shifted by one", builds=STORED, found="masks", again="masks special_tokens"
)
def shifted_masks_of_a_row(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["masked_lm_positions"][: masks_of(row)] += 1

    scene.edit(change)


@damage("two masked ids are swapped", builds=STORED, found="sha256 size", again="seed")
def swapped_labels(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["masked_lm_ids"][[0, 1]] = row["masked_lm_ids"][[1, 0]]

    scene.edit(change, every=1)


@damage("the masked ids are those of the masked text", builds=STORED, found="masks", again="masks mask_share")
def labels_of_masked_text(scene: Scene) -> None:
    def change(row: Row) -> None:
        count = masks_of(row)
        row["masked_lm_ids"][:count] = row["input_ids"][row["masked_lm_positions"][:count]]

    scene.edit(change, every=1)


@damage("a masked place has weight 0", builds=STORED, found="masks", again="masks")
def weight_zero(scene: Scene) -> None:
    scene.edit(lambda row: row["masked_lm_weights"].__setitem__(0, 0.0))


@damage("a weight is 0.5", builds=STORED, found="masks", again="masks")
def weight_of_a_half(scene: Scene) -> None:
    scene.edit(lambda row: row["masked_lm_weights"].__setitem__(0, 0.5))


@damage("the weight behind the last mask is 1", builds=STORED, found="masks", again="masks")
def weight_behind_the_last(scene: Scene) -> None:
    _edit_short_row(scene, lambda row: row["masked_lm_weights"].__setitem__(masks_of(row), 1.0))


@damage("masked positions are not in order", builds=STORED, found="masks", again="masks")
def unordered_masks(scene: Scene) -> None:
    def change(row: Row) -> None:
        for name in ("masked_lm_positions", "masked_lm_ids"):
            row[name][[0, 1]] = row[name][[1, 0]]

    scene.edit(change)


@damage("a position is masked twice", builds=STORED, found="masks", again="masks")
def position_twice(scene: Scene) -> None:
    def change(row: Row) -> None:
        for name in ("masked_lm_positions", "masked_lm_ids"):
            row[name][1] = row[name][0]

    scene.edit(change)


@damage(
    "a masked position lies in the padding", builds=("tfrecord", "parquet", "mds", "bins"), found="masks", again="masks"
)
def mask_in_padding(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["masked_lm_positions"][masks_of(row) - 1] = length_of(row) + 1

    _edit_short_row(scene, change)


@damage("the [CLS] is masked", builds=STORED, found="masks special_tokens", again="masks special_tokens")
def masked_cls(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["masked_lm_positions"][0], row["masked_lm_ids"][0], row["input_ids"][0] = 0, CLS, MASK

    scene.edit(change)


@damage("a [SEP] is masked", builds=STORED, found="masks special_tokens", again="masks special_tokens")
def masked_sep(scene: Scene) -> None:
    def change(row: Row) -> None:
        last, place = masks_of(row) - 1, length_of(row) - 1
        row["masked_lm_positions"][last], row["masked_lm_ids"][last], row["input_ids"][place] = place, SEP, MASK

    scene.edit(change)


@damage(
    "a [MASK] stands where nothing is predicted",
    builds=STORED,
    found="masks special_tokens",
    again="masks special_tokens",
)
def mask_without_position(scene: Scene) -> None:
    scene.edit(lambda row: row["input_ids"].__setitem__(plain_place(row), MASK))


@damage("a masked id is [MASK]", builds=STORED, found="masks special_tokens", again="masks special_tokens")
def label_is_mask(scene: Scene) -> None:
    scene.edit(lambda row: row["masked_lm_ids"].__setitem__(0, MASK))


@damage("masks are missing in every third row", builds=STORED, found="masks", again="masks mask_share")
def no_masks(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"][:] = original(row)
        for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
            row[name].fill(0)

    scene.edit(change, every=3)


@damage("a tenth of the pieces is masked, not 15 %", builds=STORED, found="masks mask_share", again="masks mask_share")
def another_masked_share(scene: Scene) -> None:
    scene.remake_all(masked_lm_prob=0.1)


@damage("half of the masked places get [MASK], not 80 %", builds=STORED, found="mask_share", again="mask_share")
def another_mask_share(scene: Scene) -> None:
    def change(row: Row) -> None:
        for n in range(masks_of(row)):
            place = row["masked_lm_positions"][n]
            if row["input_ids"][place] == MASK and scene.chance.random() < 0.375:
                row["input_ids"][place] = scene.chance.randrange(1000, VOCABULARY_SIZE)

    for path in scene.files():
        scene.edit(change, every=1, path=path)


@damage("every masked place gets [MASK]", builds=STORED, found="mask_share", again="mask_share")
def only_mask_pieces(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"][row["masked_lm_positions"][: masks_of(row)]] = MASK

    scene.edit(change, every=1)


def mask_elsewhere(scene: Scene, choose: Callable[[Row, list[int], int], list[int]]) -> None:
    """Masks other places of all rows; each new mask has what stands at an old one: [MASK], the piece, or a random one.

    choose: of a row with its masks undone those of the places with text that are masked, as many as the number.
    """

    def change(row: Row) -> None:
        count, pieces = masks_of(row), original(row)
        places = row["masked_lm_positions"][:count]
        kinds = [None if row["input_ids"][p] == pieces[p] else row["input_ids"][p] for p in places]
        row["input_ids"][:] = pieces
        free = [n for n in range(length_of(row)) if pieces[n] not in (CLS, SEP)]
        chosen = choose(row, free, count)
        chosen = sorted([*chosen, *scene.chance.sample([n for n in free if n not in chosen], count - len(chosen))])
        for n, (place, kind) in enumerate(zip(chosen, kinds, strict=True)):
            row["masked_lm_positions"][n], row["masked_lm_ids"][n] = place, pieces[place]
            row["input_ids"][place] = pieces[place] if kind is None else kind

    for path in scene.files():
        scene.edit(change, every=1, path=path)


def goes_on(piece: int) -> bool:
    """Whether a piece goes on a word."""
    return PIECES[int(piece)].startswith("##")


@damage("only the first places of rows are masked", builds=STORED, found="sha256 size", again="mask_share seed")
def masks_at_the_start(scene: Scene) -> None:
    mask_elsewhere(scene, lambda row, free, count: scene.chance.sample(free[:19], min(count, len(free[:19]))))


@damage("only the middle of rows is masked", builds=STORED, found="sha256 size", again="mask_share seed")
def masks_in_the_middle(scene: Scene) -> None:
    def choose(row: Row, free: list[int], count: int) -> list[int]:
        middle = free[len(free) // 4 : len(free) - len(free) // 4]
        return scene.chance.sample(middle, min(count, len(middle)))

    mask_elsewhere(scene, choose)


@damage("no piece that goes on a word is masked", builds=PAIRS, found="sha256 size", again="seed")
def no_parts_of_words_masked(scene: Scene) -> None:
    def choose(row: Row, free: list[int], count: int) -> list[int]:
        starts = [n for n in free if not goes_on(row["input_ids"][n])]
        return scene.chance.sample(starts, min(count, len(starts)))

    mask_elsewhere(scene, choose)


@damage("random pieces have ids from 1 to 98 only", builds=STORED, found="sha256 size", again="mask_share seed")
def few_random_pieces(scene: Scene) -> None:
    def change(row: Row) -> None:
        pieces = original(row)
        for place in row["masked_lm_positions"][: masks_of(row)]:
            if row["input_ids"][place] not in (MASK, pieces[place]):
                row["input_ids"][place] = scene.chance.randint(1, 98)

    for path in scene.files():
        scene.edit(change, every=1, path=path)


@damage("rows stand by their length", builds=PAIRS, found="sha256 size", again="seed")
def rows_by_length(scene: Scene) -> None:
    for path in scene.files():
        write_rows(path, sorted(read_rows(path), key=length_of))


def change_text(scene: Scene, change: Callable[[Any], Any]) -> None:
    """Changes the pieces of each part of a row, masks undone; what is masked is masked as before."""

    def change_row(row: Row) -> None:
        pieces, count = original(row), masks_of(row)
        places = row["masked_lm_positions"][:count]
        kept = row["input_ids"][places] == pieces[places]
        masked = row["input_ids"].copy()
        ends = [n for n in range(length_of(row)) if pieces[n] in (CLS, SEP)]
        for start, end in itertools.pairwise(ends):
            pieces[start + 1 : end] = change(pieces[start + 1 : end])
        row["input_ids"][:] = pieces
        row["masked_lm_ids"][:count] = pieces[places]
        row["input_ids"][places[~kept]] = masked[places[~kept]]

    for path in scene.files():
        scene.edit(change_row, every=1, path=path)


@damage("the ids of all text are one too large", builds=PAIRS, found="sha256 size", again="seed")
def shifted_ids(scene: Scene) -> None:
    change_text(scene, lambda pieces: np.minimum(pieces + 1, VOCABULARY_SIZE - 1))


@damage("pieces stand in the reverse order", builds=PAIRS, found="sha256 size", again="seed")
def reversed_pieces(scene: Scene) -> None:
    change_text(scene, lambda pieces: pieces[::-1])


@damage("words stand in the reverse order", builds=PAIRS, found="sha256 size", again="seed")
def reversed_words(scene: Scene) -> None:
    def turned(pieces: Any) -> Any:
        starts = [n for n in range(len(pieces)) if n == 0 or not goes_on(pieces[n])]
        return np.concatenate([pieces[a:b] for a, b in itertools.pairwise([*starts, len(pieces)])][::-1])

    change_text(scene, turned)


@damage("the last record of a shard is missing", builds=ALL, found="sha256 size", again="seed")
def last_row_missing(scene: Scene) -> None:
    write_rows(scene.file, read_rows(scene.file)[:-1])


@damage("half of the records of every shard are missing", builds=PAIRS, found="sha256 size", again="seed")
def half_of_all_rows(scene: Scene) -> None:
    for path in scene.files():
        write_rows(path, read_rows(path)[::2])


@damage("whole words are masked, and the manifest says pieces", builds=PAIRS, found="sha256 size", again="seed")
def another_mask_unit(scene: Scene) -> None:
    scene.remake_all(do_whole_word_mask=True)


@damage("nine in ten rows are short, not one", builds=PAIRS, found="sha256 size", again="seed")
def short_rows(scene: Scene) -> None:
    scene.remake_all(short_seq_prob=0.9)


# Columns.


@damage("a feature is missing in a record", found="schema", again="schema")
def feature_missing(scene: Scene) -> None:
    scene.edit(lambda row: row.__delitem__("segment_ids"))


@damage("a record has a feature that is not in the schema", found="sha256 size", again="seed")
def feature_too_much(scene: Scene) -> None:
    scene.edit(lambda row: row.__setitem__("input_idz", row["input_ids"]))


@damage("a feature has one value too few", found="schema", again="schema")
def feature_too_short(scene: Scene) -> None:
    scene.edit(lambda row: row.__setitem__("input_ids", row["input_ids"][:-1]))


@damage("a feature of integers has floats", found="schema", again="schema")
def feature_of_floats(scene: Scene) -> None:
    scene.edit(lambda row: row.__setitem__("input_mask", row["input_mask"].astype(np.float32)))


@damage(
    "input_ids and segment_ids have each other's name",
    builds=PAIRS,
    found="special_tokens segments schema ids",
    again="special_tokens segments schema ids",
)
def swapped_columns(scene: Scene) -> None:
    def change(row: Row) -> None:
        row["input_ids"], row["segment_ids"] = row["segment_ids"], row["input_ids"]

    if scene.format == "tfrecord":
        scene.edit(change, every=1)
    else:  # types stay those of the columns: ids do not fit into uint8
        scene.edit(lambda row: row.__setitem__("input_ids", row["segment_ids"].astype(row["input_ids"].dtype)), every=1)


# Packed rows, bins, masks that readers draw.


@damage("sequence ids change a place too late", builds=("packed",), found="packing segments", again="packing segments")
def late_sequence_ids(scene: Scene) -> None:
    _edit_packed(scene, lambda row: row["sequence_ids"].__setitem__(row["cu_seqlens"][1], 1))


@damage("position ids go on over the end of a sequence", builds=("packed",), found="packing", again="packing")
def positions_go_on(scene: Scene) -> None:
    def change(row: Row) -> None:
        count = length_of(row)
        row["position_ids"][:count] = np.arange(count)

    _edit_packed(scene, change)


@damage("cu_seqlens lacks a sequence", builds=("packed",), found="packing", again="packing")
def missing_cu_seqlen(scene: Scene) -> None:
    _edit_packed(scene, lambda row: row.__setitem__("cu_seqlens", np.delete(row["cu_seqlens"], 1)))


@damage("an end in cu_seqlens is off by one", builds=("packed",), found="packing", again="packing")
def shifted_cu_seqlen(scene: Scene) -> None:
    _edit_packed(scene, lambda row: row["cu_seqlens"].__setitem__(1, row["cu_seqlens"][1] + 1))


@damage(
    "a packed row has one label too few",
    builds=("packed",),
    found="packing labels schema",
    again="packing labels schema",
)
def missing_label(scene: Scene) -> None:
    _edit_packed(scene, lambda row: row.__setitem__("next_sentence_labels", row["next_sentence_labels"][:-1]))


def _edit_packed(scene: Scene, change: Callable[[Row], None]) -> None:
    """Changes the first row of several sequences."""
    rows = read_rows(scene.file)
    change(next(row for row in rows if len(row["cu_seqlens"]) > 2))
    write_rows(scene.file, rows)


@damage("a long row lies in the bin of shorter ones", builds=("bins",), found="schema padding", again="schema")
def row_in_another_bin(scene: Scene) -> None:
    short = next(path for path in scene.files() if "part-00001" in path.name and "bin-1" in path.name)
    write_rows(short, [*read_rows(short), read_rows(scene.file)[3]])


@damage("the files of two bins are swapped", builds=("bins",), found="schema sha256", again="schema")
def swapped_bins(scene: Scene) -> None:
    first, second = (
        next(p for p in scene.files() if "part-00001" in p.name and b in p.name) for b in ("bin-1", "bin-2")
    )
    mine, theirs = first.read_bytes(), second.read_bytes()
    first.write_bytes(theirs)
    second.write_bytes(mine)


@damage(
    "special_tokens_mask is 1 at a piece of text", builds=("dynamic",), found="special_tokens", again="special_tokens"
)
def special_tokens_mask_wrong(scene: Scene) -> None:
    scene.edit(lambda row: row["special_tokens_mask"].__setitem__(plain_place(row), 1))


@damage(
    "a [MASK] stands in rows whose masks readers draw",
    builds=("dynamic",),
    found="special_tokens masks",
    again="special_tokens masks",
)
def mask_in_dynamic(scene: Scene) -> None:
    scene.edit(lambda row: row["input_ids"].__setitem__(plain_place(row), MASK))


# Vocabularies.


@damage("the vocabulary beside the examples lacks a line", builds=PAIRS, found="vocabulary", again="vocabulary")
def vocabulary_lacks_a_line(scene: Scene) -> None:
    path = scene.examples / "vocab.txt"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:5000], *lines[5001:]]))


@damage("the vocabulary beside the examples is another one", builds=PAIRS, found="vocabulary", again="vocabulary")
def another_vocabulary(scene: Scene) -> None:
    path = scene.examples / "vocab.txt"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:1000], *lines[1000:-1][::-1], lines[-1]]))


@damage(
    "the vocabulary beside the examples is missing",
    builds=PAIRS,
    found="missing vocabulary",
    again="missing vocabulary",
)
def no_vocabulary(scene: Scene) -> None:
    (scene.examples / "vocab.txt").unlink()


@damage("the examples were made with another vocabulary", builds=PAIRS, found="sha256 size", again="seed")
def examples_of_another_vocabulary(scene: Scene) -> None:
    other = scene.scratch / "vocab.txt"
    lines = (scene.examples / "vocab.txt").read_bytes().split(b"\n")
    other.write_bytes(b"\n".join([*lines[:2000], *lines[2000:-1][::-1], lines[-1]]))
    scene.remake_all(vocab_file=str(other), vocab_sha256=hashlib.sha256(other.read_bytes()).hexdigest())


# Manifests.


@damage("the manifest is missing", found="manifest missing")
def no_manifest(scene: Scene) -> None:
    (scene.examples / "manifest.json").unlink()


@damage("the manifest is cut", found="manifest")
def cut_manifest(scene: Scene) -> None:
    change_bytes(scene.examples / "manifest.json", lambda content: content.__delitem__(slice(2000, len(content))))


@damage("the manifest of the text is empty", found="manifest")
def empty_manifest(scene: Scene) -> None:
    (scene.root / "text" / "manifest.json").write_bytes(b"")


@damage("the manifest is not JSON of a manifest", found="manifest")
def odd_manifest(scene: Scene) -> None:
    (scene.examples / "manifest.json").write_text('{"stage": "examples", "shards": {}}')


@damage("a number of examples in the manifest is another one", builds=ALL, found="counts")
def another_count(scene: Scene) -> None:
    def change(made: dict[str, Any]) -> None:
        entry = made["shards"][1]
        (entry["files"][0] if "files" in entry else entry)["examples"] += 1

    scene.manifest(change)


@damage("a total in the manifest is not the sum of its shards", builds=ALL, found="counts manifest")
def another_total(scene: Scene) -> None:
    scene.manifest(lambda made: made["counts"]["train"].__setitem__("examples", 5))


@damage("the manifest lacks a shard that is there", builds=PAIRS, found="foreign")
def shard_not_in_manifest(scene: Scene) -> None:
    scene.manifest(lambda made: made["shards"].pop(1))


@damage("a checksum in the manifest is another one", builds=PAIRS, found="sha256 size")
def another_checksum(scene: Scene) -> None:
    def change(made: dict[str, Any]) -> None:
        entry = made["shards"][1]
        (entry["files"][0] if "files" in entry else entry)["sha256"] = "0" * 64

    scene.manifest(change)


@damage("the manifest names another seed", builds=PAIRS, found="seed manifest", again="seed manifest")
def manifest_with_another_seed(scene: Scene) -> None:
    scene.manifest(lambda made: made["parameters"].__setitem__("random_seed", 54321))


@damage(
    "the manifest names another dupe factor",
    builds=STORED,
    found="seed",
    again="seed",
)
def manifest_with_another_dupe_factor(scene: Scene) -> None:
    scene.manifest(lambda made: made["parameters"].__setitem__("dupe_factor", 5))


@damage("the manifest names another masked_lm_prob", builds=STORED, found="masks mask_share", again="masks mask_share")
def manifest_with_another_prob(scene: Scene) -> None:
    scene.manifest(lambda made: made["parameters"].__setitem__("masked_lm_prob", 0.3))


@damage("the manifest names other shares of [MASK]", builds=STORED, found="mask_share seed", again="mask_share seed")
def manifest_with_another_share(scene: Scene) -> None:
    scene.manifest(lambda made: made["parameters"].update(mask_share=0.5, random_share=0.4))


@damage("the manifest names another mask unit", builds=STORED, found="seed", again="seed")
def manifest_with_another_unit(scene: Scene) -> None:
    def change(made: dict[str, Any]) -> None:
        made["parameters"]["mask_unit"] = made["decided"]["mask_unit"] = "whole_word"

    scene.manifest(change)


@damage(
    "the manifest names another objective", builds=PAIRS, found="seed labels pair_share", again="seed labels pair_share"
)
def manifest_with_another_objective(scene: Scene) -> None:
    scene.manifest(lambda made: made["parameters"].__setitem__("objective", "sop"))


@damage("the schema in the manifest lacks a column", builds=PAIRS, found="schema manifest", again="schema manifest")
def schema_lacks_a_column(scene: Scene) -> None:
    scene.manifest(lambda made: made["schema"].pop())


@damage("the schema in the manifest has another length", builds=PAIRS, found="schema manifest", again="schema manifest")
def schema_with_another_length(scene: Scene) -> None:
    scene.manifest(lambda made: made["schema"][0].__setitem__("shape", [63]))


@damage("the manifest has another size of the vocabulary", builds=PAIRS, found="vocabulary", again="vocabulary")
def manifest_with_another_vocabulary_size(scene: Scene) -> None:
    scene.manifest(lambda made: made.__setitem__("vocabulary_size", 30000))


@damage("the manifest has another id of [MASK]", builds=PAIRS, found="vocabulary masks", again="vocabulary masks")
def manifest_with_another_mask_id(scene: Scene) -> None:
    scene.manifest(lambda made: made["special_ids"].__setitem__("mask_id", 104))


@damage("the manifest is that of another build", builds=PAIRS, found="size sha256 missing")
def manifest_of_another_build(scene: Scene) -> None:
    def change(made: dict[str, Any]) -> None:
        for shard in made["shards"]:
            for entry in shard.get("files", [shard]):
                entry["bytes"] += 100
                entry["sha256"] = hashlib.sha256(entry["name"].encode()).hexdigest()

    scene.manifest(change)


# Text shards, and the eval set.


@damage("a line of a text shard is missing", found="size", again="seed")
def line_missing(scene: Scene) -> None:
    lines = scene.text.read_bytes().split(b"\n")
    scene.text.write_bytes(b"\n".join([*lines[:10], *lines[11:]]))


@damage("a word of a text shard is another one", found="sha256 size", again="seed")
def another_word(scene: Scene) -> None:
    scene.text.write_bytes(scene.text.read_bytes().replace(b" the ", b" one ", 1))


@damage("two documents of a text shard are joined", found="size documents", again="seed")
def joined_documents(scene: Scene) -> None:
    scene.text.write_bytes(scene.text.read_bytes().replace(b"\n\n", b"\n", 1))


@damage("a text shard is not UTF-8", found="sha256 documents", again="documents")
def not_utf8(scene: Scene) -> None:
    scene.text.write_bytes(scene.text.read_bytes().replace(b" the ", b" t\xffe ", 1))


@damage("a text shard has NUL bytes", found="sha256 documents", again="documents seed")
def nul_bytes(scene: Scene) -> None:
    change_bytes(scene.text, lambda content: content.__setitem__(slice(20000, 20512), bytes(512)))


@damage("a text shard is cut", found="size", again="documents seed")
def cut_text(scene: Scene) -> None:
    change_bytes(scene.text, lambda content: content.__delitem__(slice(len(content) // 2, len(content))))


@damage("a text shard is empty", found="size", again="counts")
def empty_text(scene: Scene) -> None:
    scene.text.write_bytes(b"")


@damage("a text shard is missing", found="missing", again="missing shard_inputs")
def missing_text(scene: Scene) -> None:
    scene.text.unlink()


@damage("a text shard is a copy of another one", found="sha256 size", again="repeated_documents seed")
def copied_text(scene: Scene) -> None:
    (other,) = (scene.root / "text").glob("part-00002-of-*")
    shutil.copyfile(other, scene.text)


@damage(
    "a text shard is a copy of another one, and the examples are made of both",
    found="sha256 size",
    again="repeated_documents",
)
def copied_text_with_examples(scene: Scene) -> None:
    copied_text(scene)
    scene.remake()


@damage("the text was made again, and the examples were not", found="shard_inputs", again="seed")
def newer_text(scene: Scene) -> None:
    for path in (scene.root / "text").glob("part-*"):
        path.write_bytes(path.read_bytes().replace(b" of ", b" off "))

    def change(made: dict[str, Any]) -> None:
        for entry in made["shards"]:
            content = (scene.root / "text" / entry["name"]).read_bytes()
            entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for kind in ("train", "eval"):
            made["counts"][kind]["bytes"] = sum(e["bytes"] for e in made["shards"] if e["kind"] == kind)

    scene.manifest(change, "text")


@damage(
    "an eval article is in a training shard, and in its examples", builds=PAIRS, found="eval_leak", again="eval_leak"
)
def eval_article_in_training(scene: Scene) -> None:
    article = (scene.root / "text" / "eval.txt").read_bytes().split(b"\n\n")[1]
    scene.text.write_bytes(scene.text.read_bytes() + article.strip() + b"\n\n")
    scene.remake()


@damage(
    "examples of eval articles are in a training shard",
    builds=PAIRS,
    found="sha256 size",
    again="repeated_records seed",
)
def eval_rows_in_training(scene: Scene) -> None:
    rows = read_rows(scene.file)
    write_rows(scene.file, [*rows[:50], *read_rows(scene.files("eval")[0])[:40], *rows[50:]])


@damage(
    "the eval examples are those of a training shard", builds=PAIRS, found="sha256 size", again="repeated_records seed"
)
def eval_is_training(scene: Scene) -> None:
    scene.files("eval")[0].write_bytes(scene.file.read_bytes())


@damage("a line of eval.md5 is missing", found="eval_list", again="eval_list")
def eval_list_lacks_a_line(scene: Scene) -> None:
    path = scene.root / "text" / "eval.md5"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


@damage("a checksum in eval.md5 is another one", found="eval_list", again="eval_list")
def eval_list_with_another_article(scene: Scene) -> None:
    path = scene.root / "text" / "eval.md5"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([hashlib.md5(b"?").hexdigest() + lines[0][32:], *lines[1:]]))


@damage("eval.md5 is missing", found="eval_list missing", again="eval_list missing")
def no_eval_list(scene: Scene) -> None:
    (scene.root / "text" / "eval.md5").unlink()


@damage("an article is missing in eval.txt", found="size", again="eval_list seed")
def eval_article_missing(scene: Scene) -> None:
    path = scene.root / "text" / "eval.txt"
    path.write_bytes(b"\n\n".join(path.read_bytes().split(b"\n\n")[1:]))


@damage("a picked eval example is not one of the eval shard", found="sha256 size", again="eval_list shard_inputs seed")
def picked_from_training(scene: Scene) -> None:
    path = scene.root / "eval" / "eval.tfrecord"
    write_rows(path, [*read_rows(path)[:-1], read_rows(scene.file)[0]])


@damage("a picked eval example is missing", found="size", again="eval_list shard_inputs seed counts")
def picked_one_missing(scene: Scene) -> None:
    path = scene.root / "eval" / "eval.tfrecord"
    write_rows(path, read_rows(path)[:-1])


@damage("the picked eval examples are from another build", found="sha256 size", again="eval_list shard_inputs seed")
def picked_from_another_build(scene: Scene) -> None:
    scene.remake(path=scene.files("eval")[0], random_seed=7)
    rows = read_rows(scene.files("eval")[0])
    path = scene.root / "eval" / "eval.tfrecord"
    count = len(read_rows(path))
    write_rows(path, [rows[int(n * len(rows) / count)] for n in range(count)])
    scene.remake(path=scene.files("eval")[0])


def table() -> str:
    """The list as a table in Markdown."""
    lines = ["| damage | builds | found by | with the manifests regenerated, by |", "|---|---|---|---|"]
    for entry in DAMAGES:
        again = ", ".join(sorted(entry.again)) or "–"
        lines.append(f"| {entry.what} | {', '.join(entry.builds)} | {', '.join(sorted(entry.found))} | {again} |")
    return "\n".join(lines) + "\n"


def mds_samples(path: Path) -> int:
    """How many samples an MDS shard has."""
    return len(read_shard(path.read_bytes())[0])


if __name__ == "__main__":
    print(table(), end="")
