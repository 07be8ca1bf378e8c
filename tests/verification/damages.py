"""Damages that are done to good builds: each says what it does, to which builds, and which checks must find it.

A damage is done to a copy of a build, which is verified as it is, and once more with the manifests regenerated over the
damage (regenerating.py).
"""

import dataclasses
import gzip
import hashlib
import json
import random
import re
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from data_sets.whole_builds import Made, files_made
from sample_files import FRAME_HEAD, Row, frames, read_rows, records_of, write_rows

from maskmill.records.tfrecord import frame

# Builds of BERT's pairs in each format; then of other objectives and ways to fill rows. damaged_copies.py makes them.
PAIRS, STORED = "tfrecord parquet mds", "tfrecord parquet mds packed bins"  # STORED: with masks in the files
PADDED, OF_PAIRS, ALL = "tfrecord parquet mds bins", f"{PAIRS} packed", f"{STORED} dynamic"
CHANGED = "sha256 size"  # what finds any change of a file's bytes

PAD, CLS, SEP, MASK, SOME, OTHER = 0, 101, 102, 103, 2003, 2004
VOCABULARY_SIZE = 30522

Apply = Callable[["Scene"], object]
Change = Callable[[Row], object]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Damage:
    """Something that happens to a build.

    Attributes:
      what: what it does, for people.
      apply: does it.
      builds: the builds that it is done to, by name.
      found: the checks of which one must find it, as it is.
      again: the checks of which one must find it with the manifests regenerated; empty: then nothing is wrong any more.
      of_rows: whether it must be found without the text, too.
      is_quick: whether `make test` runs it.
    """

    what: str
    apply: Apply
    builds: tuple[str, ...]
    found: frozenset[str]
    again: frozenset[str]
    of_rows: bool
    is_quick: bool

    @property
    def name(self) -> str:
        """What tests call it."""
        return re.sub(r"\W+", "_", self.what).strip("_")


DAMAGES: list[Damage] = []


def damage(
    what: str,
    apply: Apply,
    found: str,
    again: str | None = None,
    builds: str = "tfrecord",
    *,
    of_rows: bool = False,
    is_quick: bool = False,
) -> None:
    """Adds a damage to the list; names stand between spaces; again: None for those of `found`."""
    names = [frozenset(text.split()) for text in (found, found if again is None else again)]
    DAMAGES.append(
        Damage(
            what=what,
            apply=apply,
            builds=tuple(builds.split()),
            found=names[0],
            again=names[1],
            of_rows=of_rows,
            is_quick=is_quick,
        )
    )


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
        return max((p for p in self.files() if p.name.startswith("part-00001")), key=lambda p: p.stat().st_size)

    @property
    def other(self) -> Path:
        """The same of the third shard."""
        return self.file.with_name(self.file.name.replace("part-00001", "part-00002"))

    def text(self, shard: int = 1) -> Path:
        """The text of the second shard, or of another."""
        (path,) = (self.root / "text").glob(f"part-{shard:05}-of-*")
        return path

    def edit(self, change: Change, *, every: int = 0, path: Path | None = None) -> None:
        """Changes the seventh row of a file, or every n-th."""
        path = path or self.file
        rows = read_rows(path)
        for row in rows[::every] if every else rows[6:7]:
            change(row)
        write_rows(path, rows)

    def remake(self, *, path: Path | None = None, text: Path | None = None, **options: Any) -> None:
        """Makes the examples of the file's shard again with other options, or of another text under the same name."""
        path = path or self.file
        shards = {Path(shard.path).name: shard for shard in self.made.text_shards()}
        shard = next(shard for name, shard in shards.items() if path.name.startswith(name))
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


# ---- how damages are done


def content(change: Callable[[bytes], bytes], of: Callable[[Scene], Path] = lambda scene: scene.file) -> Apply:
    """Changes the content of a file."""

    def apply(scene: Scene) -> None:
        of(scene).write_bytes(change(of(scene).read_bytes()))

    return apply


def put(new: bytes, at: float, instead_of: int | None = None) -> Callable[[bytes], bytes]:
    """Writes bytes over those at a part of a file, or in place of so many."""

    def change(old: bytes) -> bytes:
        place = int(len(old) * at)
        return old[:place] + new + old[place + (len(new) if instead_of is None else instead_of) :]

    return change


