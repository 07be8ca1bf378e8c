"""Which options of examples do not go together: one sentence for each, before any work."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from maskmill.errors import UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions

if TYPE_CHECKING:
    from pipelines.settings.stage_options import ExamplesOptions

_SPECIAL_PIECES = 2  # of a sequence: [CLS] and [SEP]
_DEFAULTS = ObjectiveOptions()

# The options that belong to one objective or one unit of masks.
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
# What the reference's records do not have, and the value that is theirs.
_NOT_OF_THE_REFERENCE = (
    "strict_labels", "mask_share", "random_share", "keep_share", "dynamic_masking", "pack", "bins",
)  # fmt: skip


def check_together(options: "ExamplesOptions") -> None:
    """Checks options of examples that are right alone.

    Raises:
      UnusableInputError: they do not go together; the message is the first of `_problems`.
    """
    for problem in _problems(options):
        raise UnusableInputError(problem)


def _problems(options: "ExamplesOptions") -> Iterator[str]:
    yield from _problems_of_the_vocabulary(options)
    yield from _problems_of_the_reference(options)
    yield from _problems_of_masks(options)
    yield from _problems_of_rows(options)
    yield from _problems_of_formats(options)


def _problems_of_the_vocabulary(options: "ExamplesOptions") -> Iterator[str]:
    if options.vocab_file is None and options.tokenizer_file is None:
        yield (
            "--vocab_file is missing: name a WordPiece vocabulary, one piece a line; or give --tokenizer_file, the "
            "tokenizer.json of another tokenizer."
        )
    if options.vocab_file is not None and options.tokenizer_file is not None:
        yield "--vocab_file does not go with --tokenizer_file, because text is tokenized by one of them; leave one out."
    if options.tokenizer_file is not None and not options.masking.do_lower_case:
        yield (
            "--do_lower_case belongs to --vocab_file, and a tokenizer.json says itself whether text is lower-cased; "
            "leave it out."
        )


def _problems_of_the_reference(options: "ExamplesOptions") -> Iterator[str]:
    """What --compat mlperf and google do not go with: they reproduce the records of a script."""
    if options.compat == "none":
        return
    why = f"does not go with --compat {options.compat}, which reproduces the reference's records; leave one of them out"
    if options.tokenizer_file is not None:
        yield f"--tokenizer_file {why}."
    if options.objective.objective != "nsp":
        yield f"--objective {options.objective.objective} {why}."
    if options.objective.mask_unit not in (None, "piece", "whole_word"):
        yield f"--mask_unit {options.objective.mask_unit} {why}."
    for name in _NOT_OF_THE_REFERENCE:
        if getattr(options.objective, name) != getattr(_DEFAULTS, name):
            yield f"--{name} {why}."
    if options.format.special_tokens_mask:
        yield f"--special_tokens_mask {why}."


def _problems_of_masks(options: "ExamplesOptions") -> Iterator[str]:
    objective, masking = options.objective, options.masking
    for name, (owner, wanted) in _ONLY_WITH.items():
        if getattr(objective, name) != getattr(_DEFAULTS, name) and getattr(objective, owner) != wanted:
            yield f"--{name} belongs to --{owner} {wanted}; leave it out, or give that."
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


def _problems_of_rows(options: "ExamplesOptions") -> Iterator[str]:
    objective, masking = options.objective, options.masking
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


def _problems_of_formats(options: "ExamplesOptions") -> Iterator[str]:
    if options.packed and options.format.format != "tfrecord":
        yield (
            f"--packed gzips TFRecords, and --format {options.format.format} is compressed or read in place by itself; "
            "leave it out."
        )
