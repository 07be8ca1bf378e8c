"""The input's pages and documents: how many were left out and why, with some titles."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from maskmill.inspection.shown_text import shown as harmless
from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage
from maskmill.storage import completions

MOST_EXAMPLES = 5
_MOST_TITLE = 120

# Reasons why a page or document is not in the text, by the name of its count, in the order of the checks.
_REASONS: Mapping[str, str] = {
    "other_namespaces": "pages of other namespaces",
    "redirects": "redirects",
    "other_content_models": "pages that are not wikitext",
    "disambiguation_pages": "disambiguation pages",
    "rejected": "documents that could not be processed (rejected.jsonl says why)",
    "too_short": "shorter than min_characters",
    "few_letters": "too few letters (min_letter_share)",
    "repeated_lines": "too many repeated lines (max_repeated_share)",
    "list_pages": "list pages (max_list_share)",
    "stub_pages": "stubs (drop_stubs)",
    "empty": "pages without any text",
    "over_max_documents": "after the first max_documents",
    "emptied_documents": "every paragraph is a duplicate",
}
_OF_SOURCE = ("read", "documents", "held_out", "used", "bytes", "epochs", "share")
_NOT_REASONS = ("read", "documents", "cut_off_files", "cut_off_pages")


@dataclasses.dataclass(frozen=True)
class SetAside:
    """Documents that were left out for one reason: the reason in a reader's words, their number, and some titles."""

    reason: str
    count: int
    titles: tuple[str, ...] = ()


class Documents(NamedTuple):
    """The counts of the input's documents.

    Attributes:
      read: the number of pages or documents that were read.
      set_aside: those that were left out, by reason.
      train, eval: the number in the text of each split.
      sources: of a mix, each with its name, its dump_date and the counts of _OF_SOURCE in the manifest.
      languages: whose rules split the text into sentences; empty if it was not split.
    """

    read: int
    set_aside: tuple[SetAside, ...]
    train: int
    eval: int
    sources: tuple[Mapping[str, Any], ...] = ()
    languages: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        """The number of documents that were left out."""
        return sum(one.count for one in self.set_aside)


def documents_of(stage: MadeStage) -> Documents:
    """Return the counts of the documents of the stage extract."""
    extract, decided = stage.counts.get("extract", {}), stage.manifest.get("decided", {})
    counts = {name: int(value) for name, value in extract.items() if name not in _NOT_REASONS and value}
    if emptied := stage.counted("paragraphs", "emptied_documents"):
        counts["emptied_documents"] = emptied
    titles = completions.load(stage.directory, completions.RUN, completions.TITLES) or {}
    order = [*_REASONS, *sorted(counts)]
    mixed = decided.get("sources", {})
    sentences = [one for some in (decided, *mixed.values()) for one in some.get("sentences", []) if "name" in one]
    return Documents(
        read=int(extract.get("read") or stage.counted("clean", "documents")),
        set_aside=tuple(
            SetAside(_REASONS.get(name, name.replace("_", " ")), counts[name], _shown(titles.get(name, ())))
            for name in sorted(counts, key=order.index)
        ),
        train=stage.counted("train", "documents"),
        eval=stage.counted("eval", "documents"),
        sources=tuple(
            {"name": name, "dump_date": shown.day(str(source.get("dump_date", "")))}
            | {key: source.get(key, 0) for key in _OF_SOURCE}
            for name, source in mixed.items()
        ),
        languages=tuple(dict.fromkeys(str(one["name"]) for one in sentences)),
    )


def _shown(titles: list[str]) -> tuple[str, ...]:
    return tuple(harmless(title, _MOST_TITLE) for title in dict.fromkeys(titles))[:MOST_EXAMPLES]
