"""What is known of a dump on a mirror: its files, their checksums, and what is missing."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from maskmill.errors import RunFailedError
from maskmill.mirrors.dump_names import date_in_name

_CHECKSUM_LINE = re.compile(r"([0-9a-f]{40,64}) [ *](.+)", re.IGNORECASE)
_INDEX = re.compile(r"-multistream-index\d*\.(?:txt|xml)")
_PAGES = re.compile(r"-p(\d+)p(\d+)(?=[.-]|$)")
# Ids of pages that do not exist may lie between two parts of the new layout, but not as many as a part has.
_FEWEST_MISSING, _MISSING_SHARE = 50, 0.1


class DumpChangedError(RunFailedError):
    """The mirror has other files under the same names than when the dump was found; look for it again."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DumpFile:
    """A file of a dump.

    Attributes:
      name: without a directory.
      url: where it is: http(s)://, gs:// or a local path.
      size: in bytes; None where the mirror does not say.
      sums: the checksums that the mirror publishes, in hexadecimal, by their algorithms (sha256, sha1, md5): one at
        least. A download is held against all.
    """

    name: str
    url: str
    size: int | None = None
    sums: Mapping[str, str]

    @property
    def checksum(self) -> str:
        """The best checksum."""
        return best_checksum(self.sums)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dump:
    """A complete dump on a mirror.

    Attributes:
      wiki: as enwiki.
      date: ISO; one for all files.
      layout: classic or content.
      files: its pages' files, in the order of their pages.
    """

    wiki: str
    date: str
    layout: str
    files: Sequence[DumpFile]

    @property
    def size(self) -> int | None:
        """The bytes of all files; None where a size is not known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def best_checksum(sums: Mapping[str, str]) -> str:
    """Return the best of a file's checksums, given by their algorithms; empty where there is none."""
    return next((sums[algorithm] for algorithm in ("sha256", "sha1", "md5") if algorithm in sums), "")


def read_checksums(content: bytes) -> dict[str, str]:
    """Return the checksums, in hexadecimal, by files, of a list as sha1sum writes it; other lines do not count."""
    lines = [_CHECKSUM_LINE.fullmatch(line) for line in content.decode(errors="replace").splitlines()]
    return {match[2]: match[1].lower() for match in lines if match}


def is_index(name: str) -> bool:
    """Say whether a file is the index of a multistream file."""
    return _INDEX.search(name) is not None


def choose_pages_files(names: Sequence[str]) -> list[str]:
    """Return the files that hold the pages of a dump, each page once, then their indexes; both in the order of pages.

    Where a dump is there in parts and in one file, the parts are taken: they are downloaded side by side.
    """
    ranges = {name: int(match[1]) if (match := _PAGES.search(name)) else -1 for name in names}
    has_parts = any(first >= 0 for name, first in ranges.items() if not is_index(name))
    chosen = [name for name, first in ranges.items() if (first >= 0) == has_parts]
    return sorted(chosen, key=lambda name: (is_index(name), ranges[name], name))


def problem_of(names: Sequence[str], wiki: str, date: str, *, planned: bool) -> str | None:
    """Return a clause that says why files, by their names, are not all of one dump; None where they are.

    Args:
      names: as `choose_pages_files` gives them.
      wiki, date: of the dump.
      planned: whether the ranges of pages were cut before anything was written, so that they follow each other without
        a gap; else they begin and end with pages that exist.
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
    """Return a clause that names two parts of the same content, so that the pages of one are lost; None without any."""
    seen: dict[str, str] = {}
    for file in files:
        if (other := seen.setdefault(file.checksum, file.name)) != file.name:
            return f"{file.name} has the same checksum as {other}"
    return None
