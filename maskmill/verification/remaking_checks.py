"""Make shards again from their text, vocabulary, options and seed, and compare them."""

import contextlib
import dataclasses
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges, forward
from maskmill.reading.data_set import DataFile, DataSet
from maskmill.reading.remote import open_ranges
from maskmill.records.examples import ExampleFile, kernels_of, write_example_files
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tokenizing import WORDPIECE_KERNELS, load_tokenization
from maskmill.storage import completions, files, manifest
from maskmill.verification.findings import Checked, Finding, combined, finding, makes_check, skipped
from maskmill.verification.listed_shards import ListedFile, ListedShard, options_of
from maskmill.verification.options import VerifyOptions
from maskmill.verification.row_reading import hash_rows
from maskmill.verification.row_rules import plan_of, rules_of_plan
from maskmill.verification.verify_targets import Target
from maskmill.verification.vocabulary_checks import KnownPieces
from maskmill.verification.work_items import ItemResult, Remake, WorkItem

_MOST_TEXT = 1 << 30  # bytes of text from which shards are made again
_SAME_BYTES = ("tfrecord", "mds")  # formats whose bytes do not depend on the version of a library
_TEXT = "text"  # the folder of a build


@makes_check("file", "shard")
def check_shard(item: WorkItem, ranges: ByteRanges) -> Checked:
    """Make a shard again, and compare its files with the present ones, by the checksums of the manifest.

    Packed files with other bytes but the same rows are equal: another version of a library may have packed them.
    """
    remake = item.remake
    if remake is None:
        raise ValueError(f"{item.path}: this work item has no remake")
    scratch = item.scratch if item.scratch is not None and os.path.isdir(item.scratch) else None
    try:
        with tempfile.TemporaryDirectory(prefix="maskmill-verify-", dir=scratch) as directory:
            plan = _plan(remake)
            loaded = load_tokenization(remake.vocabulary, plan.masking, is_tokenizer=remake.is_tokenizer)
            prefixes = [files.join(directory, f"{place}/made") for place in range(len(plan.widths))]
            for prefix in prefixes:
                os.mkdir(files.parent(prefix))
            is_gzipped = bool(remake.options.get("packed"))
            remade, _ = write_example_files((remake.text,), prefixes, loaded, plan, indexes=False, packed=is_gzipped)
            vocabulary = loaded.vocabulary
            known = KnownPieces(vocabulary=vocabulary, size=vocabulary.size, special_ids=vocabulary.special_ids)
            data_set = rules_of_plan(plan, known, "").data_set
            may_differ = is_gzipped or remake.format not in _SAME_BYTES
            first = next(_compare(remake, remade, data_set, ranges, may_differ=may_differ), None)
    except (UnusableInputError, RunFailedError) as error:
        return skipped(f"{item.path} cannot be made again: {error}", "seed")
    return ItemResult(item=item, findings=[first] if first else [], looked_at={"seed": 1}, is_remade=first is None)


def kernels_of_remaking(remake: Remake) -> tuple[str, ...]:
    """Return the kernels that `check_shard` runs."""
    return kernels_of(_plan(remake), ("tokenization.kernels",) if remake.is_tokenizer else WORDPIECE_KERNELS)


def _plan(remake: Remake) -> ExamplesPlan:
    plan = plan_of({"parameters": remake.options, "format": remake.format})
    return dataclasses.replace(plan, masking=dataclasses.replace(plan.masking, random_seed=remake.seed or 0))


def _compare(
    remake: Remake, remade: Sequence[ExampleFile], data_set: DataSet, ranges: ByteRanges, *, may_differ: bool
) -> Iterator[Finding]:
    """Yield differences of files made again from those of the manifest; if bytes differ, rows are compared."""
    differs_from = (
        f"is not what its text {remake.text}, the vocabulary, the options and the seed ({remake.seed}) of the "
        "manifest give; make the examples again"
    )
    if len(remade) != len(remake.files):
        yield finding("seed", remake.files[0], f"this shard of {len(remake.files):,} files {differs_from}")
        return
    for file, path, digest in zip(remade, remake.files, remake.digests, strict=True):
        if file.sha256 == digest:
            continue
        of_file = DataFile(
            path=path,
            samples=file.examples,
            size=None,
            sha256=None,
            index=None,
            width=file.width,
            text=remake.text,
        )
        again = dataclasses.replace(of_file, path=file.path)
        expected, found = (
            hash_rows(dataclasses.replace(data_set, files=(one,)), source)
            for one, source in ((again, LocalRanges()), (of_file, ranges))
        )
        count = min(len(expected), len(found))
        differs = np.flatnonzero(expected[:count] != found[:count])
        if len(differs) or len(expected) != len(found):
            counts = (
                f", and of the {len(expected):,} records that they give {np.isin(expected, found).sum():,} are here"
            )
            number = int(differs[0]) + 1 if len(differs) else count + 1
            yield finding("seed", path, differs_from.replace(";", f"{counts};"), at=("record", number))
        elif not may_differ:
            yield finding("seed", path, f"this file has the right rows, but {differs_from}")


