"""Whether the text, the vocabulary, the options and the seed give a shard again: it is made again, and compared."""

import dataclasses
import os
import tempfile

import numpy as np

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.reading.byte_ranges import ByteRanges, LocalRanges
from maskmill.reading.data_set import DataFile
from maskmill.records.examples import ExampleFile, kernels_of, write_example_files
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tokenizing import WORDPIECE_KERNELS, load_tokenization
from maskmill.storage import files
from maskmill.tokenization.tokenized_text import LoadedTokenizer
from maskmill.verification.findings import Checked, Finding
from maskmill.verification.known_rules import KnownPieces, options_from, rules_of_file, rules_of_plan, schema_of
from maskmill.verification.pieces import Piece, Remake
from maskmill.verification.row_checks import hash_rows
from maskmill.verification.row_rules import RowRules

_CHECK = "seed"


@dataclasses.dataclass(frozen=True)
class _Difference:
    """Where a file differs from the one made again: a record of it, from 1, what is so there, and why, as a clause."""

    record: int | None
    expected: str
    found: str
    cause: str = ""


def check_shard(piece: Piece, ranges: ByteRanges) -> Checked:
    """Makes the shard of a piece again, and compares its files with those that are there, by the manifest.

    Files of other bytes with the same rows are the same: another version of zlib packs them otherwise.
    """
    remake = piece.remake
    if remake is None:
        raise ValueError(f"{piece.path}: this piece does not say what its shard is made of")
    if remake.vocabulary is None or remake.seed is None:
        what = "vocabulary" if remake.vocabulary is None else "seed"
        return Checked(skipped={_CHECK: f"{piece.path} cannot be made again: the manifest does not say its {what}"})
    scratch = piece.scratch if piece.scratch is not None and os.path.isdir(piece.scratch) else None
    try:
        with tempfile.TemporaryDirectory(prefix="maskmill-verify-", dir=scratch) as directory:
            plan = _plan(remake)
            loaded = load_tokenization(remake.vocabulary, plan.masking, is_tokenizer=remake.is_tokenizer)
            made = _make(piece, remake, plan, loaded, directory)
            return _compare(piece, remake, made, _rules(plan, loaded, remake), ranges)
    except (UnusableInputError, RunFailedError) as error:
        return Checked(skipped={_CHECK: f"{piece.path} cannot be made again: {str(error).rstrip('.')}"})


def kernels_of_remaking(remake: Remake) -> tuple[str, ...]:
    """Whose kernels `check_shard` runs."""
    return kernels_of(_plan(remake), ("tokenization.kernels",) if remake.is_tokenizer else WORDPIECE_KERNELS)


def _plan(remake: Remake) -> ExamplesPlan:
    options = remake.options
    masking = options_from(MaskingOptions, options)
    return ExamplesPlan(
        masking=dataclasses.replace(masking, random_seed=remake.seed or 0),
        objective=options_from(ObjectiveOptions, options),
        format=options_from(FormatOptions, {**options, "format": remake.format}),
    )


def _make(
    piece: Piece, remake: Remake, plan: ExamplesPlan, loaded: LoadedTokenizer, directory: str
) -> list[ExampleFile]:
    """Writes the files of a shard to a directory, in the order of the manifest."""
    name = files.base_name(piece.path).split(".")[0]
    prefixes = [files.join(directory, f"{number}/{name}") for number in range(len(plan.widths))]
    for prefix in prefixes:
        os.mkdir(os.path.dirname(prefix))
    made, _ = write_example_files(
        remake.inputs, prefixes, loaded, plan, indexes=False, packed=bool(remake.options.get("packed"))
    )
    return made


def _rules(plan: ExamplesPlan, loaded: LoadedTokenizer, remake: Remake) -> RowRules:
    vocabulary = loaded.vocabulary
    known = KnownPieces(
        vocabulary=vocabulary,
        size=vocabulary.size,
        special_ids=vocabulary.special_ids,
        is_tokenizer=remake.is_tokenizer,
    )
    schema = schema_of(plan, vocabulary.size, marks_words=vocabulary.marks_words)
    return rules_of_plan(plan, schema, known, "")


def _compare(piece: Piece, remake: Remake, made: list[ExampleFile], rules: RowRules, ranges: ByteRanges) -> Checked:
    """Compares files made again with those of the manifest, and where these differ in their bytes, their rows."""
    looked_at = {_CHECK: 1}
    if [file.sha256 for file in made] == list(remake.digests):
        return Checked(looked_at=looked_at)
    if len(made) != len(remake.files):
        difference = _Difference(None, f"{len(made):,} files", f"{len(remake.files):,}")
        return Checked(findings=(_finding(piece.path, remake, difference),), looked_at=looked_at)
    for file, path, digest in zip(made, remake.files, remake.digests, strict=True):
        if file.sha256 != digest:
            found = _difference(file, path, rules, ranges)
            if found is not None:
                return Checked(findings=(_finding(path, remake, found),), looked_at=looked_at)
    return Checked(looked_at=looked_at)


def _difference(made: ExampleFile, path: str, rules: RowRules, ranges: ByteRanges) -> _Difference | None:
    """The first row in which a file differs from the one made again; None: it has the same rows."""

    def hashes(name: str, source: ByteRanges) -> tuple["np.typing.NDArray[np.int64]", "np.typing.NDArray[np.uint64]"]:
        file = DataFile(path=name, samples=made.examples, size=None, sha256=None, index=None, width=made.width)
        return hash_rows(rules_of_file(rules, file), name, source)

    _, expected = hashes(made.path, LocalRanges())
    numbers, found = hashes(path, ranges)
    count = min(len(expected), len(found))
    other = np.flatnonzero((expected[:count] != found[:count]).any(axis=1))
    if len(other):
        first = int(other[0])
        is_same_text = expected[first, 0] == found[first, 0]
        kind = "other masks" if is_same_text else "another example"
        return _Difference(int(numbers[first]), "the example made again", kind, _cause(expected, found))
    if len(expected) != len(found):
        more = "the last records are missing" if len(found) < len(expected) else "records were added at its end"
        return _Difference(count + 1, f"{len(expected):,} records", f"{len(found):,}", more)
    return None


def _cause(expected: "np.typing.NDArray[np.uint64]", found: "np.typing.NDArray[np.uint64]") -> str:
    """What happened to a file, as far as the hashes of its rows tell (`hash_rows`): of the text, and of whole rows."""
    here, there = np.sort(found[:, 1]), np.sort(expected[:, 1])
    if np.array_equal(here, there):
        return "the same records stand in another order"
    missing = len(there) - int(np.isin(there, here).sum())
    if np.isin(here, there).all():
        return f"{missing:,} of {len(there):,} records are missing"
    share = float(np.isin(found[:, 0], expected[:, 0]).mean()) if len(found) else 0.0
    if share == 1.0:
        return "the text is the same, and other places of it are masked"
    if not share:
        return "no record has text of this shard: it is of another text or vocabulary, or its ids were changed"
    return f"{share:.1%} of its records have text of this shard"


def _finding(path: str, remake: Remake, difference: _Difference) -> Finding:
    where = path if difference.record is None else f"{path}, record {difference.record:,}"
    return Finding(
        check=_CHECK,
        file=path,
        record=difference.record,
        expected=difference.expected,
        found=difference.found,
        message=f"{where}: made again of {remake.inputs[0]}, with the vocabulary, the options and the seed "
        f"({remake.seed}) of the manifest, this shard is another one ({difference.found} instead of "
        f"{difference.expected}){': ' * bool(difference.cause)}{difference.cause}; make the examples again.",
    )
