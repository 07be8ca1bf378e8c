"""What became of the pages and documents of the input: how many were left out, why, and which ones."""

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence

from transforms.reporting import shown
from transforms.reporting.made_stages import MadeStage
from transforms.storage import completions, files, manifest

MOST_EXAMPLES = 5
_FRAGMENTS = "extract"  # the kind of their records: fragments.KIND, whose module imports Beam
_MOST_TITLE = 120
_MOST_REASON = 300
_MOST_REJECTED = 25

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
_NOT_REASONS = ("read", "documents", "cut_off_files", "cut_off_pages")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetAside:
    """Documents that were left out for one reason.

    Attributes:
      name: of the count.
      reason: as a reader understands it.
      count: how many.
      titles: of some of them.
    """

    name: str
    reason: str
    count: int
    titles: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rejected:
    """A document that could not be processed: where it stands, and why it could not."""

    input: str
    title: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Documents:
    """What became of the documents.

    Attributes:
      read: how many pages or documents were read.
      set_aside: those that were left out, by reason.
      train, eval: how many are in the text of each split.
      eval_list: whether articles were held out at all.
      rejected: some of those that could not be processed.
      sources: of a mix: by source, what was read, could be used, was held out and used, bytes, epochs and share.
    """

    read: int
    set_aside: tuple[SetAside, ...]
    train: int
    eval: int
    rejected: tuple[Rejected, ...] = ()
    sources: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    @property
    def lost(self) -> int:
        """How many were left out."""
        return sum(reason.count for reason in self.set_aside)


def documents_of(stage: MadeStage) -> Documents:
    """What became of the documents of the stage extract."""
    extract, clean = stage.counts.get("extract", {}), stage.counts.get("clean", {})
    counts = {name: int(value) for name, value in extract.items() if name not in _NOT_REASONS and value}
    if emptied := stage.counted("paragraphs", "emptied_documents"):
        counts["emptied_documents"] = emptied
    order = [*_REASONS, *sorted(counts)]
    titles = _titles(stage.directory)
    return Documents(
        read=int(extract.get("read") or clean.get("documents") or 0),
        set_aside=tuple(
            SetAside(
                name=name,
                reason=_REASONS.get(name, name.replace("_", " ")),
                count=counts[name],
                titles=titles.get(name, ()),
            )
            for name in sorted(counts, key=order.index)
        ),
        train=stage.counted("train", "documents"),
        eval=stage.counted("eval", "documents"),
        rejected=tuple(_rejected(stage.directory)),
        sources=dict(stage.made.get("decided", {}).get("sources", {})),
    )


def _titles(directory: str) -> dict[str, tuple[str, ...]]:
    """Titles of the first documents of each fragment, by the name under which they are counted."""
    titles: dict[str, list[str]] = {}
    for key in sorted(completions.keys(directory, _FRAGMENTS)):
        record = completions.load(directory, _FRAGMENTS, key) or {}
        for name, some in record.get("titles", {}).items():
            titles.setdefault(name, []).extend(some)
    return {
        name: tuple(shown.beginning(title, _MOST_TITLE) for title in dict.fromkeys(some))[:MOST_EXAMPLES]
        for name, some in titles.items()
    }


def first_title(stage: MadeStage) -> str | None:
    """The title of the first document of the first input; None where documents have none, or it is not known."""
    places = {str(entry["path"]): place for place, entry in enumerate(stage.made["inputs"])}
    found = []
    for key in completions.keys(stage.directory, _FRAGMENTS):
        record = completions.load(stage.directory, _FRAGMENTS, key) or {}
        for path, start in record.get("first_unit", ()):
            titles = record.get("titles", {}).get("documents", ())
            found += [(places.get(path, len(places)), start, title) for title in titles[:1]]
    return min(found)[2] if found else None


def _rejected(directory: str) -> Iterator[Rejected]:
    """The first documents of rejected.jsonl."""
    path = files.join(directory, manifest.REJECTED)
    if not files.exists(path):
        return
    with files.open_input(path) as lines:
        for line in itertools.islice(lines, _MOST_REJECTED):
            entry = json.loads(line)
            yield Rejected(
                input=str(entry.get("input", "")),
                title=shown.beginning(str(entry.get("title", "")), _MOST_TITLE),
                reason=shown.beginning(str(entry.get("reason", "")), _MOST_REASON),
            )


def parts_of(documents: Documents) -> Sequence[tuple[str, int]]:
    """Where the documents that were read have gone: phrases with their numbers, those of the text first."""
    kept = [("training text", documents.train), ("eval set", documents.eval)]
    return [*((name, number) for name, number in kept if number), *((s.reason, s.count) for s in documents.set_aside)]
