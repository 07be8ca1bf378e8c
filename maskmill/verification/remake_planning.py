"""Which shards are made again, and where what they were made of lies now."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.masking.seeds import shard_seed
from maskmill.reading.remote import open_ranges
from maskmill.storage import completions, files, manifest
from maskmill.storage.paths import is_glob
from maskmill.verification.findings import Checked, Finding, joined
from maskmill.verification.known_rules import parameters_of
from maskmill.verification.listed_shards import ListedShard
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import ExpectedFile, Piece, Remake
from maskmill.verification.targets import Target

# With less text than this all shards are made again.
_LITTLE_TEXT = 32 << 20
_TEXT, _EXAMPLES = "text", "examples"  # folders of a build
_OTHER_VERSION = "another version of maskmill made it"


def plan_remakes(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> tuple[Target, ...]:
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
    return tuple(planned)


def _shard_pieces(target: Target, options: VerifyOptions, scratch: str) -> tuple[list[Piece], Checked]:
    """The shards of examples that are made again."""
    made = target.made or {}
    chosen = {piece.path for piece in target.pieces}
    shards = [
        shard for shard in target.shards if any(files.join(target.directory, f.name) in chosen for f in shard.files)
    ]
    seeds = _check_seeds(target, shards)
    if options.remake == 0:
        return [], joined([seeds, Checked(skipped={"seed": "--remake is 0"})])
    if not _is_of_this_version(made):
        return [], joined([seeds, Checked(skipped={"seed": _OTHER_VERSION})])
    if target.vocabulary is None:
        return [], joined([seeds, Checked(skipped={"seed": "the vocabulary is not there"})])
    pieces: list[Piece] = []
    missing: list[str] = []
    wanted = _how_many(shards, options)
    for shard in _in_order_of_choice(shards):
        if len(pieces) == wanted:
            break
        found = _input_of(shard, target, options)
        if found is None:
            missing.append(next(iter(shard.inputs), shard.name))
            continue
        pieces.append(_shard_piece(target, shard, found, scratch))
    skipped = {}
    if missing and len(pieces) < wanted:
        more = f" and {len(missing) - 1:,} more" if missing[1:] else ""
        skipped["seed"] = f"the text is not there, or has changed: {missing[0]}{more}"
    elif len(pieces) < len(shards):
        skipped["seed"] = f"{len(pieces):,} of {len(shards):,} shards were made again; --remake says how many"
    return pieces, joined([seeds, Checked(skipped=skipped)])


def _is_of_this_version(made: Mapping[str, Any]) -> bool:
    versions = made.get("versions")
    formats = versions.get("formats") if isinstance(versions, dict) else None
    said = formats.get("examples") if isinstance(formats, dict) else None
    return said == completions.FORMAT_VERSIONS["examples"]


def _how_many(shards: Sequence[ListedShard], options: VerifyOptions) -> int:
    if options.remake is not None:
        return min(options.remake, len(shards))
    return len(shards) if sum(shard.counts.get("text_bytes", _LITTLE_TEXT) for shard in shards) < _LITTLE_TEXT else 1


def _in_order_of_choice(shards: Sequence[ListedShard]) -> list[ListedShard]:
    """Shards in an order that depends on their content alone, as good as random."""
    return sorted(shards, key=lambda shard: [file.sha256 or "" for file in shard.files])


def _check_seeds(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Holds the seed of each shard against the one that follows from the options."""
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
            path = files.join(target.directory, manifest.MANIFEST)
            message = (
                f"{path}: random_seed of {shard.name} must be {wanted}, which follows from the seed of the data set "
                f"({seed}) and the shard's number, not {shard.seed}; the shard is of another data set, or the manifest "
                "was changed."
            )
            findings.append(
                Finding(check="seed", file=path, expected=str(wanted), found=str(shard.seed), message=message)
            )
    return Checked(findings=tuple(findings), looked_at={"seed": 0} if looked_at else {})


