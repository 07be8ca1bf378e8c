"""What lies in the directory of a data set: files that its manifest does not list, and whether lists of files fit them.

Such lists are the index.json of MDS shards, and the README.md of Parquet files.
"""

import collections
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, SPLITS, TOKENIZER_FILE, VOCAB_FILE
from maskmill.storage import completions, files, manifest
from maskmill.storage.paths import is_web
from maskmill.verification.findings import Checked, Finding, Severity, finding, joined, looked, skipped, told
from maskmill.verification.listed_shards import ListedFile, ListedShard
from maskmill.verification.verify_targets import Target

_KNOWN = (
    *(manifest.MANIFEST, manifest.REJECTED, DATASET_CARD, TOKENIZER_FILE, VOCAB_FILE, MDS_INDEX),
    *("eval.md5", "unknown_templates.tsv", "report.html", "report.md", "report.json"),
)
# Names that programs which read a data set by a glob take for one of its files.
_NUMBERED = re.compile(r"part-(\d{1,9})-of-(\d{1,9})")
_OF = re.compile(r"-(\d{1,9})-of-(\d{1,9})")
_AGAIN = "make the directory again, or put back what was written with it"
_SHOWN = 60
_REFERENCE_SHARDS = 500
_MOST_SHARDS, _MOST_NAMED = 1_000_000, 10
_DATA = re.compile(r"part-.*|eval(-.*)?\.txt|.*\.(tfrecord|parquet|mds|idx|gz)")
_WORD = 4
_MOST_CONFIG_BYTES = 1 << 16
_CONFIG = ("column_names", "column_encodings", "column_sizes", "format", "compression", "version")


