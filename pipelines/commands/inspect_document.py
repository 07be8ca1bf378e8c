"""inspect --document: one article from wikitext to text to sentences to masked rows."""

import dataclasses
import shutil
from collections.abc import Sequence
from typing import Any

from maskmill.inspection.found_documents import FoundDocument
from maskmill.inspection.text import as_json
from pipelines.commands import inspect_text
from pipelines.commands.inspect_options import InspectOptions
from transforms.following.followed_articles import find_document

_MOST_LINES = 10  # of wikitext, text, sentences and pieces
_ROWS_A_LINE = 2  # of the terminal
_INDENT = 2
_SPLITS = ("train", "eval")


def show(path: str, options: InspectOptions) -> None:
    """Prints what became of an article at every stage.

    Raises:
      UnusableInputError: there is no such article, or what it was made from is gone.
    """
    if options.document is None:
        raise ValueError("no document was asked for")
    found = find_document(path, options.document, vocab_file=options.vocab_file)
    if options.format == "json":
        print(as_json(_as_dict(found), indent=1))
    else:
        _print(found)


def _as_dict(found: FoundDocument) -> dict[str, Any]:
    content = dataclasses.asdict(found)
    content["examples"] = [inspect_text.example_dict(example) for example in found.examples]
    if found.rows is not None:
        content["rows"] = {"files": found.rows.files, "searched": found.rows.searched, "count": found.rows.count}
    return content


def _print(found: FoundDocument) -> None:
    out = inspect_text.printer()
    id = f" (id {found.id})" if found.id else ""
    out.title(f"{found.title or found.name}{id} of {found.input}")
    if found.wikitext:
        out.lines("as wikitext", _first(found.wikitext.splitlines()))
    if found.text:
        out.lines("as text", _first(found.text.splitlines()))
    if found.outcome not in _SPLITS:
        out.lines("what became of it", [f"left out: {found.outcome.replace('_', ' ')}"])
    elif found.document is not None:
        place = found.document
        out.lines(
            f"as sentences: document {place.document:,} of {place.file}, from line {place.line:,} on ({found.outcome})",
            _first(place.lines),
        )
    if found.pieces:
        out.lines("as pieces", _first([" ".join(pieces) for pieces in found.pieces]))
    if found.rows is not None:
        print(f"\nin {found.rows.count:,} examples; the {len(found.examples):,} that hold most of it:\n")
        for number, example in enumerate(found.examples):
            inspect_text.print_example(example, is_first=not number)
    for sentence in found.skipped:
        inspect_text.warn(sentence)


def _first(lines: Sequence[str]) -> list[str]:
    """The first lines with text, none longer than two lines of the terminal, and how many are left out."""
    most = _ROWS_A_LINE * (shutil.get_terminal_size().columns - _INDENT) - 1
    filled = [line for line in lines if line.strip()]
    first = [line if len(line) <= most else f"{line[:most]}…" for line in filled[:_MOST_LINES]]
    left = len(filled) - len(first)
    return [*first, f"… and {left:,} more lines; --format json has all"] if left else first
