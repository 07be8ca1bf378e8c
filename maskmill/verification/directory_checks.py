"""Check the directory of a data set for files that its manifest does not list, and the index.json of MDS shards."""

import collections
import itertools
import json
import re
from collections.abc import Iterable, Sequence

from maskmill.errors import MissingFileError, RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, TOKENIZER_FILE, VOCAB_FILE
from maskmill.storage import files, manifest
from maskmill.storage.paths import is_web
from maskmill.verification.findings import Checked, Finding, Severity, combined, finding, ran, skipped
from maskmill.verification.listed_shards import ListedFile, ListedShard
from maskmill.verification.verify_targets import Target

_KNOWN = (
    *(manifest.MANIFEST, manifest.REJECTED, DATASET_CARD, TOKENIZER_FILE, VOCAB_FILE, MDS_INDEX),
    *("eval.md5", "unknown_templates.tsv", "report.html", "report.md", "report.json"),
)
# Names that globs of other programs for a data set's files may match.
_DATA = re.compile(r"part-.*|eval(-.*)?\.txt|.*\.(tfrecord|parquet|mds|idx|gz)")
_NUMBERED = re.compile(r"(part|eval)-(\d{1,9})-of-(\d{1,9})")
_REFERENCE_SHARDS = 500
_MOST_SHARDS, _MOST_NAMED = 1_000_000, 10


def check_directory(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Find files that do not belong to the data set: those with names of data are warnings, others notes."""
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
    return ran("foreign", *findings, count=count)


def _foreign(path: str, name: str) -> Finding:
    severity: Severity = "warning"
    if name.endswith(files.TEMPORARY_SUFFIX):
        what = "a run that died has left this file, or a run is still writing it; delete it when no run is active"
    elif _DATA.fullmatch(name):
        what = (
            "this file is not in the manifest, but programs that read the directory would take it for a part of the "
            "data; delete it, or move it elsewhere"
        )
    else:
        severity = "note"
        what = "this file is not in the manifest; it does no harm, unless a program reads all files"
    return finding("foreign", path, what, severity)


def check_numbers(names: Iterable[str], where: str) -> Checked:
    """Find gaps in the numbers of files whose names include their total; where: for messages.

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
            findings.append(finding("foreign", where, what))
        present = {number for number, of in of_kind if of == total}
        last = max(present) if total == _REFERENCE_SHARDS else total - 1
        missing = [str(number) for number in range(min(last, _MOST_SHARDS) + 1) if number not in present]
        if missing:
            shown = ", ".join(missing[:_MOST_NAMED]) + (" …" if len(missing) > _MOST_NAMED else "")
            what = f"of the files numbered 0 to {last:,}, these are missing: {shown}; fetch or make them"
            findings.append(finding("missing", where, what))
    return ran("missing", *findings)


def check_mds_indexes(target: Target, ranges: ByteRanges) -> Checked:
    """Check the index.json of each folder of MDS shards, by which streaming reads them."""
    if (target.made or {}).get("format") != "mds":
        return Checked()
    folders: dict[str, list[ListedFile]] = {}
    for file in (file for shard in target.shards for file in shard.files):
        folders.setdefault(files.parent(target.file(file.name)), []).append(file)
    return combined(_check_folder(directory, listed, ranges) for directory, listed in folders.items())


def _check_folder(directory: str, listed: Sequence[ListedFile], ranges: ByteRanges) -> Checked:
    path, do = files.join(directory, MDS_INDEX), "run the command that made the directory again"
    expected = [(files.base_name(file.name), file.size, file.sha256, file.examples) for file in listed]
    try:
        entries = [(entry["raw_data"], entry["samples"]) for entry in json.loads(ranges.read_all(path))["shards"]]
        found = [(raw["basename"], raw["bytes"], raw["hashes"].get("sha256"), count) for raw, count in entries]
    except MissingFileError:
        what = f"streaming reads the shards by this file, but it is not there; {do}"
        return ran("index", finding("missing", path, what))
    except (UnusableInputError, RunFailedError) as error:
        return ran("index", finding("index", path, str(error)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ran("index", finding("index", path, f"this is no index of MDS shards; {do}"))
    if found == expected:
        return ran("index", count=len(listed))
    pairs = enumerate(itertools.zip_longest(found, expected), 1)
    number = next(number for number, (entry, file) in pairs if entry != file)
    what = f"this is not the shard that the manifest has there (name, bytes, sha256 or samples); {do}"
    return ran("index", finding("index", path, what, at=("entry", number)))
