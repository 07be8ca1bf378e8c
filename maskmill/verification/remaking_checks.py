"""Whether the text, the vocabulary, the options and the seed give a shard again: it is made again, and compared.

So are picked eval examples: they are picked again of the eval shards.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.masking.seeds import shard_seed
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges, forward
from maskmill.reading.data_set import DataFile
from maskmill.reading.remote import open_ranges
from maskmill.records.eval_picking import pick_examples
from maskmill.records.example_proto import parse_example
from maskmill.records.examples import ExampleFile, kernels_of, write_example_files
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tfrecord import read_records
from maskmill.records.tokenizing import WORDPIECE_KERNELS, load_tokenization
from maskmill.storage import completions, files, manifest
from maskmill.tokenization.tokenized_text import LoadedTokenizer
from maskmill.verification.findings import Checked, Finding, finding, joined, looked, makes_check, skipped
from maskmill.verification.listed_shards import ListedFile, ListedShard
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import Piece, PieceKind, PieceResult, Remake
from maskmill.verification.row_checks import hash_rows
from maskmill.verification.row_rules import (
    KnownPieces,
    RowRules,
    options_from,
    parameters_of,
    rules_of_file,
    rules_of_plan,
    schema_of,
)
from maskmill.verification.verify_targets import Target

_PICK = "pick them again, with `maskmill pick-eval` or the command that made the directory"
_MOST_TEXT = 1 << 30  # bytes of the text of which shards are made again
_SAME_BYTES = ("tfrecord", "mds")  # formats of which another version of a library packs nothing otherwise
_TEXT, _EXAMPLES = "text", "examples"  # folders of a build
_OTHER_VERSION = "another version of maskmill made it"


@dataclasses.dataclass(frozen=True)
class _Difference:
    """Where a file differs from the one made again: a record of it, from 1, what is so there, and why, as a clause."""

    record: int | None
    expected: str
    found: str
    cause: str = ""


@makes_check("file", "shard")
def check_shard(piece: Piece, ranges: ByteRanges) -> Checked:
    """Makes the shard of a piece again, and compares its files with those that are there, by the manifest.

    Packed files of other bytes with the same rows are the same: another version of a library packs them otherwise.
    """
    remake = piece.remake
    if remake is None:
        raise ValueError(f"{piece.path}: this piece does not say what its shard is made of")
    if remake.vocabulary is None or remake.seed is None:
        what = "vocabulary" if remake.vocabulary is None else "seed"
        return skipped(f"{piece.path} cannot be made again: the manifest does not say its {what}", "seed")
    scratch = piece.scratch if piece.scratch is not None and os.path.isdir(piece.scratch) else None
    try:
        with tempfile.TemporaryDirectory(prefix="maskmill-verify-", dir=scratch) as directory:
            plan = _plan(remake)
            loaded = load_tokenization(remake.vocabulary, plan.masking, is_tokenizer=remake.is_tokenizer)
            made = _make(piece, remake, plan, loaded, directory)
            return _compare(piece, remake, made, _rules(plan, loaded, remake), ranges)
    except (UnusableInputError, RunFailedError) as error:
        return skipped(f"{piece.path} cannot be made again: {error}", "seed")


def kernels_of_remaking(remake: Remake) -> tuple[str, ...]:
    """Whose kernels `check_shard` runs."""
    return kernels_of(_plan(remake), ("tokenization.kernels",) if remake.is_tokenizer else WORDPIECE_KERNELS)


def _plan(remake: Remake) -> ExamplesPlan:
    options = remake.options
    masking = options_from(MaskingOptions, options)
    return ExamplesPlan(
        masking=dataclasses.replace(masking, random_seed=remake.seed or 0),
        objective=options_from(ObjectiveOptions, options),
        format=options_from(FormatOptions, {**options, "format": remake.format}),
    )


def _make(
    piece: Piece, remake: Remake, plan: ExamplesPlan, loaded: LoadedTokenizer, directory: str
) -> list[ExampleFile]:
    """Writes the files of a shard to a directory, in the order of the manifest."""
    name = files.base_name(piece.path).split(".")[0]
    prefixes = [files.join(directory, f"{number}/{name}") for number in range(len(plan.widths))]
    for prefix in prefixes:
        os.mkdir(os.path.dirname(prefix))
    made, _ = write_example_files(
        remake.inputs, prefixes, loaded, plan, indexes=False, packed=bool(remake.options.get("packed"))
    )
    return made


def _rules(plan: ExamplesPlan, loaded: LoadedTokenizer, remake: Remake) -> RowRules:
    vocabulary = loaded.vocabulary
    known = KnownPieces(
        vocabulary=vocabulary,
        size=vocabulary.size,
        special_ids=vocabulary.special_ids,
        is_tokenizer=remake.is_tokenizer,
        path=remake.vocabulary,
    )
    schema = schema_of(plan, vocabulary.size, marks_words=vocabulary.marks_words)
    return rules_of_plan(plan, schema, known, "")


def _compare(piece: Piece, remake: Remake, made: list[ExampleFile], rules: RowRules, ranges: ByteRanges) -> Checked:
    """Compares files made again with those of the manifest, and where these differ in their bytes, their rows."""
    if len(made) != len(remake.files):
        difference = _Difference(None, f"{len(made):,} files", f"{len(remake.files):,}")
        return looked("seed", _finding(piece.path, remake, difference))
    is_packed = remake.format not in _SAME_BYTES or bool(remake.options.get("packed"))
    for file, path, digest in zip(made, remake.files, remake.digests, strict=True):
        if file.sha256 != digest:
            found = _difference(file, path, remake.inputs[0], rules, ranges)
            if found is None and not is_packed:
                found = _Difference(None, "the same bytes", "the same rows in other bytes")
            if found is not None:
                return looked("seed", _finding(path, remake, found))
    return PieceResult(piece=piece, looked_at={"seed": 1}, is_remade=True)


def _difference(made: ExampleFile, path: str, text: str, rules: RowRules, ranges: ByteRanges) -> _Difference | None:
    """The first row in which a file differs from the one made again of a text; None: it has the same rows."""

    def hashes(name: str, source: ByteRanges) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        file = DataFile(
            path=name, samples=made.examples, size=None, sha256=None, index=None, width=made.width, text=text
        )
        return hash_rows(rules_of_file(rules, file), source)

    _, expected = hashes(made.path, LocalRanges())
    numbers, found = hashes(path, ranges)
    count = min(len(expected), len(found))
    other = np.flatnonzero((expected[:count] != found[:count]).any(axis=1))
    if len(other):
        first = int(other[0])
        is_same_text = expected[first, 0] == found[first, 0]
        kind = "other masks" if is_same_text else "another example"
        return _Difference(int(numbers[first]), "the example made again", kind, _cause(expected, found))
    if len(expected) != len(found):
        more = "the last records are missing" if len(found) < len(expected) else "records were added at its end"
        return _Difference(count + 1, f"{len(expected):,} records", f"{len(found):,}", more)
    return None


def _cause(expected: npt.NDArray[np.uint64], found: npt.NDArray[np.uint64]) -> str:
    """What happened to a file, as far as the hashes of its rows tell (`hash_rows`): of the text, and of whole rows."""
    is_there, is_text = np.isin(expected[:, 1], found[:, 1]), np.isin(found[:, 0], expected[:, 0])
    if is_there.all():
        return "the same records stand in another order" if len(found) == len(expected) else "records were added"
    if np.isin(found[:, 1], expected[:, 1]).all():
        return f"{int((~is_there).sum()):,} of {len(expected):,} records are missing"
    if is_text.all():
        return "the text is the same, and other places of it are masked"
    if not is_text.any():
        return "no record has text of this shard: it is of another text or vocabulary, or its ids were changed"
    return f"{is_text.mean():.1%} of its records have text of this shard"


def _finding(path: str, remake: Remake, difference: _Difference) -> Finding:
    expected, found = difference.expected, difference.found
    cause = f": {difference.cause}" if difference.cause else ""
    what = (
        f"made again of {remake.inputs[0]}, with the vocabulary, the options and the seed ({remake.seed}) of the "
        f"manifest, this shard is another one ({found} instead of {expected}){cause}; make the examples again"
    )
    at = None if difference.record is None else ("record", difference.record)
    return finding("seed", path, expected, found, what, at=at)


# ---- picked eval examples


@makes_check("file", "picked")
def check_picked(piece: Piece, ranges: ByteRanges) -> Checked:
    """Picks the examples of a piece again, and compares them with the file."""
    remake = piece.remake
    if remake is None:
        raise ValueError(f"{piece.path}: this piece does not say what its examples were picked of")
    try:
        for path, digest in zip(remake.inputs, remake.sha256, strict=True):
            if forward(ranges).sha256_of(path) != digest:
                return skipped(f"{path} is not the file that eval examples were picked of", "shard_inputs")
        count = piece.expected.counts.get("examples", 0)
        with tempfile.TemporaryDirectory(prefix=files.scratch_prefix()) as directory:
            again = files.join(directory, "picked.tfrecord")
            written = pick_examples(remake.inputs, again, count)
            if ranges.sha256_of(piece.path) == written.sha256:
                return looked("shard_inputs")
            differs = _first_difference(again, piece.path)
    except (UnusableInputError, RunFailedError) as error:
        return skipped(f"eval examples cannot be picked again: {error}", "shard_inputs")
    if differs is None:
        return looked("shard_inputs")
    what = f"this is not the example that is picked here of {', '.join(remake.inputs)}; {_PICK}"
    at = ("record", differs)
    return looked("shard_inputs", finding("shard_inputs", piece.path, "the example picked", "another", what, at=at))


def _first_difference(expected: str, found: str) -> int | None:
    """The number of the first record, from 1, whose features differ; None: there is none."""
    pairs = itertools.zip_longest(read_records(expected), read_records(found))
    for number, (one, other) in enumerate(pairs, 1):
        if one == other:
            continue
        if one is None or other is None:
            return number
        try:
            if parse_example(one, strict=False) != parse_example(other, strict=False):
                return number
        except ValueError:
            return number
    return None


def plan_remakes(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> list[Target]:
    """Adds the shards that are made again, and the picked eval examples that are picked again, to the pieces."""
    planned = []
    for target in targets:
        if target.made is None or target.kind not in ("examples", "eval") or not target.pieces:
            planned.append(target)
            continue
        plan = _picked_pieces if target.kind == "eval" else _shard_pieces
        pieces, checked = plan(target, options, scratch)
        planned.append(
            dataclasses.replace(target, pieces=(*target.pieces, *pieces), checked=joined([target.checked, checked]))
        )
    return planned


def _shard_pieces(target: Target, options: VerifyOptions, scratch: str) -> tuple[list[Piece], Checked]:
    """The shards of examples that are made again."""
    made = target.made or {}
    chosen = {piece.path for piece in target.pieces}
    shards = [s for s in target.shards if any(target.file(file.name) in chosen for file in s.files)]
    seeds = _check_seeds(target, shards)
    if options.remake == 0:
        return [], joined([seeds, skipped("--remake is 0", "seed")])
    if not _is_of_this_version(made):
        return [], joined([seeds, skipped(_OTHER_VERSION, "seed")])
    if target.known.path is None:
        return [], joined([seeds, skipped("the vocabulary is not there", "seed")])
    pieces: list[Piece] = []
    missing: list[str] = []
    left = _MOST_TEXT
    # In an order that depends on their names alone, as good as random.
    for shard in sorted(shards, key=lambda shard: hashlib.sha256(shard.name.encode()).digest()):
        left -= shard.counts.get("text_bytes", _MOST_TEXT)
        if len(pieces) == options.remake or (options.remake is None and pieces and left < 0):
            break
        found = text_of_shard(shard, target, options)
        if found is None:
            missing.append(next(iter(shard.inputs), shard.name))
            continue
        pieces.append(_shard_piece(target, shard, found, scratch))
    why = Checked()
    if missing:
        more = f" and {len(missing) - 1:,} more" if missing[1:] else ""
        why = skipped(f"the text is not there, or has changed: {missing[0]}{more}", "seed")
    elif len(pieces) < len(shards):
        why = skipped(f"{len(pieces):,} of {len(shards):,} shards were made again; --remake says how many", "seed")
    return pieces, joined([seeds, why])


def _is_of_this_version(made: Mapping[str, Any]) -> bool:
    return manifest.format_version(made, "examples") == completions.FORMAT_VERSIONS["examples"]


def _check_seeds(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Compares the seed of each shard with the one that follows from the options."""
    options = parameters_of(target.made or {})
    seed, one_seed = options.get("random_seed"), options.get("one_seed", options.get("compat", "none") != "none")
    if not isinstance(seed, int):
        return Checked()
    findings, looked_at = [], 0
    for shard in shards:
        if shard.seed is None or not (one_seed or shard.has_number or shard.kind == "eval"):
            continue
        looked_at += 1
        wanted = seed if one_seed else shard_seed(seed, "eval" if shard.kind == "eval" else "train", shard.number)
        if shard.seed != wanted:
            what = (
                f"random_seed of {shard.name} must be {wanted}, which follows from the seed of the data set ({seed}) "
                f"and the shard's number, not {shard.seed}; the shard is of another data set, or the manifest was "
                "changed"
            )
            findings.append(finding("seed", target.manifest_path, str(wanted), str(shard.seed), what))
    return Checked(findings=findings, looked_at={"seed": 0} if looked_at else {})


