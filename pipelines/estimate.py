"""estimate: what a build will give and take, told from a small sample of its input, without Beam."""

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from pipelines.build_options import BuildOptions
from pipelines.estimate_options import EstimateOptions
from pipelines.stage_options import ExamplesOptions, ExtractOptions, decided_masking
from transforms.errors import UnusableInputError
from transforms.inputs import multistream
from transforms.inputs.finding import find_inputs
from transforms.inputs.sampling import CountedReader, InputKind, Sample, inputs_by_kind, sample_kind
from transforms.kernels import compiler
from transforms.records.estimating import SampleExamples, examples_of
from transforms.records.examples import KERNELS
from transforms.shards.options import SplitOptions
from transforms.shards.sample_text import SampleText, extract_sample
from transforms.tokenization.vocabulary import load_vocabulary

# What is read unless the user names a share: of a large input 2 %, of a small one as much as makes a good sample.
_SHARE = 0.02
_LEAST_READ, _MOST_READ = 4 << 20, 32 << 20
_MEGABYTE = 1 << 20
_DUPE_FACTORS = (1, 5, 10, 20)
# ARCHITECTURE.md, "Where the time goes": a worker of Beam's with a 27 MB shard takes 370 MB, about 3 bytes of it for
# each byte of text; a process takes 2.5 CPU seconds to start; sha256 reads 1.1 GB a second.
_WORKER_BYTES, _BYTES_A_TEXT_BYTE = 290_000_000, 3.0
_START_SECONDS = 2.5
_CHECKSUM_SECONDS = 1e-9


def run(build: BuildOptions, options: EstimateOptions) -> None:
    """Prints what a build will give and take."""
    found = estimate(build, options)
    print(json.dumps(found, indent=2) if options.json else summary_of(found))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Extracted:
    """The text of all kinds of inputs, as far as their samples tell.

    documents, text_bytes: of all inputs. error: the standard error of text_bytes, as a share of it. texts: the samples'
    documents, those of each kind with how many times as much text its inputs have. seconds: of CPU.
    """

    documents: float
    text_bytes: float
    error: float
    texts: tuple[tuple[tuple[bytes, ...], float], ...]
    seconds: float


def estimate(build: BuildOptions, options: EstimateOptions) -> dict[str, Any]:
    """What a build will give and take, as `--json` prints it.

    Raises:
      UnusableInputError: the inputs or the vocabulary cannot be used.
    """
    extract: ExtractOptions = build.stages["extract"]
    examples: ExamplesOptions = build.stages["examples"]
    masking = decided_masking(examples.masking, examples.compat)
    vocabulary = load_vocabulary(examples.vocab_file, masking.duplicate_pieces)
    inputs = find_inputs(extract.input, extract.input_format).files
    compiler.prepare(("inputs", "sentences", "extraction.kernels.wikitext", *KERNELS))
    reader = CountedReader()
    size = sum(file.size for file in inputs)
    wanted = _wanted(size, options)
    notes: list[str] = []
    extracted = _extract(_samples(inputs, extract, wanted, reader, notes), extract, notes)
    split = _split(extracted, extract.decided.split)
    made = _examples(extracted, vocabulary, masking)
    scale = split["text_bytes"] / made.text_bytes
    found = _totals(made, scale, masking.max_seq_length, masking.dupe_factor)
    cores = options.cores or len(os.sched_getaffinity(0))
    return {
        "inputs": {"files": len(inputs), "bytes": size, "bytes_read": reader.bytes, "share_read": reader.bytes / size},
        "standard_error": extracted.error,
        "documents": split["documents"],
        "eval_documents": split["eval_documents"],
        "tokens": round(made.counts.tokens * scale),
        "examples": found["examples"],
        "padding_share": found["padding_share"],
        "bytes": {"text": round(split["text_bytes"]), **found["bytes"]},
        "shards": split["shards"],
        "dupe_factor": masking.dupe_factor,
        "dupe_factors": {
            factor: _cost(made, scale, factor, extracted.seconds, size, cores)
            for factor in sorted({*_DUPE_FACTORS, masking.dupe_factor})
        },
        "cores": cores,
        **_cost(made, scale, masking.dupe_factor, extracted.seconds, size, cores),
        "worker_bytes": round(_WORKER_BYTES + _BYTES_A_TEXT_BYTE * split["text_bytes"] / max(1, split["shards"])),
        "notes": notes,
    }


