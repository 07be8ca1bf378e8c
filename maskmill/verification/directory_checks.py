"""Which files in the directory of a data set its manifest does not list."""

import collections
import re
from collections.abc import Sequence

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.reading.byte_ranges import ByteRanges
from maskmill.records.file_names import DATASET_CARD, MDS_INDEX, TOKENIZER_FILE, VOCAB_FILE
from maskmill.storage import completions, files, manifest
from maskmill.storage.paths import is_glob, is_web
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.listed_shards import ListedShard
from maskmill.verification.targets import Target

_KNOWN = (
    manifest.MANIFEST,
    manifest.REJECTED,
    "eval.md5",
    "unknown_templates.tsv",
    DATASET_CARD,
    TOKENIZER_FILE,
    VOCAB_FILE,
    MDS_INDEX,
    "report.html",
    "report.md",
    "report.json",
)
# Names that programs which read a data set by a glob take for one of its files.
_NUMBERED = re.compile(r"part-(\d{1,9})-of-(\d{1,9})")
_OF = re.compile(r"-(\d{1,9})-of-(\d{1,9})")
_AGAIN = "make the directory again, or put back what was written with it"
_SHOWN = 60
_REFERENCE_SHARDS = 500
_MOST_SHARDS, _MOST_NAMED = 1_000_000, 10
_DATA = re.compile(r"part-.*|eval(-.*)?\.txt|.*\.(tfrecord|parquet|mds|idx|gz)")


def check_directory(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Looks for files that belong to nothing: those with names of data are warnings, others notes."""
    if is_web(target.directory):
        return Checked(skipped={"foreign": "a web server does not list its files"})
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
    return Checked(findings=tuple(findings), looked_at={"foreign": count})


def _finding(path: str, name: str) -> Finding:
    if name.endswith(files.TEMPORARY_SUFFIX):
        message = f"{path}: a run that died has left this file, or one is still writing it; delete it once none runs."
        return Finding(
            check="foreign",
            severity="warning",
            file=path,
            expected="no file",
            found="a temporary file",
            message=message,
        )
    if _DATA.fullmatch(name):
        message = (
            f"{path}: this file is not in the manifest, but programs that read the directory would take it for a part "
            "of the data; delete it, or move it elsewhere."
        )
        return Finding(
            check="foreign", severity="warning", file=path, expected="no file", found="a file", message=message
        )
    message = f"{path}: this file is not in the manifest; it does no harm, unless a program reads all files."
    return Finding(check="foreign", severity="note", file=path, expected="no file", found="a file", message=message)


def check_names(target: Target, shards: Sequence[ListedShard]) -> Checked:
    """Looks for shards that a manifest should list, by the numbers in the names of those that it does.

    The reference names its text shards "-of-00500" whatever their number is. Examples may be made of some text shards
    only; those of a whole directory have the names of all.
    """
    made = target.made or {}
    given = made["parameters"].get("input")
    inputs = [str(place) for place in given] if isinstance(given, list) else []
    of_some = len(inputs) != 1 or is_glob(inputs[0]) or bool(_NUMBERED.search(inputs[0]))
    if target.kind not in ("text", "examples") or (target.kind == "examples" and of_some):
        return Checked()
    findings = []
    path = files.join(target.directory, manifest.MANIFEST)
    for kind in ("train", "eval"):
        found = [(shard, match) for shard in shards if shard.kind == kind and (match := _OF.search(shard.name))]
        if not found:
            continue
        total, _ = collections.Counter(int(match[2]) for _, match in found).most_common(1)[0]
        for shard, match in found:
            if int(match[2]) != total:
                message = (
                    f"{path}: {shard.name} is one of {match[2]} shards, but the others are of {total:,}; {_AGAIN}."
                )
                findings.append(_listed(path, f"a shard of {total:,}", shard.name, message, check="foreign"))
        there = {int(match[1]) for _, match in found if int(match[2]) == total}
        last = max(there) if total == _REFERENCE_SHARDS else total - 1
        missing = [number for number in range(min(last, _MOST_SHARDS) + 1) if number not in there]
        if missing:
            shown = ", ".join(map(str, missing[:_MOST_NAMED])) + (" …" if len(missing) > _MOST_NAMED else "")
            message = f"{path}: of the {kind} shards 0 to {last:,}, these are missing: {shown}; {_AGAIN}."
            findings.append(_listed(path, f"{last + 1:,} shards", f"{len(there):,}", message, check="missing"))
    return Checked(findings=tuple(findings))


def check_claim(target: Target, ranges: ByteRanges) -> Checked:
    """Holds the parameters of a manifest against those that the directory was claimed for, where that is still told."""
    path = completions.work_path(target.directory, "", "parameters.json")
    try:
        claim = completions.unsealed_json("", "parameters", ranges.read_all(path))
    except (UnusableInputError, RunFailedError):
        return Checked()
    claimed = claim.get("parameters") if claim is not None else None
    if not isinstance(claimed, dict):
        return Checked()
    file = files.join(target.directory, manifest.MANIFEST)
    said = (target.made or {})["parameters"]
    findings = []
    for name in sorted(set(claimed) & set(said)):
        digest = f"{name}_sha256"
        if claimed[name] == said[name] or (claimed.get(digest) is not None and claimed[digest] == said.get(digest)):
            continue
        is_so, found = repr(claimed[name])[:_SHOWN], repr(said[name])[:_SHOWN]
        message = f"{file}: {name} is {found}, but this directory was made with {is_so} ({path}); {_AGAIN}."
        findings.append(_listed(file, is_so, found, message, check="manifest"))
    return Checked(findings=tuple(findings), looked_at={"manifest": 1})


def _listed(path: str, expected: str, found: str, message: str, *, check: str) -> Finding:
    return Finding(check=check, file=path, expected=expected, found=found, message=message)


def check_numbers(paths: Sequence[str], target: Target) -> Checked:
    """Looks for gaps in the numbers of files without a manifest, whose names say how many there are.

    The reference names its text shards "-of-00500" whatever their number is.
    """
    found = [match for path in paths if (match := _NUMBERED.search(files.base_name(path)))]
    counts = {int(match[2]) for match in found}
    if not target.is_whole or len(counts) != 1:
        return Checked()
    (count,) = counts
    there = {int(match[1]) for match in found}
    last = max(there) if count == _REFERENCE_SHARDS else count - 1
    missing = [number for number in range(min(last, _MOST_SHARDS) + 1) if number not in there]
    if not missing:
        return Checked(looked_at={"missing": 1})
    shown = ", ".join(map(str, missing[:_MOST_NAMED])) + (" …" if len(missing) > _MOST_NAMED else "")
    message = (
        f"{target.directory}: of the files numbered 0 to {last:,}, these are missing: {shown}; fetch or make them."
    )
    finding = Finding(
        check="missing",
        file=target.directory,
        expected=f"{last + 1:,} files",
        found=f"{len(there):,}",
        message=message,
    )
    return Checked(findings=(finding,), looked_at={"missing": 1})