def _shard_piece(target: Target, shard: ListedShard, text: str, scratch: str) -> Piece:
    made = target.made or {}
    remake = Remake(
        inputs=(text,),
        sha256=tuple(shard.inputs.values()),
        options=parameters_of(made),
        vocabulary=target.known.path,
        is_tokenizer=target.known.is_tokenizer,
        format=made.get("format", "tfrecord"),
        seed=shard.seed,
        files=tuple(target.file(file.name) for file in shard.files),
        digests=tuple(file.sha256 or "" for file in shard.files),
    )
    return _piece("shard", target, shard, remake, scratch)


def _piece(kind: PieceKind, target: Target, shard: ListedShard, remake: Remake, scratch: str) -> Piece:
    return Piece(
        kind=kind,
        path=target.file(shard.files[0].name),
        split=shard.kind,
        shard=shard.number,
        directory=target.directory,
        expected=ListedFile(counts=shard.counts),
        format=remake.format,
        remake=remake,
        scratch=scratch,
    )


def _picked_pieces(target: Target, options: VerifyOptions, scratch: str) -> tuple[list[Piece], Checked]:
    """The picked eval examples, which are picked again of the eval shards."""
    if not _is_of_this_version(target.made or {}):
        return [], skipped(_OTHER_VERSION, "shard_inputs")
    places = [_candidates(path, target, _EXAMPLES, ()) for path in target.inputs]
    found = [next((path for path in of_one if _digest_of(path) is not None), None) for of_one in places]
    inputs = tuple(path for path in found if path is not None)
    if len(inputs) < len(found) or not found:
        return [], skipped("the eval shards that the examples were picked of are not there", "shard_inputs")
    remake = Remake(inputs=inputs, sha256=tuple(target.inputs.values()))
    return [_piece("picked", target, target.shards[0], remake, scratch)], Checked()