def flip(at: float = 0.5) -> Callable[[bytes], bytes]:
    """Flips a bit at a part of a file."""
    return lambda old: put(bytes([old[int(len(old) * at)] ^ 4]), at)(old)


def flip_in_record(place: Callable[[int], int]) -> Apply:
    """Flips a bit of the 21st record, at a place that follows from its size."""

    def apply(scene: Scene) -> None:
        at, size = frames(scene.file)[20]
        changed = bytearray(scene.file.read_bytes())
        changed[at + place(size)] ^= 4
        scene.file.write_bytes(changed)

    return apply


def of_row(change: Change, every: int = 0) -> Apply:
    """Changes the seventh row of a file, or every n-th."""
    return lambda scene: scene.edit(change, every=every)


def everywhere(change: Change) -> Apply:
    """Changes all rows of all training files."""
    return lambda scene: [scene.edit(change, every=1, path=path) for path in scene.files()]


def of_first(is_right: Callable[[Row], bool], change: Change) -> Apply:
    """Changes the first row of a kind; it may be in another file."""

    def apply(scene: Scene) -> None:
        for path in scene.files():
            rows = read_rows(path)
            found = [row for row in rows if is_right(row)]
            if found:
                change(found[0])
                write_rows(path, rows)
                return
        raise AssertionError("there is no such row")

    return apply


def of_short_row(change: Change) -> Apply:
    """Changes the first row with room for ten more pieces, and so for a mask."""
    return of_first(lambda row: length_of(row) + 10 < len(row["input_ids"]), change)


def of_packed_row(change: Change) -> Apply:
    """Changes the first row of several sequences."""
    return of_first(lambda row: len(row["cu_seqlens"]) > 2, change)


def rows(change: Callable[[list[Row], Scene], list[Row]]) -> Apply:
    """Changes the rows of a file."""
    return lambda scene: write_rows(scene.file, change(read_rows(scene.file), scene))


def manifest(change: Callable[[dict[str, Any]], object], stage: str = "examples") -> Apply:
    """Changes a manifest."""

    def apply(scene: Scene) -> None:
        path = scene.root / stage / "manifest.json"
        made = json.loads(path.read_bytes())
        change(made)
        path.write_text(json.dumps(made, indent=1, sort_keys=True))

    return apply


def parameter(**values: Any) -> Apply:
    """Changes options in the manifest of the examples."""
    return manifest(lambda made: made["parameters"].update(values))


def assign(name: str, place: Callable[[Row], Any], value: Any) -> Change:
    """Gives a place of a column a value."""
    return lambda row: row[name].__setitem__(place(row), value)


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


def plain(row: Row) -> int:
    """A place of a row with a piece of text that is not masked, with one of text after it."""
    ids = row["input_ids"]
    masked = set(row["masked_lm_positions"][: masks_of(row)].tolist()) if "masked_lm_positions" in row else set()
    return next(
        n
        for n in range(2, length_of(row) - 3)
        if not {n, n + 1} & masked and min(ids[n], ids[n + 1]) > MASK and ids[n] not in (ids[n + 1], SOME)
    )


def mask_elsewhere(scene: Scene, choose: Callable[[list[int]], list[int]]) -> None:
    """Masks other places of all rows; each new mask has what stands at an old one: [MASK], the piece, or a random one.

    choose: of the places of a row with text those that are masked, as far as there are enough.
    """

    def change(row: Row) -> None:
        count, pieces = masks_of(row), original(row)
        places = row["masked_lm_positions"][:count]
        kinds = [None if row["input_ids"][p] == pieces[p] else row["input_ids"][p] for p in places]
        row["input_ids"][:] = pieces
        free = [n for n in range(length_of(row)) if pieces[n] not in (CLS, SEP)]
        some = choose(free)
        chosen = scene.chance.sample(some, min(count, len(some)))
        chosen = sorted([*chosen, *scene.chance.sample([n for n in free if n not in chosen], count - len(chosen))])
        for n, (place, kind) in enumerate(zip(chosen, kinds, strict=True)):
            row["masked_lm_positions"][n], row["masked_lm_ids"][n] = place, pieces[place]
            row["input_ids"][place] = pieces[place] if kind is None else kind

    everywhere(change)(scene)


# ---- files and records

