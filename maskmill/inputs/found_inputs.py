"""Which files the inputs are, and the date of a dump; told before Beam is imported.

{{CURRENTDAY}} and the like give this date in a dump's pages: there is one date for all parts of a dump.
"""

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import BinaryIO

from maskmill.errors import UnusableInputError
from maskmill.inputs.formats import container_of_dump, lies_beside_dump
from maskmill.inputs.mediawiki import Page, header_of, read_header, read_pages, site_base
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.sources import Source
from maskmill.mirrors.dump_names import date_in_name
from maskmill.storage import files
from maskmill.storage.found_files import refuse_repeated

_DATE_PAGES = 200
# Names like those that an output directory gets.
_WRITTEN = ("part-00000-of-00001", "eval.txt", "eval.md5", "manifest.json", "rejected.jsonl", "unknown_templates.tsv")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundInputs:
    """The inputs that patterns name, in order, and what was skipped beside them: the path and what it is."""

    files: tuple[files.FileInfo, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def skipped_text(self) -> str:
        """The sentence that names what was skipped."""
        path, kind = self.skipped[0]
        more = f", and {len(self.skipped) - 1} more of its kind" if len(self.skipped) > 1 else ""
        return (
            f"{path}: skipped, because it looks like {kind}{more}; name it alone with --input_format text to take it "
            "as text."
        )


def find_inputs(matched: Sequence[files.FileInfo], input_format: str) -> FoundInputs:
    """Find the inputs; skip the indexes and checksums that Wikimedia publishes beside a dump.

    matched: what `files.match` gives for the patterns of the inputs. input_format: "auto" or the format that the user
    names; a named format that any text can have skips nothing.

    Raises:
      UnusableInputError: a file cannot be read, or has two names among them.
    """
    if input_format in ("text", "jsonl"):
        refuse_repeated({"": matched})
        return FoundInputs(files=tuple(matched))
    kinds = {file.path: lies_beside_dump(file.path) for file in matched}
    taken = tuple(file for file in matched if kinds[file.path] is None)
    refuse_repeated({"": taken})
    if not taken:
        return FoundInputs(files=tuple(matched))  # planning refuses them
    return FoundInputs(files=taken, skipped=tuple((path, kind) for path, kind in kinds.items() if kind is not None))


def refuse_output_among(patterns: Sequence[str], matched: Sequence[files.FileInfo], output: str) -> None:
    """Refuse an output directory whose files the patterns of the inputs would match, too, at the latest the next time.

    matched: the files that they match now.

    Raises:
      UnusableInputError: they would.
    """
    written = [files.join(output, name) for name in _WRITTEN]
    taken_by = [pattern for pattern in patterns if any(files.may_match(pattern.strip(), path) for path in written)]
    made = {files.parent(file.path): file.path for file in matched if files.base_name(file.path) in _WRITTEN}
    inside = [path for folder, path in made.items() if files.identity(folder) == files.identity(output)]
    if taken_by or inside:
        raise UnusableInputError(
            f"{output}: the input {(taken_by or inside)[0]} takes the files of this output directory, too; name a "
            "directory elsewhere."
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DateEvidence:
    """The evidence in a file of a dump for the dump's date.

    wiki: the address of its wiki, empty where its header has none. named: the ISO date in its name. newest: where there
    is none, that of the newest revision among its first 200 pages. Empty: there is no such date.
    """

    wiki: str
    named: str = ""
    newest: str = ""


def read_evidence(path: str) -> tuple[bytes, DateEvidence | None]:
    """Return a file's header, and what it says of its dump's date; b"" and None for inputs that are not a dump.

    Raises:
      UnusableInputError: the file cannot be read.
    """
    with files.open_input(path) as raw:
        header = header_of(raw, path)
        if not header:
            return b"", None
        named = date_in_name(path)
        newest = "" if named else _newest_revision(path, raw)
    return header, DateEvidence(wiki=site_base(header), named=named, newest=newest)


def _newest_revision(path: str, raw: BinaryIO) -> str:
    newest = b""
    raw.seek(0)
    container = container_of_dump(raw, path) or ""
    with Source(path, container, 0, None, keep_truncated=True, raw=raw) as source:
        for page in itertools.islice(read_pages(source, path, True, ReadOptions(keep_truncated=True)), _DATE_PAGES):
            if isinstance(page, Page) and re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", page.timestamp):
                newest = max(newest, page.timestamp)
    return newest[:10].decode("ascii")


def refuse_two_dates(paths: Sequence[str]) -> None:
    """Do what `decide_dates` does about names with two dates, before the files are read.

    Raises:
      UnusableInputError: two files of a wiki have different dates in their names.
    """
    named = {path: date for path in paths if (date := date_in_name(path))}
    if len(set(named.values())) > 1:
        decide_dates([(p, DateEvidence(wiki=site_base(read_header(p)), named=date)) for p, date in named.items()])


def decide_dates(found: Sequence[tuple[str, DateEvidence | None]]) -> list[str]:
    """Return the ISO date of each input, empty for one that is not a dump.

    A file whose name has a date is of that date. The other files of a wiki are of the newest date in the names of its
    files, or else of the newest revision among all their first pages.

    Raises:
      UnusableInputError: there is no date, or the files of a wiki have two in their names.
    """
    by_wiki: dict[str, list[tuple[str, DateEvidence]]] = {}
    for path, evidence in found:
        if evidence is not None:
            by_wiki.setdefault(evidence.wiki, []).append((path, evidence))
    dates = {wiki: _date_of_wiki(wiki, parts) for wiki, parts in by_wiki.items()}
    return ["" if evidence is None else evidence.named or dates[evidence.wiki] for _, evidence in found]


def _date_of_wiki(wiki: str, parts: Sequence[tuple[str, DateEvidence]]) -> str:
    by_date = {evidence.named: path for path, evidence in parts if evidence.named}
    if len(by_date) > 1 and wiki:
        (first, path), (second, other) = sorted(by_date.items())[:2]
        raise UnusableInputError(
            f"{path} is of {first} and {other} of {second}, and both are of {wiki}; name the parts of one dump, or one "
            "date for all of them with --dump_date."
        )
    newest = max(by_date, default="") or max(evidence.newest for _, evidence in parts)
    if not newest:
        raise UnusableInputError(
            f"{parts[0][0]}: neither its name nor its first pages give the dump's date; name it with --dump_date."
        )
    return newest