def text_of_shard(
    shard: ListedShard, target: Target, options: VerifyOptions, *, may_differ: bool = False
) -> str | None:
    """Where the text of a shard lies now; None: nowhere, or it has changed. may_differ: a changed one is one, too."""
    if len(shard.inputs) != 1:
        return None
    ((path, digest),) = shard.inputs.items()
    changed = None
    for candidate in _candidates(path, target, _TEXT, options.text):
        found = _digest_of(candidate)
        if found == digest:
            return candidate
        changed = changed or (found and candidate)
    return changed if may_differ else None


def _candidates(path: str, target: Target, folder: str, elsewhere: Sequence[str]) -> Iterator[str]:
    """Where a file may lie that a manifest calls `path`: as the user says, in the build, or where it was."""
    name = files.base_name(path)
    for place in elsewhere:
        if files.base_name(place) == name:
            yield place
        elif files.is_glob(place) and files.is_local(place):
            yield from (file.path for file in files.match([place]) if files.base_name(file.path) == name)
        else:
            yield files.join(place, name)
    yield files.join(files.join(files.parent(target.directory.rstrip("/")), folder), name)
    yield path


def _digest_of(path: str) -> str | None:
    """The sha256 of a file; None if it cannot be read."""
    try:
        with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
            return forward(ranges).sha256_of(path)
    except (UnusableInputError, RunFailedError, ValueError):
        return None
