"""The options of turning pages of wikitext into text."""

import dataclasses
import datetime
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class WikitextOptions:
    """Options for the text of a page.

    date: the dump's date (ISO), which the magic words of the clock give. If templates are expanded, a page may nest
    `expansion_depth` calls (MediaWiki's limit), write `expansion_characters` characters and take `expansion_steps`
    steps (nodes, and definitions by their length). A call that is too deep gives nothing; beyond the other limits all
    further calls give nothing. rules_text: the content of the file that `template_rules` names.

    Raises:
      UnusableInputError: a value is impossible.
    """

    headings: Literal["drop", "keep"] = option("drop", help="headings of sections")
    lists: Literal["sentences", "keep", "drop"] = option(
        "sentences", help="items of lists: those that are sentences or explain something"
    )
    expand_templates: Literal[False, "unknown", "all"] = option(
        False,
        help="expand calls within lines of text with the dump's own definitions, which takes a second pass over the "
        "dump: off, `unknown` (also the flag alone: those that no rule knows), or `all`",
    )
    template_rules: str | None = option(
        None, help="file of your own rules for templates, in the format of maskmill's; they replace maskmill's"
    )
    report_templates: bool = option(
        False, help="list the most frequent templates without a rule in unknown_templates.tsv, each with a sample"
    )
    holes: Literal["drop", "keep"] | None = option(
        None, help="sentences in which a call, tag or formula gave nothing; null: drop, with --compat keep"
    )
    rules_text: str = ""
    date: str = "2000-01-01"
    expansion_depth: int = 100
    expansion_characters: int = 2_000_000
    expansion_steps: int = 100_000

    GROUPS: ClassVar[Mapping[str, str]] = {"headings": "how wikitext becomes text"}

    def __post_init__(self) -> None:
        # Accepts the values of the time when this was a switch, and words.
        expand = {True: "unknown", "off": False}.get(self.expand_templates, self.expand_templates)
        object.__setattr__(self, "expand_templates", expand)
        check_fields(self)
        try:
            datetime.date.fromisoformat(self.date)
        except ValueError:
            raise UnusableInputError(f"date is {self.date!r}; it must be a day such as 2024-05-01") from None
        for name in ("expansion_depth", "expansion_characters", "expansion_steps"):
            if getattr(self, name) < 1:
                raise UnusableInputError(f"{name} is {getattr(self, name)}; it must be at least 1")
