"""A dump on a mirror: its files, their checksums, and what is missing."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from maskmill.errors import RunFailedError
from maskmill.mirrors.dump_names import date_in_name

_CHECKSUM_LINE = re.compile(r"([0-9a-f]{40,64}) [ *](.+)", re.IGNORECASE)
_INDEX = re.compile(r"-multistream-index\d*\.(?:txt|xml)")
_PAGES = re.compile(r"-p(\d+)p(\d+)(?=[.-]|$)")
# Two parts of the new layout may have ids of missing pages between them, but not as many as a part has pages.
_FEWEST_MISSING, _MISSING_SHARE = 50, 0.1


class DumpChangedError(RunFailedError):
    """The mirror's files differ from those of the same names when the dump was found; look for the dump again."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DumpFile:
    """A file of a dump.

    Attributes:
      name: without a directory.
      url: its address: http(s)://, gs:// or a local path.
      size: in bytes; None if the mirror does not say.
      sums: the checksums that the mirror publishes, in hexadecimal, by algorithm (sha256, sha1, md5), at least one. A
        download is compared with all of them.
    """

    name: str
    url: str
    size: int | None = None
    sums: Mapping[str, str]

    @property
    def checksum(self) -> str:
        """The checksum by the strongest algorithm."""
        return best_checksum(self.sums)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dump:
    """A complete dump on a mirror.

    Attributes:
      wiki: its database's name, such as enwiki.
      date: ISO; the same for all files.
      layout: classic or content.
      files: the files with its pages, in the order of their pages.
    """

    wiki: str
    date: str
    layout: str
    files: Sequence[DumpFile]

    @property
    def size(self) -> int | None:
        """The size of all files in bytes; None if one is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def best_checksum(sums: Mapping[str, str]) -> str:
    """Return the checksum by the strongest algorithm among a file's, given by algorithm; empty if there is none."""
    return next((sums[algorithm] for algorithm in ("sha256", "sha1", "md5") if algorithm in sums), "")


def read_checksums(content: bytes) -> dict[str, str]:
    """Return the checksums, in hexadecimal, by file, in a list in sha1sum's format; other lines are ignored."""
    lines = [_CHECKSUM_LINE.fullmatch(line) for line in content.decode(errors="replace").splitlines()]
    return {match[2]: match[1].lower() for match in lines if match}


def is_index(name: str) -> bool:
    """Return whether a file is the index of a multistream file."""
    return _INDEX.search(name) is not None


def choose_pages_files(names: Sequence[str]) -> list[str]:
    """Return the files that hold the pages of a dump, each page once, then their indexes; both in the order of pages.

    If a dump exists both in parts and in one file, the parts are chosen, because they are downloaded side by side.
    """
    ranges = {name: int(match[1]) if (match := _PAGES.search(name)) else -1 for name in names}
    has_parts = any(first >= 0 for name, first in ranges.items() if not is_index(name))
    chosen = [name for name, first in ranges.items() if (first >= 0) == has_parts]
    return sorted(chosen, key=lambda name: (is_index(name), ranges[name], name))


def problem_of(names: Sequence[str], wiki: str, date: str, *, planned: bool) -> str | None:
    """Return a clause that says why files, by their names, do not form one dump; None if they do.

    Args:
      names: from `choose_pages_files`.
      wiki, date: of the dump.
      planned: True if the page ranges were planned before anything was written, so that they follow each other without
        a gap; False if they begin and end with existing pages.
    """
    for name in names:
        if not name.startswith(f"{wiki}-"):
            return f"{name} is not of {wiki}"
        if date_in_name(name) != date:
            return f"{name} is not of {date}"
    ranges = {name: (int(match[1]), int(match[2])) for name in names if (match := _PAGES.search(name))}
    parts = sorted((pages, name) for name, pages in ranges.items() if not is_index(name))
    end, before, width = 0, "", 0
    for (first, last), name in parts:
        gap = first - end - 1
        if gap < 0:
            return f"{name} and {before} have pages in common"
        if gap > 0 and (planned or gap >= max(_FEWEST_MISSING, _MISSING_SHARE * (width or last - first + 1))):
            return f"the part with the pages {end + 1} to {first - 1} is missing, in front of {name}"
        end, before, width = last, name, last - first + 1
    found = {pages for pages, _ in parts}
    alone = [name for name, of_index in ranges.items() if found and is_index(name) and of_index not in found]
    return f"the part that belongs to {alone[0]} is missing" if alone else None


def part_twice(files: Sequence[DumpFile]) -> str | None:
    """Return a clause that names two parts with the same content, which means that pages are lost; None otherwise."""
    seen: dict[str, str] = {}
    for file in files:
        if (other := seen.setdefault(file.checksum, file.name)) != file.name:
            return f"{file.name} has the same checksum as {other}"
    return None
