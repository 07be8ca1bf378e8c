"""Writes a build's manifests and indexes again over whatever lies there, as a careless or a dishonest script would."""

import collections
import functools
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from data_sets.mds_reader import read_shard
from sample_files import FRAME, Row, frames, read_rows

_UNREADABLE = (
    ValueError, KeyError, IndexError, AssertionError, OSError, EOFError, struct.error, zlib.error, pa.ArrowException,
)  # fmt: skip
_SPECIAL = (101, 102)  # [CLS] and [SEP] of BERT's vocabulary
_OF_SHARD = re.compile(r"(?P<name>part-\d+-of-\d+|eval(-\d+-of-\d+)?\.txt).*")


def regenerate(root: Path) -> None:
    """Rewrites all manifests and indexes of a build: sizes, checksums and counts of the files that are there."""
    for stage, function in (("text", _regenerate_text), ("examples", _regenerate_examples), ("eval", _regenerate_eval)):
        path = root / stage / "manifest.json"
        if path.exists():
            made = json.loads(path.read_bytes())
            function(root / stage, made)
            path.write_text(json.dumps(made, indent=1, sort_keys=True))


def sha256(path: Path) -> str:
    """Of a file's content, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _regenerate_text(directory: Path, made: dict[str, Any]) -> None:
    paths = [*sorted(directory.glob("part-*")), *sorted(directory.glob("eval*.txt"))]
    old = {entry["name"]: entry for entry in made["shards"]}
    made["shards"] = [_text_entry(path, old) for path in paths]
    for kind in ("train", "eval"):
        _sum_up(made, kind, ("documents", "sentences", "bytes"))


def _text_entry(path: Path, old: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    kind = "eval" if path.name.startswith("eval") else "train"
    entry = dict(old.get(path.name) or next(entry for entry in old.values() if entry["kind"] == kind))
    return entry | {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path)} | _text_counts(path)


def _text_counts(path: Path) -> dict[str, int]:
    lines = [line.strip() for line in path.read_bytes().split(b"\n")]
    starts = [bool(line) and (not n or not lines[n - 1]) for n, line in enumerate(lines)]
    return {"documents": sum(starts), "sentences": sum(map(bool, lines))}


def _regenerate_examples(directory: Path, made: dict[str, Any]) -> None:
    suffix = {"tfrecord": ".tfrecord*", "parquet": ".parquet", "mds": ".mds"}.get(made["format"], ".tfrecord*")
    paths = [path for path in sorted(directory.rglob(f"*{suffix}")) if path.suffix != ".idx"]
    of_shards: dict[str, list[Path]] = collections.defaultdict(list)
    for path in paths:
        name = _OF_SHARD.fullmatch(path.name)
        of_shards[name["name"] if name else path.stem].append(path)
    old = {_shard_name(entry): entry for entry in made["shards"]}
    order = sorted(of_shards, key=lambda name: (name.startswith("eval"), name))
    made["shards"] = [_examples_entry(directory, name, of_shards[name], old) for name in order]
    texts = {entry["path"]: Path(entry["path"]) for entry in made["inputs"]}
    for path, text in texts.items():
        if text.exists():
            checksum = sha256(text)
            for entry in made["inputs"]:
                if entry["path"] == path:
                    entry |= {"sha256": checksum} | ({"bytes": text.stat().st_size} if "bytes" in entry else {})
            for shard in made["shards"]:
                if path in shard["inputs"]:
                    shard["inputs"] = dict(shard["inputs"]) | {path: checksum}
                    shard |= _text_counts(text) | {"text_bytes": text.stat().st_size}
    for kind in ("train", "eval"):
        _sum_up(made, kind, [name for name in made["counts"].get(kind, {}) if name != "shards"])
    if made["format"] == "mds":
        _write_mds_indexes(directory)


def _shard_name(entry: Mapping[str, Any]) -> str:
    name = entry["files"][0]["name"] if "files" in entry else entry["name"]
    found = _OF_SHARD.fullmatch(name.rpartition("/")[2])
    return found["name"] if found else str(entry["name"])


def _examples_entry(
    directory: Path, name: str, paths: Sequence[Path], old: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """The entry of a shard, made of the one that it had before, or of another one of its kind."""
    kind = "eval" if name.startswith("eval") else "train"
    entry = dict(old.get(name) or next(entry for entry in old.values() if entry["kind"] == kind))
    described = [_file_entry(directory, path) for path in paths]
    counts = [_row_counts(path) for path in paths]
    if "files" not in entry:
        return entry | described[0] | (counts[0] or {})
    before = {file["name"]: file for file in entry["files"]}
    entry["files"] = [
        dict(before.get(file["name"], {})) | file | ({"examples": count["examples"]} if count else {})
        for file, count in zip(described, counts, strict=True)
    ]
    if all(counts):
        totals: collections.Counter[str] = collections.Counter()
        for count in counts:
            totals.update(count)
        entry |= dict(totals)
    return entry | {"bytes": sum(file["bytes"] for file in described)}


def _file_entry(directory: Path, path: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": str(path.relative_to(directory)),
        "bytes": path.stat().st_size,
        "sha256": sha256(path),
    }
    if path.suffix == ".tfrecord":
        index = path.with_name(f"{path.name}.idx")
        index.write_text("".join(f"{at} {size + FRAME}\n" for at, size in frames(path)))
        entry |= {"index": index.name, "index_sha256": sha256(index)}
    return entry


def _row_counts(path: Path) -> dict[str, int]:
    """What the manifest counts of rows; nothing where they cannot be read."""
    return _counts_of_rows(path, sha256(path))


@functools.lru_cache(maxsize=256)
def _counts_of_rows(path: Path, checksum: str) -> dict[str, int]:
    """The same for a file with this checksum: most files are not damaged, so they are counted once."""
    try:
        rows = read_rows(path)
        counts: collections.Counter[str] = collections.Counter()
        for row in rows:
            counts.update(_counts_of(row))
    except _UNREADABLE:
        return {}
    return {"examples": len(rows), **counts}


def _counts_of(row: Row) -> dict[str, int]:
    ids = row["input_ids"].copy()
    pieces = int(row["input_mask"].sum()) if "input_mask" in row else len(ids)
    counts = {}
    if "masked_lm_ids" in row:
        masked = row["masked_lm_weights"] > 0
        ids[row["masked_lm_positions"][masked]] = row["masked_lm_ids"][masked]
        counts["masked_positions"] = int(masked.sum())
    special = sum(int((ids[:pieces] == piece).sum()) for piece in _SPECIAL)
    counts |= {"special_tokens": special, "example_tokens": pieces - special}
    if "input_mask" in row:
        counts["padding_tokens"] = len(ids) - pieces
    if "cu_seqlens" in row:
        counts["sequences"] = len(row["cu_seqlens"]) - 1
    if "next_sentence_labels" in row:
        counts["swapped" if "cu_seqlens" in row else "random_next"] = int(row["next_sentence_labels"].sum())
    return counts


def _write_mds_indexes(directory: Path) -> None:
    """Writes index.json to each folder, from what its shards say of themselves."""
    for folder in {path.parent for path in directory.rglob("*.mds")}:
        entries = []
        for path in sorted(folder.glob("*.mds")):
            content = path.read_bytes()
            try:
                config = read_shard(content)[1]
            except (*_UNREADABLE, TypeError):
                config = json.loads((folder / "index.json").read_bytes())["shards"][0]
                config = {key: value for key, value in config.items() if key not in ("raw_data", "zip_data", "samples")}
            raw = {"basename": path.name, "bytes": len(content), "hashes": {"sha256": sha256(path)}}
            samples = struct.unpack_from("<I", content)[0] if len(content) > 4 else 0
            entries.append(config | {"raw_data": raw, "samples": samples, "zip_data": None})
        (folder / "index.json").write_text(json.dumps({"version": 2, "shards": entries}, sort_keys=True))


def _regenerate_eval(directory: Path, made: dict[str, Any]) -> None:
    for entry in made["shards"]:
        path = directory / entry["name"]
        if path.exists():
            entry |= {"bytes": path.stat().st_size, "sha256": sha256(path), "examples": len(frames(path))}
    for entry in made["inputs"]:
        if Path(entry["path"]).exists():
            entry["sha256"] = sha256(Path(entry["path"]))
    made["counts"]["eval"] |= {
        "picked": sum(entry["examples"] for entry in made["shards"]),
        "bytes": sum(entry["bytes"] for entry in made["shards"]),
    }
    source = directory.parent / "examples" / "manifest.json"
    if source.exists():
        made["counts"]["eval"]["available"] = json.loads(source.read_bytes())["counts"]["eval"]["examples"]


def _sum_up(made: dict[str, Any], kind: str, names: Sequence[str]) -> None:
    shards = [entry for entry in made["shards"] if entry["kind"] == kind]
    if kind not in made["counts"] and not shards:
        return
    made["counts"][kind] = {"shards": len(shards)} | {
        name: sum(entry[name] for entry in shards) for name in names if all(name in entry for entry in shards)
    }
