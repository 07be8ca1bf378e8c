"""What became of an article on its way from a dump to rows; transforms/following finds it."""

import dataclasses

from maskmill.inspection.decoded import DecodedExample
from maskmill.inspection.passages import HoldingRows
from maskmill.inspection.text_shards import TextDocument


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundDocument:
    """What became of an article at every stage. Texts are raw: `text.shown` makes them safe to print.

    Attributes:
      name: the title or id that was asked for.
      title, id: as the input has them; the id may be empty.
      input: the path of the input that has it.
      wikitext: of the page; empty for documents that are no wikitext.
      text: what the extraction made of it, a paragraph a line; empty where it was left out before.
      outcome: "train" or "eval": the split that it is in; else what it was counted as: "redirects",
        "disambiguation_pages", "empty" …, or why it was rejected; "absent": it is in no text shard.
      document: its place in the text shards, with its sentences as they stand there; None: it is in none.
      pieces: of each sentence, as the vocabulary of the examples has them; empty where there are no examples.
      rows: the rows that hold it, the first of them decoded; None: there are no examples.
      skipped: what could not be looked at, a sentence each.
    """

    name: str
    title: str
    id: str
    input: str
    wikitext: str
    text: str
    outcome: str
    document: TextDocument | None = None
    pieces: tuple[tuple[str, ...], ...] = ()
    rows: HoldingRows | None = None
    skipped: tuple[str, ...] = ()

    @property
    def examples(self) -> tuple[DecodedExample, ...]:
        """The first rows that hold it."""
        return () if self.rows is None else self.rows.examples