def _wanted(size: int, options: EstimateOptions) -> int:
    if options.sample_share is not None:
        return max(1, int(options.sample_share * size))
    return min(size, max(_LEAST_READ, min(int(_SHARE * size), _MOST_READ)))


def _samples(
    inputs: Sequence[Any], extract: ExtractOptions, wanted: int, reader: CountedReader, notes: list[str]
) -> list[tuple[Sample, float]]:
    """A sample of each kind of inputs, and the seconds of CPU that it takes to read and unpack it."""
    size = sum(file.size for file in inputs)
    reading = extract.extraction.reading
    samples = []
    kinds = inputs_by_kind(inputs, extract.input_format, reader)
    heads = reader.bytes
    for kind in kinds:
        started = time.process_time()
        of_kind = kind.size if wanted >= size else max(1, (wanted - heads) * kind.size // size)
        sample = _sample(kind, of_kind, extract, reader) or sample_kind(kind, of_kind, reading, reader)
        if sample.beginning_only:
            notes.append(
                f"{sample.paths[0]}: {sample.container} can only be read from its beginning, so the sample is not from "
                "all over it and the error may be larger than it says."
            )
        if not sample.parts:
            raise UnusableInputError(
                f"{kind.files[0].path}: there is no whole record in the sample; give a larger --sample_share."
            )
        samples.append((sample, time.process_time() - started))
    return samples


def _sample(kind: InputKind, wanted: int, extract: ExtractOptions, reader: CountedReader) -> Sample | None:
    """A sample by the index of a multistream dump, where there is one."""
    if kind.format != "mediawiki" or kind.container != "bz2" or len(kind.files) > 1 or wanted >= kind.size:
        return None
    taken = extract.extraction.namespaces
    before = reader.bytes
    streams = multistream.read_streams(kind.files[0], wanted, kind.header, taken, reader)
    if streams is None:
        return None
    left = wanted - (reader.bytes - before)
    return multistream.sample_streams(kind, streams, left, taken, extract.extraction.reading, reader)


def _extract(samples: Sequence[tuple[Sample, float]], extract: ExtractOptions, notes: list[str]) -> _Extracted:
    texts: list[SampleText] = []
    seconds = 0.0
    for sample, unpacking in samples:
        text = extract_sample(sample, extract.decided_extraction, extract.dump_date)
        texts.append(text)
        seconds += (unpacking + text.seconds) * text.scale + sample.size * _CHECKSUM_SECONDS
    sizes = [text.scale * sum(map(len, text.documents)) for text in texts]
    total = sum(sizes)
    if not total:
        raise UnusableInputError("There is no text in the sample; check the input, or give a larger --sample_share.")
    if any(text.is_untrained for text in texts):
        notes.append("A build trains Punkt on the input; the sample's sentences are split without it.")
    if extract.extraction.wikitext.expand_templates:
        notes.append("The sample's templates are not expanded; with --expand_templates there is a little more text.")
    if extract.extraction.quality.finds_duplicates:
        notes.append("Duplicates cannot be told from a sample; a build drops them, so it has a little less text.")
    if extract.compat == "mlperf":
        notes.append("MLPerf's clean-up of the text is left out of the sample.")
    return _Extracted(
        documents=sum(text.document_scale * len(text.documents) for text in texts),
        text_bytes=total,
        error=sum((size * text.error) ** 2 for size, text in zip(sizes, texts, strict=True)) ** 0.5 / total,
        texts=tuple((text.documents, text.scale) for text in texts),
        seconds=seconds,
    )


def _split(extracted: _Extracted, split: SplitOptions) -> dict[str, Any]:
    """Documents, bytes and shards of the text after `max_documents`, and what is held out."""
    documents, text = extracted.documents, extracted.text_bytes
    if split.max_documents is not None and split.max_documents < documents:
        text *= split.max_documents / documents
        documents = split.max_documents
    held_out = split.num_eval_articles if split.eval_fraction is None else split.eval_fraction * documents
    train = text * max(0.0, 1 - (held_out or 0) / max(1.0, documents))
    shard_bytes = (split.shard_size_mb or 1) * _MEGABYTE
    return {
        "documents": round(documents),
        "eval_documents": round(held_out or 0),
        "text_bytes": text,
        "shards": max(1, -int(-train // shard_bytes)),
    }


def _examples(extracted: _Extracted, vocabulary: Any, masking: Any) -> SampleExamples:
    """The examples of the samples' text; of several kinds the largest one's text stands for all."""
    documents, _ = max(extracted.texts, key=lambda text: text[1] * sum(map(len, text[0])))
    return examples_of(documents, vocabulary, masking)


def _totals(made: SampleExamples, scale: float, max_seq_length: int, dupe_factor: int) -> dict[str, Any]:
    counts = made.counts
    specials = 3 * counts.examples
    return {
        "examples": round(counts.examples / made.passes * scale * dupe_factor),
        "padding_share": 1 - (counts.example_tokens + specials) / max(1, max_seq_length * counts.examples),
        "bytes": {name: round(size * scale * dupe_factor) for name, size in made.sizes.items()},
    }


def _cost(
    made: SampleExamples, scale: float, dupe_factor: int, extract_seconds: float, input_bytes: int, cores: int
) -> dict[str, Any]:
    """What a dupe factor gives and takes."""
    seconds = extract_seconds + made.seconds * scale * dupe_factor
    return {
        "examples": round(made.counts.examples / made.passes * scale * dupe_factor),
        "tfrecord_bytes": round(made.sizes["tfrecord"] * scale * dupe_factor),
        "cpu_hours": (seconds + _START_SECONDS * cores) / 3600,
        "hours": (seconds / cores + 2 * _START_SECONDS) / 3600,
    }


def summary_of(found: dict[str, Any]) -> str:
    """The estimate as text."""
    read, error = found["inputs"], 2 * found["standard_error"]
    margin = f"± {error:.0%}" if error >= 0.005 else "exact" if not error else f"± {error:.1%}"
    lines = [
        f"sample: {_size(read['bytes_read'])} of {_size(read['bytes'])} read ({read['share_read']:.2%})",
        f"  documents  {found['documents']:>15,}  {margin}, {found['eval_documents']:,} of them for the eval set",
        f"  tokens     {found['tokens']:>15,}  {margin}",
        f"  examples   {found['examples']:>15,}  {margin}, {found['padding_share']:.1%} padding",
        f"  shards     {found['shards']:>15,}",
        "on disk",
        *(f"  {name:<11}{_size(size):>15}  {margin}" for name, size in found["bytes"].items()),
        f"dupe factor       examples       tfrecord     hours on {found['cores']} cores",
    ]
    for factor, cost in found["dupe_factors"].items():
        mark = "*" if factor == found["dupe_factor"] else " "
        lines.append(
            f"  {factor:>8}{mark} {cost['examples']:>14,} {_size(cost['tfrecord_bytes']):>14} {cost['hours']:>12.3g}"
        )
    lines.append(f"memory: {_size(found['worker_bytes'])} a worker")
    lines += [f"note: {note}" for note in found["notes"]]
    return "\n".join(lines)


def _size(amount: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:,.3g} TB"
