"""estimate: what a build will give and take, told from a small sample of its input, without a pipeline."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.records.examples import kernels_of
from maskmill.records.tokenizing import load_tokenization
from pipelines.building.build_options import BuildOptions
from pipelines.commands.estimated_text import EstimatedText, estimate_text
from pipelines.settings.command_options import EstimateOptions
from pipelines.stages import kernels
from pipelines.stages.examples_stage import ExamplesStage, plan_of
from pipelines.stages.vocabulary_stage import VocabularyStage
from pipelines.terminal.console import bytes_text
from transforms.examples.estimating import SampleExamples, examples_of, format_of, is_told_once

_DUPE_FACTORS = (1, 5, 10, 20)
# Measured on enwik8's text (docs/estimate.md): a local worker, and what it takes for each byte of a shard's text, once
# and for each pass. ARCHITECTURE.md, "Where the time goes": a command takes 0.7 CPU seconds to start, with all workers.
_WORKER_BYTES, _BYTES_A_TEXT_BYTE, _BYTES_A_MASKED_BYTE = 180_000_000, 2.0, 0.13
_START_SECONDS = 0.7


def run(build: BuildOptions, options: EstimateOptions) -> None:
    """Prints what a build will give and take."""
    found = estimate(build, options)
    print(json.dumps(found, indent=2) if options.json else _described(found))


def estimate(build: BuildOptions, options: EstimateOptions) -> dict[str, Any]:
    """What a build will give and take, as `--json` prints it; docs/estimate.md says how it is told.

    Raises:
      UnusableInputError: the inputs or the vocabulary cannot be used.
    """
    if VocabularyStage in build:
        raise UnusableInputError(
            "An estimate takes a vocabulary that exists, and this build makes its own from all of its text; leave out "
            "the section vocabulary, and name one for the text's language in the section examples."
        )
    examples = build[ExamplesStage]
    plan = plan_of(examples)
    name, path = examples.tokenizer
    loaded = load_tokenization(path, plan.masking, is_tokenizer=name == "tokenizer_file")
    of_text = ("characters", "inputs", "sentences", "extraction.kernels.wikitext")
    kernels.prepare((*of_text, *kernels_of(plan, loaded.kernels), "masking.kernels", "records.kernels"))
    text = estimate_text(build, options.sample_share)
    made = [
        _Made(examples=found, scale=group.size / found.text_bytes, documents=group.documents)
        for group in text.groups
        if group.size
        for found in [examples_of(group.sample, loaded, plan, packed=examples.packed)]
    ]
    own = format_of(plan, packed=examples.packed)
    work = _Work(text=text, made=made, format=own, cores=options.cores or len(os.sched_getaffinity(0)))
    dupe_factor = plan.masking.dupe_factor
    factors = {dupe_factor} if plan.objective.dynamic_masking else {*_DUPE_FACTORS, dupe_factor}
    return {
        "input": {
            "files": text.files,
            "bytes": text.input_size,
            "bytes_read": text.bytes_read,
            "share_read": text.bytes_read / text.input_size,
        },
        "standard_error": text.error,
        "standard_error_documents": text.document_error,
        "standard_error_examples": math.hypot(text.error, max(one.examples.error for one in made)),
        "documents": round(text.documents),
        "eval_documents": round(text.eval_documents),
        "shards": text.shards,
        "tokens": round(sum(one.grows("tokens") for one in made)),
        **work.of(dupe_factor),
        "padding_share": _padding_share(made),
        "format": own,
        "bytes": {
            "text": round(text.size),
            **{name: work.size_of(name, dupe_factor) for name in made[0].examples.sizes},
        },
        "dupe_factor": dupe_factor,
        "dupe_factors": {str(factor): work.of(factor) for factor in sorted(factors)},
        "cores": work.cores,
        "worker_bytes": round(
            _WORKER_BYTES + (_BYTES_A_TEXT_BYTE + _BYTES_A_MASKED_BYTE * dupe_factor) * text.largest_shard
        ),
        "notes": list(text.notes),
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Made:
    """The examples of a group's sample, how many times as much text the group has, and how many documents."""

    examples: SampleExamples
    scale: float
    documents: float

    def grows(self, name: str) -> float:
        """A field of the examples that grows with the text, for one pass over all of the group."""
        return float(getattr(self.examples, name) * self.scale)

    @property
    def all_examples(self) -> float:
        """Examples of one pass over all of the group."""
        return self.grows("examples") + self._more_documents * self.examples.of_document[0]

    @property
    def all_pieces(self) -> float:
        """Pieces in them."""
        return self.grows("pieces") + self._more_documents * self.examples.of_document[1]

    def of_examples(self, value: float) -> float:
        """What grows with the examples, for one pass over all of the group, from the sample's."""
        return value * self.all_examples / max(1.0, self.examples.examples)

    @property
    def _more_documents(self) -> float:
        """How many documents the group has more than the sample would have if it had as much text."""
        return self.documents - self.examples.documents * self.scale


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Work:
    """What a build has to do.

    text: its text. made: the examples of the text's groups. format: of the examples. cores: that it runs on.
    """

    text: EstimatedText
    made: Sequence[_Made]
    format: str
    cores: int

    def size_of(self, name: str, dupe_factor: int) -> int:
        """Bytes of all examples in a format."""
        passes = 1 if is_told_once(name) else dupe_factor
        return round(sum(one.of_examples(one.examples.sizes[name]) for one in self.made) * passes)

    def of(self, dupe_factor: int) -> dict[str, Any]:
        """What a dupe factor gives and takes."""
        extract = sum(group.seconds for group in self.text.groups)
        masking = sum(one.grows("seconds") for one in self.made) * dupe_factor
        hours = ((extract + masking) / self.cores + _START_SECONDS) / 3600
        return {
            "examples": round(sum(one.all_examples for one in self.made) * dupe_factor),
            "example_bytes": self.size_of(self.format, dupe_factor),
            "cpu_hours": (extract + masking + _START_SECONDS) / 3600,
            "hours": hours,
        }