# ---- the choice of shards to make again


def plan_remakes(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> list[Target]:
    """Return the targets with work items for the shards to make again."""
    return [
        _with_remakes(target, target.made, options, scratch) if target.made and target.kind == "examples" else target
        for target in targets
    ]


def _with_remakes(target: Target, made: Mapping[str, Any], options: VerifyOptions, scratch: str) -> Target:
    chosen = {item.path for item in target.items}
    shards = [s for s in target.shards if any(target.file(file.name) in chosen for file in s.files)]
    is_ours = manifest.format_version(made, "examples") == completions.FORMAT_VERSIONS["examples"]
    items: list[WorkItem] = []
    missing: list[str] = []
    left = _MOST_TEXT
    # In an order that depends on the names alone, and is as good as random.
    for shard in sorted(shards, key=lambda shard: hashlib.sha256(shard.name.encode()).digest()):
        left -= shard.counts.get("text_bytes", _MOST_TEXT)
        is_enough = len(items) == options.remake or (options.remake is None and items and left < 0)
        if is_enough or not is_ours or target.known.path is None:
            break
        found = text_of_shard(shard, target, options)
        if found is None:
            missing.append(next(iter(shard.inputs), shard.name))
        else:
            items.append(_item(target, made, shard, found, scratch))
    why = f"{len(items):,} of {len(shards):,} shards were made again; --remake says how many"
    if not is_ours or target.known.path is None:
        why = "the vocabulary is not there" if is_ours else "another version of maskmill made it"
    elif missing:
        why = f"the text is not there, or has changed: {', '.join(missing[:3])}{' …' if missing[3:] else ''}"
    checked = Checked() if len(items) == len(shards) else skipped(why, "seed")
    return dataclasses.replace(target, items=(*target.items, *items), checked=combined([target.checked, checked]))


def _item(target: Target, made: Mapping[str, Any], shard: ListedShard, text: str, scratch: str) -> WorkItem:
    remake = Remake(
        text=text,
        options=options_of(made),
        vocabulary=target.known.path or "",
        is_tokenizer=target.known.is_tokenizer,
        format=made["format"],
        seed=shard.seed,
        files=tuple(target.file(file.name) for file in shard.files),
        digests=tuple(file.sha256 or "" for file in shard.files),
    )
    return WorkItem(
        kind="shard",
        path=remake.files[0],
        split=shard.kind,
        shard=shard.number,
        directory=target.directory,
        expected=ListedFile(),
        remake=remake,
        scratch=scratch,
    )


def text_of_shard(
    shard: ListedShard, target: Target, options: VerifyOptions, *, may_differ: bool = False
) -> str | None:
    """Return the present path of a shard's text; None if it is missing or, without `may_differ`, has changed."""
    if len(shard.inputs) != 1:
        return None
    ((path, digest),) = shard.inputs.items()
    changed = None
    for candidate in _candidates(path, target, options.text):
        found = _digest_of(candidate)
        if found == digest:
            return candidate
        changed = changed or (found and candidate)
    return changed if may_differ else None


def _candidates(path: str, target: Target, elsewhere: Sequence[str]) -> Iterator[str]:
    """Yield possible places of a file that a manifest calls `path`: the user's, the build's, and the original."""
    name = files.base_name(path)
    for place in elsewhere:
        if files.base_name(place) == name:
            yield place
        elif files.is_glob(place) and files.is_local(place):
            yield from (file.path for file in files.match([place]) if files.base_name(file.path) == name)
        else:
            yield files.join(place, name)
    yield files.join(files.join(files.parent(target.directory.rstrip("/")), _TEXT), name)
    yield path


def _digest_of(path: str) -> str | None:
    """Return the sha256 of a file; None if it cannot be read."""
    try:
        with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
            return forward(ranges).sha256_of(path)
    except (UnusableInputError, RunFailedError, ValueError):
        return None
