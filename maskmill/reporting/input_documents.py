"""What became of the pages and documents of the input: how many were left out, why, and which ones."""

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from maskmill.reporting import shown
from maskmill.reporting.made_stages import MadeStage
from maskmill.storage import completions, files, manifest

MOST_EXAMPLES = 5
_MOST_TITLE = 120
_MOST_REASON = 300
_MOST_REJECTED = 25

Titles = Mapping[str, Sequence[str]]  # of the first documents, by the name under which they are counted

# Why a page or document is not in the text, by the name of its count, in the order in which it is decided.
_REASONS: Mapping[str, str] = {
    "other_namespaces": "pages of other namespaces",
    "redirects": "redirects",
    "other_content_models": "pages that are not wikitext",
    "disambiguation_pages": "disambiguation pages",
    "rejected": "documents that could not be processed",
    "too_short": "shorter than min_characters",
    "few_letters": "too few letters (min_letter_share)",
    "repeated_lines": "too many repeated lines (max_repeated_share)",
    "list_pages": "list pages (max_list_share)",
    "stub_pages": "stubs (drop_stubs)",
    "empty": "pages without any text",
    "over_max_documents": "behind max_documents",
    "emptied_documents": "every paragraph is a duplicate",
}
_OF_SOURCE = ("read", "documents", "held_out", "used", "bytes", "epochs", "share")
_NOT_REASONS = ("read", "documents", "cut_off_files", "cut_off_pages")


@dataclasses.dataclass(frozen=True)
class SetAside:
    """Documents that were left out for one reason: the name of their count, the reason as a reader understands it, how
    many they are, and titles of some.
    """

    name: str
    reason: str
    count: int
    titles: tuple[str, ...] = ()


class Rejected(NamedTuple):
    """A document that could not be processed: where it stands, and why it could not."""

    input: str
    title: str
    reason: str


@dataclasses.dataclass(frozen=True)
class MixedSource:
    """A source of a mix, as the manifest's `decided` has it.

    Attributes:
      name: as the build calls it.
      dump_date: in ISO's form; empty: it is not a dump.
      read, documents, held_out, used: documents that were read, could be used, are in the eval set and, each as often
        as it stands there, in the training text.
      bytes: of them in the training text.
      epochs: how often the source was taken.
      share: of the mix's bytes.
    """

    name: str
    dump_date: str
    read: int
    documents: int
    held_out: int
    used: int
    bytes: int
    epochs: float
    share: float


@dataclasses.dataclass(frozen=True)
class Documents:
    """What became of the documents.

    Attributes:
      read: how many pages or documents were read.
      set_aside: those that were left out, by reason.
      train, eval: how many are in the text of each split.
      rejected: some of those that could not be processed.
      sources: those of a mix; empty if there is none.
      languages: how the text was split into sentences; empty if it was not.
    """

    read: int
    set_aside: tuple[SetAside, ...]
    train: int
    eval: int
    rejected: tuple[Rejected, ...] = ()
    sources: tuple[MixedSource, ...] = ()
    languages: tuple[str, ...] = ()

    @property
    def lost(self) -> int:
        """How many were left out."""
        return sum(reason.count for reason in self.set_aside)


def documents_of(stage: MadeStage, titles: Titles) -> Documents:
    """What became of the documents of the stage extract; titles: its own."""
    extract, clean = stage.counts.get("extract", {}), stage.counts.get("clean", {})
    counts = {name: int(value) for name, value in extract.items() if name not in _NOT_REASONS and value}
    if emptied := stage.counted("paragraphs", "emptied_documents"):
        counts["emptied_documents"] = emptied
    order = [*_REASONS, *sorted(counts)]
    return Documents(
        read=int(extract.get("read") or clean.get("documents") or 0),
        set_aside=tuple(
            SetAside(name, _REASONS.get(name, name.replace("_", " ")), counts[name], _shown(titles.get(name, ())))
            for name in sorted(counts, key=order.index)
        ),
        train=stage.counted("train", "documents"),
        eval=stage.counted("eval", "documents"),
        rejected=tuple(_rejected(files.join(stage.directory, manifest.REJECTED))),
        sources=tuple(
            MixedSource(name, str(mixed.get("dump_date", "")), *(mixed.get(key, 0) for key in _OF_SOURCE))
            for name, mixed in stage.made.get("decided", {}).get("sources", {}).items()
        ),
        languages=tuple(dict.fromkeys(shown.text(str(one["name"])) for one in _sentences(stage))),
    )


def _sentences(stage: MadeStage) -> list[Mapping[str, Any]]:
    """How the sentences of each language, or of each source of a mix, were told."""
    decided = stage.made.get("decided", {})
    of_sources = [source.get("sentences", []) for source in decided.get("sources", {}).values()]
    return [one for some in (decided.get("sentences", []), *of_sources) for one in some if "name" in one]


def titles_of(stage: MadeStage) -> Titles:
    """Titles of the first documents of the stage extract, in order, by the name under which they are counted."""
    return completions.load(stage.directory, completions.RUN, completions.TITLES) or {}


def _shown(titles: Sequence[str]) -> tuple[str, ...]:
    return tuple(shown.beginning(title, _MOST_TITLE) for title in dict.fromkeys(titles))[:MOST_EXAMPLES]


def _rejected(path: str) -> Iterator[Rejected]:
    """The first documents of rejected.jsonl."""
    if not files.exists(path):
        return
    with files.open_input(path) as lines:
        for line in itertools.islice(lines, _MOST_REJECTED):
            entry = json.loads(line)
            input, title, reason = (str(entry.get(name, "")) for name in Rejected._fields)
            yield Rejected(input, shown.beginning(title, _MOST_TITLE), shown.beginning(reason, _MOST_REASON))
