"""The options of the examples of a text, together: of masking, of the objective and of the format."""

import dataclasses
from typing import Any, get_args

from maskmill.masking.objective_options import ObjectiveOptions, asks_for_words
from maskmill.masking.options import MaskingOptions
from maskmill.masking.packing import bin_widths
from maskmill.records.columns import Column, ColumnRules, columns_of, schema
from maskmill.records.options import FormatOptions
from maskmill.records.shard_formats import ShardFormat, format_of
from maskmill.text.shards import ShardKind
from maskmill.tokenization.vocabulary import Vocabulary

_BERT_SHARES = (0.8, 0.1, 0.1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExamplesPlan:
    """The options that, with the vocabulary, decide the examples of a text."""

    masking: MaskingOptions
    objective: ObjectiveOptions = ObjectiveOptions()
    format: FormatOptions = FormatOptions()

    @property
    def shard_format(self) -> ShardFormat:
        """The format that the examples are written in."""
        return format_of(self.format.format)

    @property
    def is_exact(self) -> bool:
        """True if the instances are those of create_pretraining_data.py, draw for draw (masking/instances.py)."""
        objective = self.objective
        return (
            objective.objective == "nsp"
            and objective.mask_unit in (None, "piece", "whole_word")
            and (objective.mask_share, objective.random_share, objective.keep_share) == _BERT_SHARES
            and not (objective.strict_labels or objective.dynamic_masking or objective.pack)
        )

    @property
    def exact_masking(self) -> MaskingOptions:
        """The masking options of the exact path, with do_whole_word_mask by mask_unit unless that is None."""
        if self.objective.mask_unit is None:
            return self.masking
        return dataclasses.replace(self.masking, do_whole_word_mask=self.objective.mask_unit == "whole_word")

    @property
    def is_padded(self) -> bool:
        """True if all rows of a file have the same width: always, unless the reader draws the masks."""
        return self.shard_format.is_padded or not self.objective.dynamic_masking

    def folders_of(self, kind: ShardKind) -> list[str]:
        """Return the folders of a kind's files below the output: one, or one for each bin.

        Formats without folders have none: their files lie in the output itself.
        """
        if not self.shard_format.in_folders:
            return []
        bins = self.objective.bins
        return [kind] if bins is None else [f"{kind}/bin-{number}" for number in range(bins)]

    @property
    def folders(self) -> list[str]:
        """The folders of all kinds."""
        return [folder for kind in get_args(ShardKind) for folder in self.folders_of(kind)]

    @property
    def widths(self) -> list[int]:
        """The most pieces of a row: of each bin, or of all rows."""
        length = self.masking.max_seq_length
        return [length] if self.objective.bins is None else bin_widths(length, self.objective.bins).tolist()

    def columns(self, vocabulary: Vocabulary, width: int) -> tuple[Column, ...]:
        """Return the columns of rows of this width, whose ids are those of `vocabulary`."""
        return self.columns_of(vocabulary.size, width, marks_words=vocabulary.marks_words)

    def columns_of(self, vocabulary_size: int, width: int, *, marks_words: bool) -> tuple[Column, ...]:
        """Return the columns for a vocabulary of this size; marks_words: whether its pieces show where words start."""
        rules = ColumnRules(
            masking=self.masking,
            objective=self.objective,
            vocabulary_size=vocabulary_size,
            names=self.format.feature_names,
            special_tokens_mask=self.format.special_tokens_mask,
            padded=self.is_padded,
            continuation_mask=not marks_words
            and self.objective.dynamic_masking
            and asks_for_words(self.masking, self.objective),
        )
        return columns_of(rules, width)

    def schema(self, vocabulary_size: int, *, marks_words: bool) -> list[dict[str, Any]]:
        """Return the columns of all files, as a manifest lists them; see `columns.schema`.

        If bins differ in width, the shape is [None]; the manifest's files have their widths.
        """
        *others, entries = (
            schema(self.columns_of(vocabulary_size, width, marks_words=marks_words), self.format.format)
            for width in self.widths
        )
        for of_width in others:
            for entry, other in zip(entries, of_width, strict=True):
                if entry["shape"] != other["shape"]:
                    entry["shape"] = [None]
        return entries
