"""Which files of a dump hold its pages, each page once."""

import re
from collections.abc import Sequence

_INDEX = re.compile(r"-multistream-index\d*\.(?:txt|xml)")
_RANGE = re.compile(r"-p\d+p\d+\.")


def is_index(name: str) -> bool:
    """Whether a file is the index of a multistream file."""
    return _INDEX.search(name) is not None


def choose_pages_files(names: Sequence[str]) -> list[str]:
    """The files that hold the pages of a dump, each page once, with their indexes; sorted by page.

    Wikimedia publishes the same pages as multistream files and as single streams, in parts and in one file, and beside
    them stubs, abstracts and logs. Articles come before other pages, multistream before single streams (its parts are
    read without unpacking what lies before them), and parts before the whole (they are downloaded side by side).
    """
    chosen = list(names)
    for mark in ("-pages-articles", "-multistream"):
        if with_mark := [name for name in chosen if mark in name]:
            chosen = with_mark
    pages = [name for name in chosen if not is_index(name)]
    if parts := [name for name in pages if _RANGE.search(name)]:
        pages = parts
    indexes = [name for name in chosen if is_index(name) and bool(_RANGE.search(name)) == bool(parts)]
    return sorted(pages, key=_by_page) + sorted(indexes, key=_by_page)


def _by_page(name: str) -> tuple[int, str]:
    match = re.search(r"-p(\d+)p\d+", name)
    return (int(match[1]) if match else 0, name)
