"""The options of the objective, and of the rows made for it. The names are the field's; defaults are BERT's."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

from maskmill.arguments import check_fields
from maskmill.errors import UnusableInputError
from maskmill.masking.options import MaskingOptions
from maskmill.options import option

Objective = Literal["nsp", "mlm", "blocks", "sop"]
MaskUnit = Literal["piece", "whole_word", "word", "ngram", "span"]

_SHARES_SUM = 1e-6  # how far from 1 the sum of three shares may be


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObjectiveOptions:
    """The options that, with MaskingOptions, decide the rows of a text.

    Raises:
      UnusableInputError: a value is out of its range.
    """

    objective: Objective = option(
        "nsp",
        help="nsp: BERT's sentence pairs; mlm: RoBERTa's full sentences; blocks: joined documents, cut into blocks; "
        "sop: ALBERT's sentence order",
    )
    cross_documents: bool = option(
        True, help="with mlm: a sequence goes on in the next document, after a [SEP]; false: it ends with its document"
    )
    full_sentences: bool = option(
        True,
        help="with mlm: a sequence ends with a sentence; false (with --pack the default): sequences are filled to the "
        "last piece, and a sentence may go on in the next one",
    )
    block_separators: Literal["none", "sep", "recipe"] = option(
        "none",
        help="with blocks: what stands between documents: none; sep: a [SEP]; recipe: each document with its [CLS] and "
        "[SEP], and blocks cut from that as they come, as Hugging Face's run_mlm.py does",
    )
    block_remainder: Literal["carry", "drop"] = option(
        "carry", help="with blocks: carry what is left of a batch of documents into the next one, or drop it"
    )
    block_batch: int = option(1000, help="with --block_remainder drop: documents of a batch, as in run_mlm.py")
    strict_labels: bool = option(
        False, help="with nsp: a pair is labelled random only if its second part comes from another document"
    )
    mask_unit: MaskUnit | None = option(
        None,
        help="what is masked together: piece; whole_word (google-research); word: one decision a word (TensorFlow "
        "Models); ngram: up to max_ngram words (ALBERT); span (SpanBERT); null: by do_whole_word_mask",
    )
    max_ngram: int = option(3, help="with --mask_unit ngram: most words of an n-gram; lengths are drawn by 1/n")
    span_probability: float = option(
        0.2, help="with --mask_unit span: span lengths in words are drawn from the geometric law with this p"
    )
    max_span: int = option(10, help="with --mask_unit span: most words of a span")
    mask_share: float = option(0.8, help="share of the masked positions that get [MASK]")
    random_share: float = option(0.1, help="share of them that get a random piece")
    keep_share: float = option(0.1, help="share of them that keep their piece")
    dynamic_masking: bool = option(False, help="store no masks: the reader draws them, others in each epoch")
    pack: bool = option(False, help="several sequences in a row, best-fit, with sequence_ids, position_ids, cu_seqlens")
    bins: int | None = option(
        None, help="deal rows to this many files a shard by length, each padded to its own length"
    )

    GROUPS: ClassVar[Mapping[str, str]] = {
        "objective": "what is learnt",
        "mask_unit": "how masks are drawn",
        "pack": "how rows are filled",
    }

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("block_batch", "max_ngram", "max_span"):
            if getattr(self, name) < 1:
                raise UnusableInputError(f"{name} {getattr(self, name)}: this must be 1 or more.")
        if not 0 < self.span_probability < 1:
            raise UnusableInputError(f"span_probability {self.span_probability}: this must be above 0 and below 1.")
        shares = (self.mask_share, self.random_share, self.keep_share)
        if min(shares) < 0 or abs(sum(shares) - 1) > _SHARES_SUM:
            raise UnusableInputError(
                f"mask_share {shares[0]:g}, random_share {shares[1]:g} and keep_share {shares[2]:g}: none may be below "
                "0, and together they must make 1."
            )
        if self.bins is not None and self.bins < 1:
            raise UnusableInputError(f"bins {self.bins}: there must be one or more.")


def decided_mask_unit(masking: MaskingOptions, objective: ObjectiveOptions) -> MaskUnit:
    """Return the unit that is masked together: mask_unit, or if it is None, that of do_whole_word_mask."""
    return objective.mask_unit or ("whole_word" if masking.do_whole_word_mask else "piece")


def asks_for_words(masking: MaskingOptions, objective: ObjectiveOptions) -> bool:
    """Return whether masks depend on where words start."""
    return decided_mask_unit(masking, objective) != "piece"