def _shard_piece(target: Target, shard: ListedShard, text: str, scratch: str) -> Piece:
    made = target.made or {}
    paths = tuple(files.join(target.directory, file.name) for file in shard.files)
    remake = Remake(
        inputs=(text,),
        sha256=tuple(shard.inputs.values()),
        options=parameters_of(made),
        vocabulary=target.vocabulary,
        vocabulary_sha256=target.vocabulary_sha256,
        is_tokenizer=target.is_tokenizer,
        format=made.get("format", "tfrecord"),
        seed=shard.seed,
        files=paths,
        sizes=tuple(file.size or 0 for file in shard.files),
        digests=tuple(file.sha256 or "" for file in shard.files),
    )
    return Piece(
        kind="shard",
        path=paths[0],
        split=shard.kind,
        shard=shard.number,
        directory=target.directory,
        expected=ExpectedFile(counts=shard.counts),
        format=remake.format,
        remake=remake,
        scratch=scratch,
    )


def _picked_pieces(target: Target, options: VerifyOptions, scratch: str) -> tuple[list[Piece], Checked]:
    """The picked eval examples, which are picked again of the eval shards."""
    made = target.made or {}
    if not _is_of_this_version(made):
        return [], Checked(skipped={"shard_inputs": _OTHER_VERSION})
    entries = {
        entry["path"]: entry["sha256"]
        for entry in made["inputs"]
        if isinstance(entry.get("path"), str) and isinstance(entry.get("sha256"), str)
    }
    found = [_found(path, target, _EXAMPLES, ()) for path in entries]
    inputs = [path for path in found if path is not None]
    if len(inputs) < len(entries) or not entries:
        return [], Checked(skipped={"shard_inputs": "the eval shards that the examples were picked of are not there"})
    (shard, *_), path = target.shards, target.pieces[0].path
    remake = Remake(
        inputs=tuple(inputs),
        sha256=tuple(entries.values()),
        options=parameters_of({"parameters": made["parameters"]}),
        files=(path,),
        sizes=(shard.files[0].size or 0,),
        digests=(shard.files[0].sha256 or "",),
    )
    piece = Piece(
        kind="picked",
        path=path,
        split="eval",
        shard=0,
        directory=target.directory,
        expected=ExpectedFile(counts=shard.counts),
        format="tfrecord",
        remake=remake,
        scratch=scratch,
    )
    return [piece], Checked()


def _input_of(shard: ListedShard, target: Target, options: VerifyOptions) -> str | None:
    """Where the text of a shard lies now; None: nowhere, or it has changed."""
    if len(shard.inputs) != 1:
        return None
    ((path, digest),) = shard.inputs.items()
    for candidate in _candidates(path, target, _TEXT, options.text):
        if _digest_of(candidate) == digest:
            return candidate
    return None


def _found(path: str, target: Target, folder: str, elsewhere: Sequence[str]) -> str | None:
    return next((p for p in _candidates(path, target, folder, elsewhere) if _digest_of(p) is not None), None)


def _candidates(path: str, target: Target, folder: str, elsewhere: Sequence[str]) -> Iterator[str]:
    """Where a file may lie that a manifest calls `path`: as the user says, in the build, or where it was."""
    name = files.base_name(path)
    for place in elsewhere:
        if files.base_name(place) == name:
            yield place
        elif is_glob(place) and files.is_local(place):
            yield from (file.path for file in files.match([place]) if files.base_name(file.path) == name)
        else:
            yield files.join(place, name)
    yield files.join(files.join(files.parent(target.directory.rstrip("/")), folder), name)
    yield path


def _digest_of(path: str) -> str | None:
    """The sha256 of a file; None where it cannot be read."""
    try:
        with contextlib.closing(open_ranges(path, cache_bytes=0)) as ranges:
            return ranges.sha256_of(path)
    except (UnusableInputError, RunFailedError, ValueError):
        return None