def check_directory(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Looks for files that belong to nothing: those with names of data are warnings, others notes."""
    if is_web(target.directory):
        return skipped("a web server does not list its files", "foreign")
    listed = [file for shard in shards for file in shard.files]
    known = {name for file in listed for name in (file.name, file.index) if name is not None}
    folders = sorted({"", *(name.rpartition("/")[0] for name in known)})
    if target.made is not None and target.made.get("format") == "mds":
        folders = sorted({*folders, "train", "eval"})
    findings = []
    count = 0
    for folder in folders:
        directory = files.join(target.directory, folder) if folder else target.directory
        for path in files.list_directory(directory):
            count += 1
            base = files.base_name(path)
            name = f"{folder}/{base}" if folder else base
            if name in known or base in _KNOWN or target.kind == "vocabulary":
                continue
            findings.append(_finding(path, base))
    return looked("foreign", *findings, count=count)


def _finding(path: str, name: str) -> Finding:
    severity: Severity = "warning"
    found = "a file"
    if name.endswith(files.TEMPORARY_SUFFIX):
        found = "a temporary file"
        what = "a run that died has left this file, or one is still writing it; delete it once none runs"
    elif _DATA.fullmatch(name):
        what = (
            "this file is not in the manifest, but programs that read the directory would take it for a part of the "
            "data; delete it, or move it elsewhere"
        )
    else:
        severity = "note"
        what = "this file is not in the manifest; it does no harm, unless a program reads all files"
    return finding("foreign", path, "no file", found, what, severity)


def check_names(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Looks for shards that a manifest should list, by the numbers in the names of those that it does.

    Examples may be made of some text shards only; those of a whole directory have the names of all.
    """
    made = target.made or {}
    given = made["parameters"].get("input")
    inputs = [str(place) for place in given] if isinstance(given, list) else []
    of_some = len(inputs) != 1 or files.is_glob(inputs[0]) or bool(_NUMBERED.search(inputs[0]))
    if target.kind not in ("text", "examples") or (target.kind == "examples" and of_some):
        return Checked()
    findings = []
    path = target.manifest_path
    for kind in ("train", "eval"):
        found = [(shard, match) for shard in shards if shard.kind == kind and (match := _OF.search(shard.name))]
        if not found:
            continue
        total, _ = collections.Counter(int(match[2]) for _, match in found).most_common(1)[0]
        for shard, match in found:
            if int(match[2]) != total:
                what = f"{shard.name} is one of {match[2]} shards, but the others are of {total:,}; {_AGAIN}"
                findings.append(finding("foreign", path, f"a shard of {total:,}", shard.name, what))
        there = {int(match[1]) for _, match in found if int(match[2]) == total}
        last, missing = _missing(there, total)
        if missing:
            what = f"of the {kind} shards 0 to {last:,}, these are missing: {missing}; {_AGAIN}"
            findings.append(finding("missing", path, f"{last + 1:,} shards", f"{len(there):,}", what))
    return Checked(findings=findings)


def _missing(there: Collection[int], total: int) -> tuple[int, str]:
    """The last number that there must be, and those that are missing, as a text; empty: none.

    The reference names its text shards "-of-00500" whatever their number is.
    """
    last = max(there) if total == _REFERENCE_SHARDS else total - 1
    missing = [str(number) for number in range(min(last, _MOST_SHARDS) + 1) if number not in there]
    return last, ", ".join(missing[:_MOST_NAMED]) + (" …" if len(missing) > _MOST_NAMED else "")


def check_claim(target: Target, ranges: ByteRanges) -> Checked:
    """Compares the parameters of a manifest with those that the directory was claimed for, if that is still told."""
    path = completions.work_path(target.directory, "", "parameters.json")
    try:
        claim = completions.unsealed_json("", "parameters", ranges.read_all(path))
    except (UnusableInputError, RunFailedError):
        return Checked()
    claimed = claim.get("parameters") if claim is not None else None
    if not isinstance(claimed, dict):
        return Checked()
    file = target.manifest_path
    said = (target.made or {})["parameters"]
    findings = []
    for name in sorted(set(claimed) & set(said)):
        digest = f"{name}_sha256"
        if claimed[name] == said[name] or (claimed.get(digest) is not None and claimed[digest] == said.get(digest)):
            continue
        is_so, found = repr(claimed[name])[:_SHOWN], repr(said[name])[:_SHOWN]
        what = f"{name} is {found}, but this directory was made with {is_so} ({path}); {_AGAIN}"
        findings.append(finding("manifest", file, is_so, found, what))
    return looked("manifest", *findings)


def check_numbers(paths: Sequence[str], target: Target) -> Checked:
    """Looks for gaps in the numbers of files without a manifest, whose names say how many there are."""
    found = [match for path in paths if (match := _NUMBERED.search(files.base_name(path)))]
    counts = {int(match[2]) for match in found}
    if not target.is_whole or len(counts) != 1:
        return Checked()
    there = {int(match[1]) for match in found}
    last, missing = _missing(there, *counts)
    if not missing:
        return looked("missing")
    what = f"of the files numbered 0 to {last:,}, these are missing: {missing}; fetch or make them"
    return looked("missing", finding("missing", target.directory, f"{last + 1:,} files", f"{len(there):,}", what))


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
        what = f"streaming reads the shards by this file, but it is not there; {do}"
        return looked("index", finding("missing", path, "a file", "nothing", what))
    except (UnusableInputError, RunFailedError) as error:
        return looked("index", told("index", path, "an index", "an error", str(error)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return looked(
            "index", finding("index", path, "an index", "something else", f"this is no index of MDS shards; {do}")
        )
    wanted = [(files.base_name(file.name), file.size, file.sha256, file.examples) for file in listed]
    if found != wanted:
        least = min(len(found), len(wanted))
        place = next((place for place in range(least) if found[place] != wanted[place]), least)
        said, is_so = (_shown(some[place]) if place < len(some) else "no further shard" for some in (found, wanted))
        what = f"entry {place + 1:,} is {said}, but the manifest has {is_so}; {do}"
        return looked("index", finding("index", path, is_so, said, what, at=("", place + 1)))
    findings = []
    for file, entry in zip(listed, entries, strict=True):
        name = files.base_name(file.name)
        own = _config_of(files.join(directory, name), ranges)
        differs = own is not None and next((key for key in _CONFIG if own.get(key) != entry.get(key)), None)
        if own is not None and differs:
            said, is_so = _short(entry.get(differs)), _short(own.get(differs))
            what = f"{differs} of {name} is {said}, but the shard itself says {is_so}; {do}"
            findings.append(finding("index", path, is_so, said, what))
    return looked("index", *findings, count=len(listed))


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
    """What a shard says of its columns; None if it cannot be read: its own checks tell."""
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
        what = "without this file `datasets` finds no splits; run the command that made the directory again"
        return looked("index", finding("index", path, "a file", "nothing", what, "note"))
    _, key, rest = text.partition("configs: ")
    try:
        (config,), _ = json.JSONDecoder().raw_decode(rest)
        said = {entry["split"]: entry["path"] for entry in config["data_files"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return skipped(f"{path} is written by hand", "index") if key else Checked()
    if said == wanted:
        return looked("index")
    what = "`datasets` would read other files than those of the manifest; name those, or make it again"
    return looked("index", finding("index", path, _short(wanted), _short(said), what))
