"""Items that readers of inputs yield beside pages: documents, what cannot be used and why, and the cut of a file."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.characters.utf8 import is_utf8
from maskmill.errors import UnusableInputError
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.plain_text import plain_text

OR_KEEP = "or take what stands before the cut with --keep_truncated"
NOT_UTF8 = "it is not valid UTF-8"
IS_HOLLOW = "it has a hole of zero bytes, as a file has that was not written whole"
# A hole is a sector of a disk at least. Fewer zeros may be text: a text's author or program has put them there.
HOLE = bytes(512)

# How much of a rejected document stands for its title.
_EXCERPT_BYTES = 200
_EXCERPT_CHARACTERS = 60
_MOST_COLUMNS = 20  # that a message names
_JSON_TYPES: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "whole numbers",
    float: "numbers",
    list: "lists",
    dict: "objects",
    type(None): "nothing (null)",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """One document, in UTF-8, as `plain_text` gives it. `document_id`, `title`: empty where the input has none.

    language: as its record names it, empty where it names none; None for a document that is no record, so that its
    language is that of its file. metadata: the columns of its record that ReadOptions asks for.
    """

    document_id: str
    title: bytes
    text: bytes
    language: str | None = None
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedPage:
    """A page or document that cannot be used: its title (or name, or how it begins), and the reason."""

    title: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class CutOff:
    """The end of a file that is cut off: the title of the page or document that the cut is in; None if in none."""

    title: str | None


class CutOffError(UnusableInputError):
    """A file ends in the middle of its data."""


def cut_off(path: str, byte: int, packing: str) -> CutOffError:
    """Return the error of a packed file that ends at a byte in the middle of its data; `packing` is its container's
    name.
    """
    return CutOffError(
        f"{path}: the file is cut off: it ends at byte {byte} in the middle of its {packing} data; "
        f"fetch it again, {OR_KEEP}."
    )


def problem_of_text(text: bytes) -> str | None:
    """Return why a text that stands in a file as it is cannot be used; None where it can."""
    if not is_utf8(text):
        return NOT_UTF8
    return IS_HOLLOW if HOLE in text else None


def rejected(data: bytes, reason: str) -> RejectedPage:
    """Reject a document without a title of its own; the beginning of `data` names it."""
    beginning = " ".join(data[:_EXCERPT_BYTES].decode("utf-8", "replace").split())
    return RejectedPage(title=beginning[:_EXCERPT_CHARACTERS], reason=reason)


def too_large(reading: ReadOptions) -> str:
    """Return the reason why a document of more than `reading.largest_page` bytes is rejected."""
    return f"the document is larger than {reading.largest_page:,} bytes"


def check_records(records: Sequence[Mapping[str, Any]], path: str, reading: ReadOptions) -> None:
    """Refuse a file if none of its first records can be used, all for the same cause.

    records: the first ones of the file, or all. reading: names the columns of the text and of the id.

    Raises:
      UnusableInputError: a column is missing in all of them, or holds in all of them what it may not.
    """
    if not records:
        return
    present = _shown_columns(records)
    for column, allowed, wanted, flag in (
        (reading.text_column, str, "text", "--text_column"),
        (reading.id_column, (str, int), "text or whole numbers", "--id_column"),
        (reading.language_column, str, "text", "--language_column"),
    ):
        if column is None:
            continue
        found = [record[column] for record in records if column in record]
        if not found:
            raise UnusableInputError(
                f'{path}: there is no column "{column}"; name one with {flag}; its columns are {present}.'
            )
        if not any(isinstance(value, allowed) and not isinstance(value, bool) for value in found):
            raise UnusableInputError(
                f'{path}: the column "{column}" holds {_JSON_TYPES[type(found[0])]}, not {wanted}; '
                f"name another with {flag}; its columns are {present}."
            )


def refuse_missing_columns(present: Sequence[str], path: str, reading: ReadOptions) -> None:
    """Raise UnusableInputError if a file lacks a column of `metadata_columns`, and no step may give it."""
    present = [*present, *(["language"] if reading.language_column is not None else [])]
    missing = [] if reading.all_columns else [name for name in reading.metadata_columns if name not in present]
    if missing:
        nearest = difflib.get_close_matches(missing[0], present, n=1)
        hint = (
            f"did you mean {nearest[0]}?" if nearest else f"there are {', '.join(present[:_MOST_COLUMNS]) or 'none'}."
        )
        raise UnusableInputError(f'{path}: there is no column "{missing[0]}" (--metadata_columns); {hint}')


def _shown_columns(records: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record))
    return ", ".join(names[:_MOST_COLUMNS]) + (", …" if len(names) > _MOST_COLUMNS else "") if names else "none"


def document_of_record(record: Mapping[str, Any], source: bytes, reading: ReadOptions) -> Document | RejectedPage:
    """Return the document that a record (of JSON lines, of Parquet) holds.

    record: its values by column. source: the record as the file has it; its beginning names the record if it is
    rejected. reading: names the columns of the text and of the id.
    """
    text = record.get(reading.text_column)
    if not isinstance(text, str):
        problem = "is no text" if reading.text_column in record else "is missing"
        return rejected(source, f'the column "{reading.text_column}" {problem}')
    document_id = "" if reading.id_column is None else record.get(reading.id_column)
    if isinstance(document_id, bool) or not isinstance(document_id, str | int):
        return rejected(source, f'the column "{reading.id_column}" is missing, or neither text nor a whole number')
    document_id = str(document_id)
    try:
        document_id.encode()
        encoded = plain_text(text.encode())
    except UnicodeEncodeError:
        return rejected(source, "it holds half a surrogate pair, which is no character")
    language = record.get(reading.language_column) if reading.language_column is not None else ""
    columns = record.keys() - {reading.text_column} if reading.all_columns else reading.metadata_columns
    return Document(
        document_id=document_id,
        title=b"",
        text=encoded,
        language=language if isinstance(language, str) else "",
        metadata={name: record[name] for name in record if name in columns},
    )
