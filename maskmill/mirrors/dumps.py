"""What is known of a dump on a mirror, whatever its layout: its files, their checksums, and what is missing."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from maskmill.errors import RunFailedError
from maskmill.mirrors.dump_names import date_in_name

# The algorithm by the number of hexadecimal digits.
_ALGORITHMS = {64: "sha256", 40: "sha1", 32: "md5"}
_CHECKSUM_LINE = re.compile(r"(?:\\)?([0-9a-fA-F]{32,64}) [ *](.+)")
_CHECKSUMS_NAME = re.compile(r"(?:^|[-._])(sha256|sha1|md5)-?sums?(?:\.txt)?$", re.IGNORECASE)

# The better one counts where a mirror has several.
PREFERRED = ("sha256", "sha1", "md5")

_INDEX = re.compile(r"-multistream-index\d*\.(?:txt|xml)")
_RANGE = re.compile(r"-p\d+p\d+\.")
# Dumps of something else than the wikitext of the pages as they are today.
_OTHERS = re.compile(r"-(?:stub-|abstract|pages-logging|pages-meta-history|siteinfo)")
# How files are packed, what is read in parallel first. Other endings are taken as they are: a pattern has chosen them.
_CONTAINERS = (".bz2", "", ".gz", ".xz")
_PACKED = re.compile(r"\.(?:bz2|gz|xz)$")
_PAGES = re.compile(r"-p(\d+)p(\d+)(?=[.-]|$)")
# Ids of pages that do not exist may lie between two parts of the new layout, but not as many as a part has.
_FEWEST_MISSING, _MISSING_SHARE = 50, 0.1
_UNREADABLE = (".7z", ".zst", ".lz4", ".zip")


class DumpChangedError(RunFailedError):
    """The mirror has other files under the same names than when the dump was found; look for it again."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DumpFile:
    """A file of a dump.

    Attributes:
      name: without a directory.
      url: where it is: http(s)://, gs:// or a local path.
      size: in bytes; None where the mirror does not say.
      sums: the checksums that the mirror publishes, in hexadecimal, by their algorithms (sha256, sha1, md5). A download
        is held against all.
    """

    name: str
    url: str
    size: int | None = None
    sums: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def checksum(self) -> str:
        """The best checksum; empty where the mirror publishes none."""
        return best_checksum(self.sums)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dump:
    """A complete dump on a mirror.

    Attributes:
      wiki: as enwiki.
      date: ISO; one for all files.
      layout: classic, content or listing.
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
    return next((sums[algorithm] for algorithm in PREFERRED if algorithm in sums), "")


def part_twice(files: Sequence[DumpFile]) -> str | None:
    """Return a clause that names two parts of the same content, so that the pages of one are lost; None without any."""
    seen: dict[str, str] = {}
    for file in files:
        if file.checksum:
            other = seen.setdefault(file.checksum, file.name)
            if other != file.name:
                return f"{file.name} has the same checksum as {other}"
    return None


def complete(found: Iterable[tuple[str, str, Dump | str]], say: Callable[[str], None]) -> Iterator[Dump]:
    """Return the dumps that are complete. Each is looked at only when it is asked for.

    Args:
      found: of each dump its place, how it is called there, and the dump or a clause that says why it is not complete.
      say: is told why a dump does not count.
    """
    for place, name, dump in found:
        if isinstance(dump, Dump):
            yield dump
        else:
            say(f"{place}: {name} does not count: {dump}.")


def algorithm_in_name(name: str) -> str:
    """Return the algorithm of a file of checksums, from its name; empty where the name is of no such file."""
    match = _CHECKSUMS_NAME.search(name)
    return match[1].lower() if match else ""


def read_checksums(content: bytes) -> dict[str, tuple[str, str]]:
    """Return the checksum in hexadecimal and its algorithm of each file of a list. Other lines do not count.

    Lines are as sha256sum writes them: the checksum, a space, a space or an asterisk, the name.
    """
    found = {}
    for line in content.decode("utf-8", errors="replace").splitlines():
        match = _CHECKSUM_LINE.fullmatch(line.strip())
        if match and (algorithm := _ALGORITHMS.get(len(match[1]))):
            name = match[2].removeprefix("./").rsplit("/", 1)[-1]
            found[name] = (match[1].lower(), algorithm)
    return found


def is_index(name: str) -> bool:
    """Say whether a file is the index of a multistream file."""
    return _INDEX.search(name) is not None


def not_of_dump(name: str, wiki: str, date: str) -> str | None:
    """Return a clause if a file is of another wiki's dump or another day's, by its name; None if it is not."""
    if not name.startswith(f"{wiki}-"):
        return f"{name} is not of {wiki}"
    return None if date_in_name(name) == date else f"{name} is not of {date}"


def choose_pages_files(names: Sequence[str]) -> list[str]:
    """Return the files that hold the pages of a dump, each page once, with their indexes; sorted by page.

    Wikimedia publishes the same pages as multistream files and as single streams, in parts and in one file, and beside
    them stubs, abstracts and logs; somebody may have unpacked a file. Articles come before other pages, multistream
    before single streams (its parts are read without unpacking what lies before them), and parts before the whole (they
    are downloaded side by side).
    """
    chosen = [name for name in dict.fromkeys(names) if not _OTHERS.search(name) and not name.endswith(_UNREADABLE)]
    for mark in ("-pages-articles", "-multistream"):
        if with_mark := [name for name in chosen if mark in name]:
            chosen = with_mark
    pages = [name for name in chosen if not is_index(name)]
    if parts := [name for name in pages if _RANGE.search(name)]:
        pages = parts
    indexes = [name for name in chosen if is_index(name) and bool(_RANGE.search(name)) == bool(parts)]
    pages = _packed_once(pages)
    return sorted(pages, key=_by_page) + sorted(indexes, key=_by_page)


def missing_part(names: Sequence[str], *, planned: bool = False, from_start: bool = True) -> str | None:
    """Return a clause that says which pages a dump lacks or has twice; None where the ranges in its files' names fit.

    Args:
      names: as `choose_pages_files` gives them.
      planned: whether the ranges were cut before anything was written, so that they follow each other without a gap;
        else they begin and end with pages that exist.
      from_start: whether the first part must be there.
    """
    ranges = {name: (int(match[1]), int(match[2])) for name in names if (match := _PAGES.search(name))}
    pages = sorted((pages, name) for name, pages in ranges.items() if not is_index(name))
    end, before = 0 if from_start or not pages else pages[0][0][0] - 1, ""
    for (first, last), name in pages:
        gap = first - end - 1
        width = last - first + 1 if not before else ranges[before][1] - ranges[before][0] + 1
        if gap < 0:
            return f"{name} and {before} have pages in common"
        if gap > 0 and (planned or gap >= max(_FEWEST_MISSING, _MISSING_SHARE * width)):
            return f"the part with the pages {end + 1} to {first - 1} is missing, in front of {name}"
        end, before = last, name
    found = {pages for pages, _ in pages}
    alone = [name for name, of_index in ranges.items() if found and is_index(name) and of_index not in found]
    return f"the part that belongs to {alone[0]} is missing" if alone else None


def _packed_once(names: Sequence[str]) -> list[str]:
    """Return, of files that differ only in how they are packed, the one that is read best."""
    best: dict[str, str] = {}
    for name in sorted(names, key=lambda name: _CONTAINERS.index(_container(name))):
        best.setdefault(_PACKED.sub("", name), name)
    return list(best.values())


def _container(name: str) -> str:
    match = _PACKED.search(name)
    return match[0] if match else ""


def _by_page(name: str) -> tuple[int, str]:
    match = re.search(r"-p(\d+)p\d+", name)
    return (int(match[1]) if match else 0, name)
