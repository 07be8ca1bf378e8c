"""Options that decide the documents of a build, their text, and how they become shards."""

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_at_least
from maskmill.errors import UnusableInputError
from maskmill.extraction.options import WikitextOptions
from maskmill.inputs.options import ReadOptions
from maskmill.options import nested, option
from maskmill.text.shards import DEFAULT_SHARD_SIZE_MB

_SMALLEST_SHARD_MB = 2.0**-20  # a byte
# At the size of the English Wikipedia, 35,000 articles.
DEFAULT_EVAL_FRACTION = 0.005
# The values of MLPerf's process_wiki.sh. Its shards are so many MiB of raw WikiExtractor files.
_MLPERF_EVAL_ARTICLES, _MLPERF_SHARD_MB = 10000, 26.92


@dataclasses.dataclass(frozen=True, kw_only=True)
class QualityOptions:
    """Which documents and paragraphs are left out. None, or False, switches a filter off.

    min_letter_share: the least share of letters and marks among the characters that are not spaces. max_repeated_share:
    the greatest share of the text in lines that have occurred in the document before. max_list_share: the greatest
    share of short lines that no sentence ends; a title such as `List of …` makes a list, too. drop_duplicates,
    near_duplicate_threshold, min_duplicate_words: a paragraph of so many words or more is dropped if the same words, or
    words whose 5-grams have at least that estimated Jaccard similarity, have occurred in the build before.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    min_characters: int | None = option(None, help="drop documents of less text than so many characters")
    min_letter_share: float | None = option(
        None, help="drop documents with a smaller share of letters among their characters, 0 to 1; prose has 0.9"
    )
    max_repeated_share: float | None = option(
        None, help="drop documents with more of their text in lines that repeat, 0 to 1"
    )
    max_list_share: float | None = option(
        None, help="drop list pages: by title, or with more of their lines short and without a sentence's end, 0 to 1"
    )
    drop_stubs: bool = option(False, help="drop pages of a dump that a template calls a stub")
    drop_duplicates: bool = option(
        False,
        help="drop paragraphs that stood in the input before, word for word",
    )
    near_duplicate_threshold: float | None = option(
        None,
        help="drop paragraphs as similar as this to one before (Jaccard similarity of word 5-grams, as 0.8); needs the "
        "extra [quality]",
    )
    min_duplicate_words: int = option(10, help="paragraphs of fewer words are no duplicates")

    GROUPS: ClassVar[Mapping[str, str]] = {"min_characters": "what is left out"}

    def __post_init__(self) -> None:
        check_at_least(1, self, "min_characters")
        for name in ("min_letter_share", "max_repeated_share", "max_list_share"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise UnusableInputError(f"--{name} must be between 0 and 1, not {value}.")
        threshold = self.near_duplicate_threshold
        if threshold is not None and not 0 < threshold <= 1:
            raise UnusableInputError(f"--near_duplicate_threshold must be above 0 and at most 1, not {threshold}.")
        check_at_least(1, self, "min_duplicate_words")

    @property
    def filters_documents(self) -> bool:
        """True if any filter of documents is on."""
        shares = (self.min_letter_share, self.max_repeated_share, self.max_list_share)
        return self.drop_stubs or any(limit is not None for limit in (self.min_characters, *shares))

    @property
    def finds_duplicates(self) -> bool:
        """True if duplicate paragraphs are dropped."""
        return self.drop_duplicates or self.near_duplicate_threshold is not None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractionOptions:
    """Options that decide the text of a document.

    doc_blocks: write WikiExtractor's <doc> blocks, their sentences not split, for MLPerf's clean-up.
    steps_sha256: of the source files of `steps`.
    """

    extractor: Literal["maskmill", "wikiextractor"] | None = option(
        None, help="how wikitext becomes text; null: wikiextractor with mlperf, else maskmill"
    )
    reading: ReadOptions = nested(ReadOptions)
    language: str = option(
        "auto",
        help="whose rules split sentences: a code such as uk, an English name, a folder of Punkt parameters; auto: the "
        "dump's language, or that of the text's words (mlperf, google: english)",
    )
    namespaces: tuple[int, ...] = option((0,), help="numbers of the wiki's namespaces to take")
    keep_redirects: bool = option(False, help="keep redirect pages")
    keep_disambiguation: bool = option(False, help="keep disambiguation pages")
    keep_titles: bool = option(False, help="begin each document with its title as a sentence")
    steps: tuple[str, ...] = option(
        (), help="your own steps between text and sentences, each MODULE:NAME or FILE.py:NAME"
    )
    max_rejected_share: float = option(1.0, help="end the run if more than this share of the pages read is rejected")
    page_seconds: float = option(
        600.0, help="reject a page whose --steps, or the expansion of whose templates, take longer by the wall clock"
    )
    wikitext: WikitextOptions = nested(WikitextOptions)
    quality: QualityOptions = nested(QualityOptions)
    random_seed: int = option(12345, help="seed of the eval set")
    doc_blocks: bool = False
    steps_sha256: str = ""

    GROUPS: ClassVar[Mapping[str, str]] = {
        "extractor": "how wikitext becomes text",
        "language": "which pages are taken, and how their text is split",
        "random_seed": "shards and eval set",
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """Options that decide how documents become shards and the eval set.

    Raises:
      UnusableInputError: a value is out of its range, or both ways of holding documents out are given.
    """

    num_eval_articles: int | None = option(None, help="hold out exactly so many articles (mlperf: 10000 unless given)")
    eval_fraction: float | None = option(
        None,
        help="hold out this share of the articles, the same ones at each rebuild; "
        f"null: {DEFAULT_EVAL_FRACTION} unless num_eval_articles is given",
    )
    shard_size_mb: float | None = option(
        None,
        help=f"text of a shard in MB of 1024*1024 bytes; null: {DEFAULT_SHARD_SIZE_MB:g}, with mlperf 26.92 of raw "
        "input",
    )
    max_documents: int | None = option(None, help="take only the first N documents, for a quick trial")

    GROUPS: ClassVar[Mapping[str, str]] = {"num_eval_articles": "shards and eval set"}

    @property
    def decided(self) -> "SplitOptions":
        """These options with the defaults in place of what was not given."""
        holds_out = self.num_eval_articles is not None or self.eval_fraction is not None
        return dataclasses.replace(
            self,
            eval_fraction=self.eval_fraction if holds_out else DEFAULT_EVAL_FRACTION,
            shard_size_mb=DEFAULT_SHARD_SIZE_MB if self.shard_size_mb is None else self.shard_size_mb,
        )

    @property
    def decided_by_mlperf(self) -> "SplitOptions":
        """These options with the reference's values in place of what was not given."""
        return dataclasses.replace(
            self,
            num_eval_articles=_MLPERF_EVAL_ARTICLES if self.num_eval_articles is None else self.num_eval_articles,
            shard_size_mb=_MLPERF_SHARD_MB if self.shard_size_mb is None else self.shard_size_mb,
        )

    def __post_init__(self) -> None:
        size = self.shard_size_mb
        if size is not None and not _SMALLEST_SHARD_MB <= size < math.inf:
            raise UnusableInputError(f"--shard_size_mb must be positive, a finite number of MB, not {size}.")
        if self.num_eval_articles is not None and self.eval_fraction is not None:
            raise UnusableInputError("--num_eval_articles and --eval_fraction exclude each other; give one of them.")
        check_at_least(0, self, "num_eval_articles")
        if self.eval_fraction is not None and not 0 <= self.eval_fraction < 1:
            raise UnusableInputError(f"--eval_fraction must be at least 0 and below 1, not {self.eval_fraction}.")
        check_at_least(1, self, "max_documents")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A source of documents: one source of a mix, or all inputs of a build without sources.

    name: of a source of a mix, else empty. extraction: what decides its documents. max_documents: how many of them are
    taken at most; None: all. weight: its share of the training text in bytes, in relation to the weights of the other
    sources; None for all of them: each is taken whole. max_epochs: how often its documents may be taken. temperature:
    its share is in relation to its size to this power, too; the same for all sources; None: to its weight alone.
    """

    name: str = ""
    extraction: ExtractionOptions
    max_documents: int | None = None
    weight: float | None = None
    max_epochs: float = 1.0
    temperature: float | None = None