damage("a bit of a record's length is flipped", flip_in_record(lambda size: 0), "framing crc")
damage("a bit of a record's data is flipped", flip_in_record(lambda size: FRAME_HEAD + size // 2), "crc", is_quick=True)
damage("a bit of a checksum of a record is flipped", flip_in_record(lambda size: FRAME_HEAD + size + 1), "crc")
damage("a bit in the middle of the file is flipped", content(flip()), CHANGED, "crc framing", "parquet packed")
damage("a bit of the file's metadata is flipped", content(flip(0.999)), CHANGED, "crc framing", "parquet")
damage("a bit of a sample is flipped", content(flip()), CHANGED, "seed ids masks schema segments", "mds dynamic")
damage(
    "pyarrow has written the file again",
    lambda scene: pq.write_table(pq.read_table(scene.file), scene.file, compression="zstd", row_group_size=100),
    CHANGED,
    "",
    "parquet packed",
)
damage(
    "the offset of a sample is changed",
    content(lambda old: old[:40] + struct.pack("<I", 5) + old[44:]),
    CHANGED,
    "framing schema",
    "mds",
)
damage(
    "the file is cut in the middle of a record",
    content(lambda old: old[: len(old) * 2 // 3 + 5]),
    "size",
    "framing schema",
    f"{PAIRS} packed",
)
damage("the file is empty", content(lambda old: b""), "size", "framing missing counts seed", ALL)
damage(
    "4 KiB in the middle of the file are zeros",
    content(put(bytes(4096), 0.5)),
    CHANGED,
    "framing crc schema masks special_tokens",
    ALL,
)
damage("bytes stand after the last record", content(lambda old: old + b"\x17" * 11), "size", "framing schema", PAIRS)
damage(
    "a record is not a tf.train.Example",
    lambda scene: scene.file.write_bytes(
        b"".join(frame(b"\x0a\x05hello" if n == 20 else record) for n, record in enumerate(records_of(scene.file)))
    ),
    "schema",
)
damage("the gzip file is cut", content(lambda old: old[: len(old) // 2]), "size", "framing", "gzip")
damage("a bit of the gzip file is flipped", content(flip()), CHANGED, "framing crc", "gzip")
damage(
    "a bit of a record is flipped before it is packed",
    content(lambda old: gzip.compress(flip(0.3)(gzip.decompress(old)), mtime=0)),
    "crc framing",
    builds="gzip",
)


def mds_index(change: Callable[[list[Any]], object]) -> Apply:
    """Changes what index.json says of the shards of MDS."""

    def edited(old: bytes) -> bytes:
        index = json.loads(old)
        change(index["shards"])
        return json.dumps(index, sort_keys=True).encode()

    return content(edited, lambda scene: scene.file.parent / "index.json")


damage(
    "index.json has another number of samples",
    mds_index(lambda shards: shards[1].update(samples=3)),
    "index",
    "",
    "mds",
)
damage("index.json is missing", lambda scene: (scene.file.parent / "index.json").unlink(), "missing", "", "mds")


def index(scene: Scene) -> Path:
    """The index of a TFRecord."""
    return Path(f"{scene.file}.idx")


damage("an index is missing", lambda scene: index(scene).unlink(), "missing", "")
damage("an index is cut", content(lambda old: old[: len(old) // 2], index), "index", "")

# ---- whole shards

damage(
    "a shard is missing",
    lambda scene: scene.file.unlink(),
    "missing",
    "manifest shard_inputs foreign seed counts",
    ALL,
    is_quick=True,
)
damage(
    "a shard is a copy of another one",
    lambda scene: shutil.copyfile(scene.other, scene.file),
    CHANGED,
    "repeated_records seed",
    ALL,
    of_rows=True,
)
damage(
    "a shard has another name",
    lambda scene: scene.file.rename(scene.file.with_name(scene.file.name.replace("part-00001", "part-00017"))),
    "missing foreign",
    "missing foreign shard_inputs manifest",
    PAIRS,
)
damage(
    "a shard of another build lies among the files",
    lambda scene: shutil.copyfile(
        scene.file, scene.file.with_name(scene.file.name.replace("part-00001", "part-00003").replace("-of-0", "-of-1"))
    ),
    "foreign",
    "foreign missing repeated_records seed",
    PAIRS,
)
damage(
    "half of a shard is from another one",
    rows(lambda all_rows, scene: [*all_rows[: len(all_rows) // 2], *read_rows(scene.other)[: len(all_rows) // 2]]),
    CHANGED,
    "repeated_records seed",
    f"{PAIRS} packed",
    of_rows=True,
)
damage("a shard was made with another seed", lambda scene: scene.remake(random_seed=99), CHANGED, "seed", STORED)
damage(
    "documents were used six times, not twice", lambda scene: scene.remake_all(dupe_factor=6), CHANGED, "seed", PAIRS
)
damage(
    "nine in ten rows are short, not one", lambda scene: scene.remake_all(short_seq_prob=0.9), CHANGED, "seed", PAIRS
)
damage(
    "whole words are masked, not pieces",
    lambda scene: scene.remake_all(do_whole_word_mask=True),
    CHANGED,
    "seed",
    "tfrecord",
)
damage(
    "a tenth of the pieces is masked, not 15 %",
    lambda scene: scene.remake_all(masked_lm_prob=0.1),
    "mask_share masks seed",
    "mask_share masks seed",
    STORED,
)
damage(
    "the rows of a shard are in another order",
    rows(lambda all_rows, scene: scene.chance.sample(all_rows, len(all_rows))),
    CHANGED,
    "seed",
    PAIRS,
)
damage(
    "a row is there twice",
    rows(lambda all_rows, scene: [*all_rows[:10], all_rows[3], *all_rows[10:]]),
    CHANGED,
    "repeated_records seed",
    ALL,
    of_rows=True,
)
damage("the last row is missing", rows(lambda all_rows, scene: all_rows[:-1]), CHANGED, "seed", ALL)
damage(
    "examples of the eval set are in a training shard",
    rows(lambda all_rows, scene: [*all_rows[:50], *read_rows(scene.files("eval")[0])[:40], *all_rows[50:]]),
    CHANGED,
    "repeated_records seed",
    PAIRS,
    of_rows=True,
)

# ---- what stands in rows

damage("an id is not in the vocabulary", of_row(assign("input_ids", plain, VOCABULARY_SIZE)), "ids", builds=STORED)
damage("an id is negative", of_row(assign("input_ids", plain, -7)), "ids schema")
damage(
    "a masked id is not in the vocabulary",
    of_row(assign("masked_lm_ids", lambda row: 0, VOCABULARY_SIZE + 5)),
    "ids masks",
    builds=STORED,
)
damage("a piece of text is another one", of_row(assign("input_ids", plain, SOME)), CHANGED, "seed", ALL)
damage("the padding id stands among the pieces", of_row(assign("input_ids", plain, PAD)), "padding", builds=ALL)
damage("input_mask is one too long", of_short_row(assign("input_mask", length_of, 1)), "padding", builds=PADDED)
damage(
    "input_mask is one too short",
    of_row(assign("input_mask", lambda row: length_of(row) - 1, 0)),
    "padding special_tokens",
    builds=STORED,
)
damage(
    "a piece stands in the padding",
    of_short_row(assign("input_ids", lambda row: length_of(row) + 1, SOME)),
    "padding",
    builds=PADDED,
)
damage("the [CLS] of a row is missing", of_row(assign("input_ids", lambda row: 0, SOME)), "special_tokens", builds=ALL)
damage(
    "the last [SEP] of a row is missing",
    of_row(assign("input_ids", lambda row: length_of(row) - 1, SOME)),
    "special_tokens",
    builds=ALL,
)
damage(
    "the [SEP] between the parts is missing",
    of_row(assign("input_ids", lambda row: int(np.flatnonzero(row["input_ids"] == SEP)[0]), SOME)),
    "special_tokens segments",
    builds=PAIRS,
)
damage("a [SEP] stands within a part", of_row(assign("input_ids", plain, SEP)), "special_tokens segments", builds=PAIRS)


def inverted(name: str) -> Change:
    """Makes 1 of 0, and 0 of 1."""

    def change(row: Row) -> None:
        row[name][: length_of(row)] = 1 - row[name][: length_of(row)]

    return change


damage("segment ids are inverted", of_row(inverted("segment_ids"), every=1), "segments", builds=OF_PAIRS)
damage(
    "segment ids are 0 everywhere", of_row(lambda row: row["segment_ids"].fill(0), every=1), "segments", builds=OF_PAIRS
)
damage("a label of a pair is 2", of_row(assign("next_sentence_labels", lambda row: 0, 2)), "labels", builds=OF_PAIRS)
damage("the labels of pairs are inverted", everywhere(inverted("next_sentence_labels")), CHANGED, "seed", OF_PAIRS)
damage(
    "all labels of a shard are 0",
    of_row(lambda row: row["next_sentence_labels"].fill(0), every=1),
    "pair_share",
    "pair_share seed",
    OF_PAIRS,
    of_rows=True,
)

# ---- masks


def shifted(row: Row) -> None:
    """Shifts the masked positions by one."""
    row["masked_lm_positions"][: masks_of(row)] += 1


def swapped_masks(row: Row) -> None:
    """Swaps the first two masks."""
    for name in ("masked_lm_positions", "masked_lm_ids"):
        row[name][[0, 1]] = row[name][[1, 0]]


def masked_at(place: Callable[[Row], int], which: int, piece: int) -> Change:
    """Masks a place in place of the first or the last mask."""

    def change(row: Row) -> None:
        at = which % masks_of(row)
        row["masked_lm_positions"][at], row["masked_lm_ids"][at], row["input_ids"][place(row)] = place(row), piece, MASK

    return change


def of_masked_text(row: Row) -> None:
    """Makes the masked ids those of the masked text."""
    count = masks_of(row)
    row["masked_lm_ids"][:count] = row["input_ids"][row["masked_lm_positions"][:count]]


def without_masks(row: Row) -> None:
    """Undoes the masks of a row."""
    row["input_ids"][:] = original(row)
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
        row[name].fill(0)


def only_mask_pieces(row: Row) -> None:
    """Puts [MASK] at every masked position."""
    row["input_ids"][row["masked_lm_positions"][: masks_of(row)]] = MASK


def middle_of(free: list[int]) -> list[int]:
    """The middle half of places."""
    return free[len(free) // 4 : len(free) - len(free) // 4]


MASKS = {"found": "masks special_tokens", "builds": STORED}
damage("the masked positions are shifted by one", of_row(shifted, every=1), **MASKS, is_quick=True)
damage(
    "the masked ids are swapped",
    of_row(lambda row: row["masked_lm_ids"].__setitem__([0, 1], row["masked_lm_ids"][[1, 0]]), every=1),
    CHANGED,
    "seed",
    STORED,
)
damage("the masked ids are those of the masked text", of_row(of_masked_text, every=1), **MASKS)
damage("a masked place has weight 0", of_row(assign("masked_lm_weights", lambda row: 0, 0.0)), **MASKS)
damage("a weight is 0.5", of_row(assign("masked_lm_weights", lambda row: 0, 0.5)), **MASKS)
damage("the weight after the last mask is 1", of_short_row(assign("masked_lm_weights", masks_of, 1.0)), **MASKS)
damage("masked positions are not in order", of_row(swapped_masks), **MASKS)
damage(
    "a masked position lies in the padding",
    of_short_row(lambda row: assign("masked_lm_positions", lambda r: masks_of(r) - 1, length_of(row) + 1)(row)),
    "masks",
    builds=PADDED,
)
damage("the [CLS] is masked", of_row(masked_at(lambda row: 0, 0, CLS)), **MASKS)
damage("a [SEP] is masked", of_row(masked_at(lambda row: length_of(row) - 1, -1, SEP)), **MASKS)
damage("a [MASK] stands where nothing is predicted", of_row(assign("input_ids", plain, MASK)), **MASKS)
damage("masks are missing in every third row", of_row(without_masks, every=3), "masks", "masks seed", STORED)
damage("every masked place gets [MASK]", of_row(only_mask_pieces, every=1), "mask_share", builds=STORED)
damage(
    "only the first places of rows are masked",
    lambda scene: mask_elsewhere(scene, lambda free: free[:19]),
    CHANGED,
    "mask_share seed masks",
    STORED,
    of_rows=True,
)
damage(
    "only the middle of rows is masked",
    lambda scene: mask_elsewhere(scene, middle_of),
    CHANGED,
    "mask_share seed masks",
    STORED,
    of_rows=True,
)

# ---- columns, packed rows, bins, masks that readers draw

damage("a feature is missing in a record", of_row(lambda row: row.__delitem__("segment_ids")), "schema")
damage(
    "a feature has one value too few", of_row(lambda row: row.__setitem__("input_ids", row["input_ids"][:-1])), "schema"
)
damage(
    "a feature of integers has floats",
    of_row(lambda row: row.__setitem__("input_mask", row["input_mask"].astype(np.float32))),
    "schema",
)
damage(
    "input_ids has what segment_ids has",
    of_row(lambda row: row.__setitem__("input_ids", row["segment_ids"].astype(row["input_ids"].dtype)), every=1),
    "special_tokens segments schema ids padding masks",
    builds=PAIRS,
)
damage(
    "sequence ids change a place too late",
    of_packed_row(lambda row: row["sequence_ids"].__setitem__(row["cu_seqlens"][1], 1)),
    "packing",
    builds="packed",
)
damage(
    "position ids go on over the end of a sequence",
    of_packed_row(lambda row: row["position_ids"].__setitem__(slice(length_of(row)), np.arange(length_of(row)))),
    "packing",
    builds="packed",
)
damage(
    "cu_seqlens lacks a sequence",
    of_packed_row(lambda row: row.__setitem__("cu_seqlens", np.delete(row["cu_seqlens"], 1))),
    "packing",
    builds="packed",
)
damage(
    "a packed row has one label too few",
    of_packed_row(lambda row: row.__setitem__("next_sentence_labels", row["next_sentence_labels"][:-1])),
    "packing labels schema",
    builds="packed",
)


def bin_file(scene: Scene, number: int) -> Path:
    """A file of a bin."""
    return next(path for path in scene.files() if "part-00001" in path.name and f"bin-{number}" in path.name)


damage(
    "a long row lies in the bin of shorter ones",
    lambda scene: write_rows(bin_file(scene, 1), [*read_rows(bin_file(scene, 1)), read_rows(scene.file)[3]]),
    "schema padding",
    builds="bins",
)
damage(
    "special_tokens_mask is 1 at a piece of text",
    of_row(assign("special_tokens_mask", plain, 1)),
    "special_tokens",
    builds="dynamic",
)
damage(
    "a [MASK] stands in rows whose masks readers draw",
    of_row(assign("input_ids", plain, MASK)),
    "special_tokens masks",
    builds="dynamic",
)

# ---- vocabularies and manifests


def vocabulary(scene: Scene) -> Path:
    """The copy of the vocabulary."""
    return scene.examples / "vocab.txt"


def turned(old: bytes) -> bytes:
    """Puts the later lines of a vocabulary in the reverse order."""
    lines = old.split(b"\n")
    return b"\n".join([*lines[:2000], *lines[2000:-1][::-1], lines[-1]])


def of_another_vocabulary(scene: Scene) -> None:
    """Makes the examples with another vocabulary."""
    other = scene.scratch / "vocab.txt"
    other.write_bytes(turned(vocabulary(scene).read_bytes()))
    scene.remake_all(vocab_file=str(other), vocab_sha256=hashlib.sha256(other.read_bytes()).hexdigest())


damage("the vocabulary beside the examples is another one", content(turned, vocabulary), "vocabulary", builds=PAIRS)
damage(
    "the vocabulary beside the examples is missing",
    lambda scene: vocabulary(scene).unlink(),
    "missing vocabulary",
    builds=PAIRS,
)
damage("the examples were made with another vocabulary", of_another_vocabulary, CHANGED, "seed", PAIRS)


def manifest_file(scene: Scene) -> Path:
    """The manifest of the examples."""
    return scene.examples / "manifest.json"


def entry_of(made: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a file."""
    entry = made["shards"][1]
    return entry["files"][0] if "files" in entry else entry


damage("the manifest is missing", lambda scene: manifest_file(scene).unlink(), "manifest missing", "")
damage("the manifest is cut", content(lambda old: old[:2000], manifest_file), "manifest", "")
damage(
    "the manifest is not JSON of a manifest",
    content(lambda old: b'{"stage": "examples", "shards": {}}', manifest_file),
    "manifest",
    "",
)
damage(
    "a number of examples in the manifest is another one",
    manifest(lambda made: entry_of(made).update(examples=entry_of(made)["examples"] + 1)),
    "counts",
    "",
    ALL,
)
damage(
    "a total in the manifest is not the sum of its shards",
    manifest(lambda made: made["counts"]["train"].update(examples=5)),
    "counts manifest",
    "",
    ALL,
)
damage("the manifest lacks a shard that is there", manifest(lambda made: made["shards"].pop(1)), "foreign", "", PAIRS)
damage(
    "a checksum in the manifest is another one",
    manifest(lambda made: entry_of(made).update(sha256="0" * 64)),
    "sha256",
    "",
    PAIRS,
)
damage("the manifest names another seed", parameter(random_seed=54321), "seed manifest", builds=PAIRS)
damage("the manifest names another dupe factor", parameter(dupe_factor=5), "seed", builds=STORED)
damage(
    "the manifest names another masked_lm_prob", parameter(masked_lm_prob=0.3), "masks mask_share seed", builds=STORED
)
damage(
    "the manifest names other shares of [MASK]",
    parameter(mask_share=0.5, random_share=0.4),
    "mask_share seed",
    builds=STORED,
)
damage(
    "the manifest names another mask unit",
    manifest(lambda made: [made[place].update(mask_unit="whole_word") for place in ("parameters", "decided")]),
    "seed",
    builds=STORED,
)
damage("the manifest names another objective", parameter(objective="sop"), "seed pair_share", builds=PAIRS)
damage(
    "the schema in the manifest lacks a column",
    manifest(lambda made: made["schema"].pop()),
    "schema manifest",
    builds=PAIRS,
)
damage(
    "the manifest has another size of the vocabulary",
    manifest(lambda made: made.update(vocabulary_size=30000)),
    "vocabulary",
    builds=PAIRS,
)

# ---- text shards, and the eval set


def text(change: Callable[[bytes], bytes]) -> Apply:
    """Changes a text shard."""
    return content(change, lambda scene: scene.text())


def twice(scene: Scene) -> None:
    """Copies a text shard over another one."""
    shutil.copyfile(scene.text(2), scene.text())


def newer_text(scene: Scene) -> None:
    """Makes the text again, and its manifest."""
    for path in (scene.root / "text").glob("part-*"):
        path.write_bytes(path.read_bytes().replace(b" of ", b" off "))

    def change(made: dict[str, Any]) -> None:
        for entry in made["shards"]:
            new = (scene.root / "text" / entry["name"]).read_bytes()
            entry |= {"bytes": len(new), "sha256": hashlib.sha256(new).hexdigest()}
        for kind in ("train", "eval"):
            made["counts"][kind]["bytes"] = sum(e["bytes"] for e in made["shards"] if e["kind"] == kind)

    manifest(change, "text")(scene)


def eval_article_in_training(scene: Scene) -> None:
    """Puts an eval article into a training shard, and makes that again."""
    article = (scene.root / "text" / "eval.txt").read_bytes().split(b"\n\n")[1]
    scene.text().write_bytes(scene.text().read_bytes() + article.strip() + b"\n\n")
    scene.remake()


def picked(change: Callable[[list[Row], Scene], list[Row]]) -> Apply:
    """Changes the picked eval examples."""

    def apply(scene: Scene) -> None:
        path = scene.root / "eval" / "eval.tfrecord"
        write_rows(path, change(read_rows(path), scene))

    return apply


damage("a line of a text shard is missing", text(lambda old: b"\n".join(old.split(b"\n")[1:])), "size", "seed")
damage(
    "two documents of a text shard are joined",
    text(lambda old: old.replace(b"\n\n", b"\n", 1)),
    "size counts",
    "seed counts",
)
damage(
    "a text shard is not UTF-8",
    text(lambda old: old.replace(b" the ", b" t\xffe ", 1)),
    "sha256 documents",
    "documents",
)
damage("a text shard has NUL bytes", text(put(bytes(512), 0.3)), "sha256 documents", "documents")
damage("a text shard is cut", text(lambda old: old[: len(old) // 2]), "size", "documents seed counts")
damage("a text shard is missing", lambda scene: scene.text().unlink(), "missing", "missing shard_inputs counts")
damage(
    "a text shard is a copy of another one, and the examples are made of both",
    lambda scene: (twice(scene), scene.remake()),
    CHANGED,
    "repeated_documents counts",
)
damage("the text was made again, and the examples were not", newer_text, "shard_inputs", "seed")
damage(
    "an eval article is in a training shard, and in its examples",
    eval_article_in_training,
    "eval_leak",
    builds=PAIRS,
    is_quick=True,
)
damage(
    "a picked eval example is not one of the eval shard",
    picked(lambda all_rows, scene: [*all_rows[:-1], read_rows(scene.file)[0]]),
    CHANGED,
    "shard_inputs",
)
damage("a picked eval example is missing", picked(lambda all_rows, scene: all_rows[:-1]), "size", "counts shard_inputs")
