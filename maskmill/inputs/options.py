"""Options that decide how inputs are read."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options that decide how inputs are read.

    largest_page: in bytes; a larger page or document is rejected, so that it does not fill the memory. all_columns:
    read all columns of JSON lines and Parquet, because a step may ask for any.

    Raises:
      UnusableInputError: a field has a value that makes no sense; the message names the field.
    """

    text_documents: Literal["file", "blank_line"] = option(
        "blank_line", help="plain text: one document a file, or documents separated by blank lines"
    )
    text_column: str = option("text", help="JSON lines and Parquet: the column of the text")
    id_column: str | None = option(
        None, help="JSON lines and Parquet: a column of stable ids; null: a hash of the text"
    )
    language_column: str | None = option(
        None,
        help="JSON lines and Parquet: a column of the languages of documents, as codes or English names; null: each "
        "document's own words say it where they are sure",
    )
    metadata_columns: tuple[str, ...] = option(
        (),
        help="columns of JSON lines and Parquet, or metadata that --steps give, to keep for each document in a table "
        "beside its text shard, as url,license",
    )
    keep_truncated: bool = option(
        False,
        help="take what stands before the cut of a file that is cut off, without the page that the cut is in; Parquet, "
        "whose table of contents is at its end, is refused as before",
    )
    largest_page: int = 32 << 20
    all_columns: bool = False

    GROUPS: ClassVar[Mapping[str, str]] = {"text_documents": "how inputs are read"}

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.text_column:
            raise UnusableInputError("text_column is empty: name the column that holds the text.")
        if "document" in self.metadata_columns:
            raise UnusableInputError(
                "--metadata_columns: the table counts documents under the name document; rename this column."
            )
        if self.largest_page < 1:
            raise UnusableInputError(f"largest_page must be 1 byte or more, not {self.largest_page}.")
