"""A row of examples as a person reads it."""

import dataclasses
from typing import Literal

# What a piece is in a row. masked: predicted, and [MASK] stands there; kept: predicted, and unchanged; random:
# predicted, and another piece stands there.
PieceRole = Literal["text", "special", "masked", "kept", "random", "padding"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodedPiece:
    """A piece of a row.

    Attributes:
      position: in the row, from 0.
      id: as the model reads it.
      text: the piece of this id ("##ing"); "id 17" where no vocabulary is known.
      role: what it is.
      label: the piece to predict; None: it is not predicted.
      segment: 0 or 1.
      sequence: which sequence of a packed row it is in, from 0.
      goes_on: whether it goes on a word: no blank stands before it.
      surface: what the text has here, masks undone and without the vocabulary's marks: "ing" for "##ing". All pieces
        together, with a blank before each that does not go on a word, are the row as text. Raw: before it is printed,
        `text.shown` must escape it, as it must any text of a data set.
    """

    position: int
    id: int
    text: str
    role: PieceRole
    label: str | None = None
    segment: int = 0
    sequence: int = 0
    goes_on: bool = False
    surface: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodedExample:
    """A row.

    Attributes:
      file: its path.
      record: number in the file, from 1.
      sample: number in the split, from 0, as maskmill.open counts.
      pieces: without padding.
      width: pieces of the row with padding.
      label: "next sentence" or "random sentence", "in order" or "swapped"; None: the objective has none. One for each
        sequence of a packed row, with " / " between.
      epoch: for which epoch of a reader its masks were drawn; None: they are stored.
    """

    file: str
    record: int
    sample: int
    pieces: tuple[DecodedPiece, ...]
    width: int
    label: str | None = None
    epoch: int | None = None
