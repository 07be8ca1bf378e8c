"""What lies in the directory of a data set: files that its manifest does not list, and lists of its files.

Such lists are the index.json of MDS shards, and the README.md of Parquet files.
"""

import collections
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, SPLITS, TOKENIZER_FILE, VOCAB_FILE
from maskmill.storage import files, manifest
from maskmill.storage.paths import is_web
from maskmill.verification.findings import Checked, Finding, Severity, finding, joined, looked, skipped, told
from maskmill.verification.listed_shards import ListedFile, ListedShard
from maskmill.verification.verify_targets import Target

_KNOWN = (
    *(manifest.MANIFEST, manifest.REJECTED, DATASET_CARD, TOKENIZER_FILE, VOCAB_FILE, MDS_INDEX),
    *("eval.md5", "unknown_templates.tsv", "report.html", "report.md", "report.json"),
)
# Names that programs which read a data set by a glob take for one of its files.
_DATA = re.compile(r"part-.*|eval(-.*)?\.txt|.*\.(tfrecord|parquet|mds|idx|gz)")
_NUMBERED = re.compile(r"(part|eval)-(\d{1,9})-of-(\d{1,9})")
_REFERENCE_SHARDS = 500
_MOST_SHARDS, _MOST_NAMED = 1_000_000, 10
_SHOWN = 60


def check_directory(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Looks for files that belong to nothing: those with names of data are warnings, others notes."""
    if is_web(target.directory):
        return skipped("a web server does not list its files", "foreign")
    known = {name for shard in shards for file in shard.files for name in (file.name, file.index) if name is not None}
    folders = {"", *(name.rpartition("/")[0] for name in known)}
    if target.made is not None and target.made.get("format") == "mds":
        folders |= {"train", "eval"}
    findings = []
    count = 0
    for folder in sorted(folders):
        for path in files.list_directory(files.join(target.directory, folder) if folder else target.directory):
            count += 1
            base = files.base_name(path)
            if (f"{folder}/{base}" if folder else base) in known or base in _KNOWN or target.kind == "vocabulary":
                continue
            findings.append(_foreign(path, base))
    return looked("foreign", *findings, count=count)


def _foreign(path: str, name: str) -> Finding:
    severity: Severity = "warning"
    if name.endswith(files.TEMPORARY_SUFFIX):
        what = "a run that died has left this file, or one is still writing it; delete it once none runs"
    elif _DATA.fullmatch(name):
        what = (
            "this file is not in the manifest, but programs that read the directory would take it for a part of the "
            "data; delete it, or move it elsewhere"
        )
    else:
        severity = "note"
        what = "this file is not in the manifest; it does no harm, unless a program reads all files"
    return finding("foreign", path, "no file", "a file", what, severity)


def check_numbers(names: Iterable[str], where: str) -> Checked:
    """Looks for gaps in the numbers of files whose names say how many there are; where: for messages.

    The reference names its text shards "-of-00500" whatever their number is.
    """
    findings = []
    found = [match for name in names if (match := _NUMBERED.match(files.base_name(name)))]
    for kind in ("part", "eval"):
        of_kind = [(int(match[2]), int(match[3])) for match in found if match[1] == kind]
        totals = collections.Counter(total for _, total in of_kind)
        if not totals:
            continue
        (total, _), *others = totals.most_common()
        if others:
            what = f"these are shards of {total:,} and of {others[0][0]:,}; keep those of one build"
            findings.append(finding("foreign", where, f"shards of {total:,}", f"also of {others[0][0]:,}", what))
        there = {number for number, of in of_kind if of == total}
        last = max(there) if total == _REFERENCE_SHARDS else total - 1
        missing = [str(number) for number in range(min(last, _MOST_SHARDS) + 1) if number not in there]
        if missing:
            shown = ", ".join(missing[:_MOST_NAMED]) + (" …" if len(missing) > _MOST_NAMED else "")
            what = f"of the files numbered 0 to {last:,}, these are missing: {shown}; fetch or make them"
            findings.append(finding("missing", where, f"{last + 1:,} files", f"{len(there):,}", what))
    return looked("missing", *findings)


def has_all_shards(target: Target) -> bool:
    """Whether the manifest lists all shards of a stage: examples may be made of some text shards only."""
    given = (target.made or {})["parameters"].get("input")
    places = [str(place) for place in given] if isinstance(given, list) else []
    of_directory = len(places) == 1 and not files.is_glob(places[0]) and not _NUMBERED.search(places[0])
    return target.kind == "text" or (target.kind == "examples" and of_directory)


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
    places = {files.join(target.directory, folder) if folder else target.directory: f for folder, f in folders.items()}
    return joined(_check_folder(directory, listed, ranges) for directory, listed in places.items())


def _check_folder(directory: str, listed: Sequence[ListedFile], ranges: ByteRanges) -> Checked:
    path, do = files.join(directory, MDS_INDEX), "run the command that made the directory again"
    try:
        found = [_described(entry) for entry in json.loads(ranges.read_all(path))["shards"]]
    except MissingFileError:
        what = f"streaming reads the shards by this file, but it is not there; {do}"
        return looked("index", finding("missing", path, "a file", "nothing", what))
    except (UnusableInputError, RunFailedError) as error:
        return looked("index", told("index", path, "an index", "an error", str(error)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        what = f"this is no index of MDS shards; {do}"
        return looked("index", finding("index", path, "an index", "something else", what))
    wanted = [(files.base_name(file.name), file.size, file.sha256, file.examples) for file in listed]
    if found != wanted:
        least = min(len(found), len(wanted))
        place = next((place for place in range(least) if found[place] != wanted[place]), least)
        said, is_so = (_short(some[place]) if place < len(some) else "no further shard" for some in (found, wanted))
        what = f"entry {place + 1:,} is {said}, but the manifest has {is_so}; {do}"
        return looked("index", finding("index", path, is_so, said, what, at=("", place + 1)))
    return looked("index", count=len(listed))


def _described(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    raw = entry["raw_data"]
    return raw["basename"], raw["bytes"], raw["hashes"].get("sha256"), entry["samples"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


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
