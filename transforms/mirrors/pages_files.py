"""Which files of a dump hold its pages, each page once."""

import re
from collections.abc import Sequence

_INDEX = re.compile(r"-multistream-index\d*\.(?:txt|xml)")
_RANGE = re.compile(r"-p\d+p\d+\.")
# Dumps of something else than the wikitext of the pages as they are today.
_OTHERS = re.compile(r"-(?:stub-|abstract|pages-logging|pages-meta-history|siteinfo)")
# How files are packed, what is read in parallel first. Other endings are taken as they are: a pattern has chosen them.
_CONTAINERS = (".bz2", "", ".gz", ".xz")
_PACKED = re.compile(r"\.(?:bz2|gz|xz)$")
_UNREADABLE = (".7z", ".zst", ".lz4", ".zip")


def is_index(name: str) -> bool:
    """Whether a file is the index of a multistream file."""
    return _INDEX.search(name) is not None


def choose_pages_files(names: Sequence[str]) -> list[str]:
    """The files that hold the pages of a dump, each page once, with their indexes; sorted by page.

    Wikimedia publishes the same pages as multistream files and as single streams, in parts and in one file, and beside
    them stubs, abstracts and logs; somebody may have unpacked a file. Articles come before other pages, multistream
    before single streams (its parts are read without unpacking what lies before them), and parts before the whole (they
    are downloaded side by side).
    """
    chosen = [name for name in names if not _OTHERS.search(name) and not name.endswith(_UNREADABLE)]
    for mark in ("-pages-articles", "-multistream"):
        if with_mark := [name for name in chosen if mark in name]:
            chosen = with_mark
    pages = [name for name in chosen if not is_index(name)]
    if parts := [name for name in pages if _RANGE.search(name)]:
        pages = parts
    indexes = [name for name in chosen if is_index(name) and bool(_RANGE.search(name)) == bool(parts)]
    pages = _packed_once(pages)
    return sorted(pages, key=_by_page) + sorted(indexes, key=_by_page)


def _packed_once(names: Sequence[str]) -> list[str]:
    """Of files that differ only in how they are packed, the one that is read best."""
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