def _padding_share(made: Sequence[_Made]) -> float | None:
    """The share of padding in all places of examples; None if they are not padded."""
    places = [one.of_examples(one.examples.places) for one in made if one.examples.places is not None]
    if len(places) < len(made):
        return None
    return 1 - sum(one.all_pieces for one in made) / max(1.0, sum(places))


def _described(found: Mapping[str, Any]) -> str:
    """The estimate as text."""
    read = found["input"]
    margin, of_documents, of_examples = (
        f"± {2 * found[f'standard_error{name}']:.1%}" for name in ("", "_documents", "_examples")
    )
    padding = "no padding" if found["padding_share"] is None else f"{found['padding_share']:.1%} padding"
    lines = [
        f"sample: {bytes_text(read['bytes_read'])} of {bytes_text(read['bytes'])} read, {read['share_read']:.2%}",
        f"  documents   {found['documents']:>14,}  {of_documents}, {found['eval_documents']:,} for the eval set",
        f"  tokens      {found['tokens']:>14,}  {margin}",
        f"  examples    {found['examples']:>14,}  {of_examples}, {padding}",
        f"  text shards {found['shards']:>14,}",
        f"on disk, {of_examples}:",
    ]
    for name, size in found["bytes"].items():
        lines.append(f"  {name:<12}{bytes_text(size):>14}" + ("  *" if name == found["format"] else ""))
    lines.append(f"dupe factor        examples        on disk  on {found['cores']} core{'s'[: found['cores'] - 1]}")
    for factor, cost in found["dupe_factors"].items():
        mark = "*" if factor == str(found["dupe_factor"]) else " "
        time = _duration(cost["hours"])
        lines.append(f"  {factor:>8}{mark}{cost['examples']:>16,}{bytes_text(cost['example_bytes']):>15}  {time}")
    lines.append(f"memory: {bytes_text(found['worker_bytes'])} a worker")
    lines += [f"note: {note}." for note in found["notes"]]
    return "\n".join(lines)


def _duration(hours: float) -> str:
    if hours * 3600 < 90:
        return f"{hours * 3600:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 1.5 else f"{hours:,.1f} h"
