"""Finds one page or document in the inputs of a build: by its title, or by its id."""

import bz2
import concurrent.futures
import contextlib
import dataclasses
import html
import itertools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.storage import files
from transforms.inputs.formats import detect
from transforms.inputs.items import CutOff, Document, RejectedPage
from transforms.inputs.mediawiki import Page
from transforms.inputs.multistream import index_of
from transforms.inputs.options import ReadOptions
from transforms.inputs.units import Unit, plan_units, read_unit

Item = Page | Document | RejectedPage
_UNITS_AHEAD = 2  # for each thread


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The page that a user names: by its id, if the name is a number, or by its title ("_" stands for a blank)."""

    name: str

    @property
    def id(self) -> str | None:
        """The id of a page; None: the name is not a number, so it is a title, or a document's id."""
        return self.name if self.name.isdecimal() else None

    def has_title(self, title: str) -> bool:
        """Whether a title is meant; the first letter may be small."""
        wanted = self.name.replace("_", " ").strip()
        return bool(wanted) and title in (wanted, wanted[:1].upper() + wanted[1:])

    def has_id(self, item: Item) -> bool:
        """Whether an item has the id."""
        if isinstance(item, Page):
            return self.id == str(item.page_id)
        return isinstance(item, Document) and item.document_id == self.name != ""

    def is_titled(self, item: Item) -> bool:
        """Whether an item has the title."""
        title = item.title if isinstance(item.title, str) else item.title.decode(errors="replace")
        return self.has_title(title)


def find_page(
    inputs: Sequence[files.FileInfo], wanted: Wanted, *, input_format: str, reading: ReadOptions
) -> tuple[str, Item] | None:
    """The path of an input, and its first page of this id, else of this title; None if there is none.

    Where a multistream dump's index lies beside it, one stream is read. Other inputs are read from their beginning, by
    as many threads as there are processors.

    Raises:
      UnusableInputError: an input is damaged.
    """
    titled = None
    for file in inputs:
        index = index_of(file)
        units = _units_by_index(file, index, wanted, input_format) if index is not None else None
        if units is None:
            units = plan_units([file], input_format=input_format, reading=reading, allow_empty=len(inputs) > 1)
        for item in _matches(units, wanted, reading):
            if wanted.id is None or wanted.has_id(item):
                return file.path, item
            titled = titled or (file.path, item)
    return titled


def _units_by_index(file: files.FileInfo, index: str, wanted: Wanted, input_format: str) -> list[Unit] | None:
    """The streams of a dump that have the page, by the dump's index; None: the index does not tell."""
    found_format, container = detect(file.path, input_format)
    if found_format != "mediawiki" or container != "bz2":
        return None
    starts: list[int] = []
    ends: list[int] = []
    last = -1
    with contextlib.suppress(OSError, ValueError, EOFError), contextlib.ExitStack() as stack:
        packed = stack.enter_context(files.open_input(index))
        for line in stack.enter_context(bz2.open(packed)) if index.endswith(".bz2") else packed:
            start_text, id_text, title = line.decode(errors="replace").rstrip("\r\n").split(":", 2)
            start = int(start_text)
            if start != last and len(ends) < len(starts):
                ends.append(start)
            last = start
            if (id_text == wanted.id or wanted.has_title(html.unescape(title))) and starts[-1:] != [start]:
                starts.append(start)
        ends += [file.size] * (len(starts) - len(ends))
        # An index of another dump would lead astray; one that lacks the page may be older than its dump.
        if starts and ends[-1] <= file.size:
            return [
                Unit(path=file.path, start=start, end=end, format=found_format, container=container)
                for start, end in zip(starts, ends, strict=True)
            ]
    return None


def _matches(units: Sequence[Unit], wanted: Wanted, reading: ReadOptions) -> Iterator[Item]:
    """The items of units that have the id or the title, in order."""
    is_over = threading.Event()

    def matches_of(unit: Unit) -> list[Item]:
        found: list[Item] = []
        for item in read_unit(unit, reading):
            if is_over.is_set():
                break
            if not isinstance(item, CutOff) and (wanted.has_id(item) or wanted.is_titled(item)):
                found.append(item)
                if wanted.id is None or wanted.has_id(item):
                    break
        return found

    threads = len(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        try:
            waiting = iter(units)
            running = [pool.submit(matches_of, unit) for unit in itertools.islice(waiting, threads * _UNITS_AHEAD)]
            while running:
                yield from running.pop(0).result()
                running += [pool.submit(matches_of, unit) for unit in itertools.islice(waiting, 1)]
        finally:
            is_over.set()


def present_inputs(entries: Sequence[Mapping[str, Any]], near: Sequence[str]) -> list[files.FileInfo]:
    """The inputs of a manifest that are there: where they were, or, with their name and size, in another directory.

    near: these directories.
    """
    found: list[files.FileInfo] = []
    for entry in entries:
        path = str(entry["path"])
        places = [path, *(files.join(directory, files.base_name(path)) for directory in near)]
        for place in places:
            if files.exists(place) and files.size(place) == entry.get("bytes", files.size(place)):
                found.append(files.FileInfo(path=place, size=files.size(place)))
                break
    return found
