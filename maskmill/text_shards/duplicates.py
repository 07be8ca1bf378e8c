"""Duplicate paragraphs: which paragraphs of a whole build are dropped.

The first paragraph of its kind stays, in the order of the documents. So what is dropped depends on the documents
alone, never on where the input is cut nor on which worker comes first. The decision is made once for a build and kept
in its work directory: `<key>.npy`, a row of DROPPED for each paragraph that goes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.storage import completions, files, read_ahead, turns
from maskmill.text_shards import duplicate_search
from maskmill.text_shards.duplicate_search import DROPPED, KIND, Part, Search, Share
from maskmill.text_shards.fragments import Fragment, in_order
from maskmill.text_shards.options import ExtractionOptions

Rows = npt.NDArray[Any]


def decision_key(fragments: Iterable[Fragment], extraction: ExtractionOptions) -> str:
    """Return what the decision depends on: the fragments in order, the options, the code's format."""
    keys = [fragment.key for fragment in in_order(fragments)]
    return completions.fingerprint(KIND, completions.FORMAT_VERSIONS["duplicates"], extraction.quality, keys)


def find_duplicates(fragments: Iterable[Fragment], extraction: ExtractionOptions, output: str) -> Rows:
    """Decide on the paragraphs of a build, unless that is done already; return rows of DROPPED, in order."""
    key = _decide(in_order(fragments), extraction, output, search=_search_here)
    return completions.read_table(output, KIND, key)


def _decide(
    ordered: Sequence[Fragment],
    extraction: ExtractionOptions,
    output: str,
    search: Callable[[list[Part]], None],
) -> str:
    """Write the decision on fragments, which come in order, unless it is there; return its key.

    search: does all steps before that.
    """
    key = decision_key(ordered, extraction)
    parts = duplicate_search.parts_of(ordered, key, extraction, output)

    def make() -> dict[str, Any]:
        search(parts)
        return _write_decision(parts)

    completions.once(
        output,
        KIND,
        key,
        make,
        lambda record: completions.ItemFiles(has_table=True),
        name="the decision on duplicate paragraphs",
    )
    _forget(parts[0].search)
    return key


def _search_here(parts: list[Part]) -> None:
    """Do all steps of a search in this process."""
    _forget(parts[0].search)
    hashed = list(map(duplicate_search.hash_paragraphs, parts))
    linked = list(map(duplicate_search.find_links, duplicate_search.shares_of(hashed)))
    picked = list(map(duplicate_search.pick_candidates, duplicate_search.unite([*hashed, *linked])))
    for share in duplicate_search.shares_of(picked):
        duplicate_search.drop_near(share)


def _left_by(search: Search, name: str = "*") -> list[str]:
    """Return the files that the steps of a search have left, of one name or all."""
    return files.list_directory(completions.work_path(search.output, KIND, "").rstrip("/"), f"{search.key}.{name}.*")


def _forget(search: Search) -> None:
    """Delete what the steps of a search have left: also before it begins, for another version may have cut it."""
    files.delete(_left_by(search))


def _write_decision(parts: Sequence[Part]) -> dict[str, Any]:
    """Write the table of a decision from what the steps have left; return its record. A part is sorted at a time."""
    search = parts[0].search
    paths = _left_by(search, "near")
    near = np.frombuffer(b"".join(files.each(search.output, files.read_bytes, paths)), DROPPED)
    near = near[np.argsort(near["fragment"], kind="stable")]
    exact = {search.path("exact", part.number): part for part in parts}
    sizes = files.sizes_in(files.parent(search.path("exact", 0)))
    rows = np.empty(len(near) + sum(sizes[path] for path in exact) // DROPPED.itemsize, DROPPED)
    end = 0
    for path, content in read_ahead.in_order(search.output, files.read_bytes, [(path, sizes[path]) for path in exact]):
        first, last = np.searchsorted(near["fragment"], [exact[path].number, exact[path].end])
        of_part = np.concatenate([np.frombuffer(content, DROPPED), near[first:last]])
        start, end = end, end + len(of_part)
        rows[start:end] = of_part[np.lexsort((of_part["offset"], of_part["fragment"]))]
    read = sizes[search.path("labels", 0)] // duplicate_search.LABEL.itemsize
    counts = {"read": read, "exact_duplicates": len(rows) - len(near), "near_duplicates": len(near)}
    completions.write_table(search.output, KIND, search.key, rows)
    return {"counts": counts}


def duplicate_counts(fragments: Iterable[Fragment], extraction: ExtractionOptions, output: str) -> dict[str, int]:
    """Return how many paragraphs were looked at, and how many were dropped as what, once `find_duplicates` has
    decided.
    """
    return dict(completions.finished(output, KIND, decision_key(fragments, extraction))["counts"])


# ---- the steps of the graph


def begin(fragments: Iterable[Fragment], extraction: ExtractionOptions, output: str) -> list[Part]:
    """Return what there is to search: nothing if an earlier run has decided."""
    ordered = in_order(fragments)
    key = decision_key(ordered, extraction)
    if completions.load(output, KIND, key) is not None:
        return []
    parts = duplicate_search.parts_of(ordered, key, extraction, output)
    _forget(parts[0].search)
    return parts


def conclude(elements: Iterable[Fragment | Part | Share], extraction: ExtractionOptions, output: str) -> list[Fragment]:
    """Write the decision; return the fragments. Where a decision was there and proves to be damaged, it is made here.

    elements: the fragments, and what the last two steps of the search gave.
    """
    elements = list(elements)
    ordered = in_order(element for element in elements if isinstance(element, Fragment))
    is_searched = any(isinstance(element, Part) for element in elements)
    _decide(ordered, extraction, output, search=(lambda parts: None) if is_searched else _search_here)
    return ordered


def alone(element: Any, work: Any) -> Any:
    """Do a piece of work of the search, a function, while no other is done in this process.

    Beam cannot compare a function with the annotation of one, which --runtime_type_check asks for.
    """
    with turns.taken():
        return work(element)
