"""Whether the lists of files that lie beside MDS shards and Parquet files fit them: index.json and README.md."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, SPLITS
from maskmill.storage import files
from maskmill.verification.findings import Checked, Finding, finding, joined
from maskmill.verification.listed_shards import ListedFile
from maskmill.verification.targets import Target

_CHECK = "index"
_WORD = 4
_MOST_CONFIG_BYTES = 1 << 16
_CONFIG = ("column_names", "column_encodings", "column_sizes", "format", "compression", "version")


def check_listings(target: Target, ranges: ByteRanges) -> Checked:
    """Checks the index.json of each folder of MDS shards, or the card of Parquet files."""
    format = (target.made or {}).get("format")
    if format == "parquet":
        return _check_card(target, ranges)
    if format != "mds":
        return Checked()
    folders: dict[str, list[ListedFile]] = {}
    for file in (file for shard in target.shards for file in shard.files):
        folders.setdefault(file.name.rpartition("/")[0], []).append(file)
    directories = {folder: files.join(target.directory, folder) if folder else target.directory for folder in folders}
    return joined(_check_folder(directories[folder], listed, ranges) for folder, listed in folders.items())


def _check_folder(directory: str, listed: Sequence[ListedFile], ranges: ByteRanges) -> Checked:
    path = files.join(directory, MDS_INDEX)
    do = "run the command that made the directory again"
    try:
        entries = json.loads(ranges.read_all(path))["shards"]
        found = [_described(entry) for entry in entries]
    except MissingFileError:
        message = f"{path}: streaming reads the shards by this file, but it is not there; {do}."
        return _checked([finding("missing", path, "a file", "nothing", message)])
    except (UnusableInputError, RunFailedError) as error:
        return _checked([finding(_CHECK, path, "an index", "an error", str(error))])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _checked(
            [finding(_CHECK, path, "an index", "something else", f"{path}: this is no index of MDS shards; {do}.")]
        )
    wanted = [(files.base_name(file.name), file.size, file.sha256, file.examples) for file in listed]
    if found != wanted:
        least = min(len(found), len(wanted))
        place = next((place for place in range(least) if found[place] != wanted[place]), least)
        said, is_so = (_shown(some[place]) if place < len(some) else "no further shard" for some in (found, wanted))
        message = f"{path}: entry {place + 1:,} is {said}, but the manifest has {is_so}; {do}."
        return _checked([finding(_CHECK, path, is_so, said, message, record=place + 1)])
    findings = []
    for file, entry in zip(listed, entries, strict=True):
        own = _config_of(files.join(directory, files.base_name(file.name)), ranges)
        differs = own is not None and next((name for name in _CONFIG if own.get(name) != entry.get(name)), None)
        if own is not None and differs:
            message = (
                f"{path}: {differs} of {files.base_name(file.name)} is {_short(entry.get(differs))}, but the shard "
                f"itself says {_short(own.get(differs))}; {do}."
            )
            findings.append(finding(_CHECK, path, _short(own.get(differs)), _short(entry.get(differs)), message))
    return _checked(findings, len(listed))


def _described(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    raw = entry["raw_data"]
    return raw["basename"], raw["bytes"], raw["hashes"].get("sha256"), entry["samples"]


def _shown(entry: tuple[Any, ...]) -> str:
    name, size, digest, samples = entry
    return f"{_short(name)} of {_short(size)} bytes, {_short(samples)} samples, sha256 {str(digest)[:12]}…"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _config_of(path: str, ranges: ByteRanges) -> dict[str, Any] | None:
    """What a shard says of its columns; None where it cannot be read: its own checks tell."""
    try:
        size = ranges.size(path)
        samples = int(ranges.read(path, 0, _WORD).view("<u4")[0])
        start = _WORD * (samples + 2)
        if start > size:
            return None
        first = int(ranges.read(path, _WORD, 2 * _WORD).view("<u4")[0])
        if not start <= first <= min(size, start + _MOST_CONFIG_BYTES):
            return None
        config = json.loads(ranges.read(path, start, first).tobytes())
    except (UnusableInputError, RunFailedError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) else None


def _check_card(target: Target, ranges: ByteRanges) -> Checked:
    """Checks that the card names the files of each split; what else a user writes there is no matter."""
    path = files.join(target.directory, DATASET_CARD)
    wanted: dict[str, list[str]] = {}
    for shard in target.shards:
        wanted.setdefault(SPLITS[shard.kind], []).extend(file.name for file in shard.files)
    try:
        text = ranges.read_all(path).decode(errors="replace")
    except (UnusableInputError, RunFailedError):
        message = (
            f"{path}: without this file `datasets` finds no splits; run the command that made the directory again."
        )
        return _checked([finding(_CHECK, path, "a file", "nothing", message, severity="note")])
    _, key, rest = text.partition("configs: ")
    try:
        (config,), _ = json.JSONDecoder().raw_decode(rest)
        said = {entry["split"]: entry["path"] for entry in config["data_files"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return Checked(skipped={_CHECK: f"{path} is written by hand"}) if key else Checked()
    if said == wanted:
        return _checked([])
    message = f"{path}: `datasets` would read other files than those of the manifest; name those, or make it again."
    found = _short(said)
    return _checked([finding(_CHECK, path, _short(wanted), found, message)])


def _checked(findings: Sequence[Finding], looked_at: int = 1) -> Checked:
    return Checked(findings=tuple(findings), looked_at={_CHECK: looked_at})
