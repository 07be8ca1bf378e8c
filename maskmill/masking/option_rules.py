"""Rules between masking and objective options: defaults that depend on other options, and conflicts."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions

_SPECIAL_PIECES = 2  # of a sequence: [CLS] and [SEP]
_OBJECTIVE_DEFAULTS = ObjectiveOptions()

# Options that apply to one objective or one unit of masks only: the other option, and the value that it must have.
_ONLY_WITH = {
    "cross_documents": ("objective", "mlm"),
    "full_sentences": ("objective", "mlm"),
    "block_separators": ("objective", "blocks"),
    "block_remainder": ("objective", "blocks"),
    "block_batch": ("objective", "blocks"),
    "strict_labels": ("objective", "nsp"),
    "max_ngram": ("mask_unit", "ngram"),
    "span_probability": ("mask_unit", "span"),
    "max_span": ("mask_unit", "span"),
}


def defaults_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return, by name, the defaults that follow from the values that the user has set."""
    follows: dict[str, Any] = {}
    if values.get("dynamic_masking"):
        follows["dupe_factor"] = 1
    if values.get("objective", "nsp") != "nsp":
        length = values.get("max_seq_length", MaskingOptions.max_seq_length)
        share = values.get("masked_lm_prob", MaskingOptions.masked_lm_prob)
        follows["max_predictions_per_seq"] = max(1, math.ceil(length * share))
    if values.get("objective") == "mlm" and values.get("pack"):
        follows["full_sentences"] = False
    if values.get("objective") in ("mlm", "blocks"):
        follows["short_seq_prob"] = 0.0
    return follows


def conflicts(masking: MaskingOptions, objective: ObjectiveOptions) -> Iterator[str]:
    """Yield a sentence for each conflict between options that are valid by themselves."""
    yield from _conflicts_of_masks(masking, objective)
    yield from _conflicts_of_rows(masking, objective)


def _conflicts_of_masks(masking: MaskingOptions, objective: ObjectiveOptions) -> Iterator[str]:
    for name, (owner, value) in _ONLY_WITH.items():
        if getattr(objective, name) != getattr(_OBJECTIVE_DEFAULTS, name) and getattr(objective, owner) != value:
            yield f"--{name} belongs to --{owner} {value}; leave it out, or give that."
    if masking.do_whole_word_mask and objective.mask_unit not in (None, "whole_word"):
        yield (
            f"--do_whole_word_mask does not go with --mask_unit {objective.mask_unit}: both say what is masked "
            "together; leave one of them out."
        )
    if objective.dynamic_masking and masking.dupe_factor != 1:
        yield (
            f"--dynamic_masking stores no masks, so --dupe_factor {masking.dupe_factor} would store the same sequences "
            f"{masking.dupe_factor} times; leave it out, or store masks."
        )
    room = masking.max_seq_length - _SPECIAL_PIECES
    for name, unit in (("max_span", "span"), ("max_ngram", "ngram")):
        if objective.mask_unit == unit and getattr(objective, name) > room:
            yield (
                f"--{name} {getattr(objective, name)} is longer than a sequence, which has {room} pieces of text at "
                f"--max_seq_length {masking.max_seq_length}; give a smaller one."
            )


def _conflicts_of_rows(masking: MaskingOptions, objective: ObjectiveOptions) -> Iterator[str]:
    if objective.objective in ("mlm", "blocks") and masking.short_seq_prob:
        yield (
            f"--short_seq_prob {masking.short_seq_prob:g} does not go with --objective {objective.objective}, which "
            "fills its sequences; leave it out."
        )
    if objective.pack and objective.bins is not None:
        yield "--pack fills rows, so --bins has no lengths to sort by; leave one of them out."
    if objective.pack and objective.objective == "blocks":
        yield "--pack does not go with --objective blocks, which fills its rows by itself; leave it out."
    if objective.bins is not None and objective.bins > masking.max_seq_length:
        yield (
            f"--bins {objective.bins}: there are only {masking.max_seq_length} lengths up to max_seq_length; give "
            "fewer."
        )
