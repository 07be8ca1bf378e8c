"""estimate: run a build on a sample of its input in a temporary directory, and scale what it gives by bytes."""

import contextlib
import dataclasses
import io
import json
import os
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from pipelines.building import build as building
from pipelines.building.build_options import BuildOptions
from pipelines.commands.estimated_sample import Sample, sample_of
from pipelines.settings.command_options import EstimateOptions
from pipelines.stages import kernels
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.mix_stage import MixStage, extracts_of
from pipelines.stages.vocabulary_stage import VocabularyStage
from pipelines.terminal.console import bytes_text

# Measured on enwik8's text: a local worker, and what it takes for each byte of a shard's text, once and for each pass.
_WORKER_BYTES, _BYTES_A_TEXT_BYTE, _BYTES_A_MASKED_BYTE = 180_000_000, 2.0, 0.13
_START_SECONDS = 0.7  # of CPU, for a command with all its workers
_IN_THIS_PROCESS = ("--direct_num_workers=1",)


def run(build: BuildOptions, options: EstimateOptions) -> None:
    """Print what a build will give and take."""
    found = estimate(build, options)
    print(json.dumps(found, indent=2) if options.json else _described(found))


def estimate(build: BuildOptions, options: EstimateOptions) -> dict[str, Any]:
    """Return what a build will give and take, as `--json` prints it; docs/estimate.md says how close it is.

    Raises:
      UnusableInputError: the inputs or the vocabulary cannot be used.
    """
    if VocabularyStage not in build:
        ExamplesStage.made(build[ExamplesStage])  # before anything is read
    kernels.prepare(["characters", "inputs", *building.expected_kernels(dataclasses.replace(build, report="off"))])
    with tempfile.TemporaryDirectory() as folder:
        sample = sample_of(build, options.sample_share, folder)
        made, seconds = _run(sample)
    cores = options.cores or len(os.sched_getaffinity(0))
    times = 1 / sample.share
    # Of the vocabulary only the counting of words grows with the text, and little.
    cpu = _START_SECONDS + sum(
        spent * (1 if name == VocabularyStage.name else times) for name, spent in seconds.items()
    )
    text = {kind: made.get("extract", {}).get(kind, {}) for kind in ("train", "eval")}
    examples = _sum(made["examples"])
    text_bytes = sample.size if build.texts is not None else _sum(text).get("bytes", 0) * times
    shards = _shards(build, text["train"].get("bytes", 0) * times) if build.texts is None else sample.files
    dupe_factor = build[ExamplesStage].masking.dupe_factor
    shown = examples.get("example_tokens", 0) + examples.get("special_tokens", 0)
    padding = examples.get("padding_tokens")
    return {
        "input": {
            "files": sample.files,
            "bytes": sample.size,
            "bytes_read": sample.taken,
            "share_read": sample.share,
        },
        "documents": round(_sum(text).get("documents", 0) * times) if build.texts is None else None,
        "eval_documents": round(text["eval"].get("documents", 0) * times) if build.texts is None else None,
        "text_bytes": round(text_bytes),
        "shards": shards,
        "tokens": round(examples.get("tokens", 0) * times),
        "examples": round(examples["examples"] * times),
        "example_bytes": round(examples["bytes"] * times),
        "padding_share": None if padding is None else padding / max(1, shown + padding),
        "format": build[ExamplesStage].format.format,
        "dupe_factor": dupe_factor,
        "cores": cores,
        "cpu_hours": cpu / 3600,
        "hours": cpu / cores / 3600,
        "worker_bytes": round(
            _WORKER_BYTES + (_BYTES_A_TEXT_BYTE + _BYTES_A_MASKED_BYTE * dupe_factor) * text_bytes / max(1, shards)
        ),
    }


def _run(sample: Sample) -> tuple[dict[str, Mapping[str, Any]], dict[str, float]]:
    """Run the stages up to the examples on a sample; return the counts of each, and the CPU seconds that it took."""
    made, seconds = {}, {}
    wanted = [name for name in sample.build.names if name in ("extract", VocabularyStage.name, ExamplesStage.name)]
    kernels.load(building.expected_kernels(sample.build))
    for name in wanted:
        started = time.process_time()
        try:
            # What the stages say is of the sample.
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                made[name] = building.run(sample.build, _IN_THIS_PROCESS, [name])[name].made["counts"]
        except (UnusableInputError, RunFailedError) as error:
            sentence = str(error)
            for path, original in sample.names.items():
                sentence = sentence.replace(path, original)
            raise type(error)(sentence) from None
        seconds[name] = time.process_time() - started
    return made, seconds


def _sum(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the counts of both splits together."""
    splits = [counts.get(kind, {}) for kind in ("train", "eval")]
    return {name: sum(split.get(name) or 0 for split in splits) for split in splits for name in split}


def _shards(build: BuildOptions, text_bytes: float) -> int:
    """Return into how many shards so much training text is cut."""
    mix = build.get(MixStage)
    split = next(iter(extracts_of(build).values())).decided.split if mix is None else mix.decided.split
    return max(1, -int(-text_bytes // ((split.shard_size_mb or 1) * (1 << 20))))


def _described(found: Mapping[str, Any]) -> str:
    """Return the estimate as text."""
    read = found["input"]
    padding = "no padding" if found["padding_share"] is None else f"{found['padding_share']:.1%} padding"
    lines = [f"sample: {bytes_text(read['bytes_read'])} of {bytes_text(read['bytes'])} read, {read['share_read']:.2%}"]
    if found["documents"] is not None:
        lines.append(f"  documents   {found['documents']:>14,}  {found['eval_documents']:,} of them for the eval set")
    return "\n".join(
        [
            *lines,
            f"  text        {bytes_text(found['text_bytes']):>14}  in {found['shards']:,} shards",
            f"  tokens      {found['tokens']:>14,}",
            f"  examples    {found['examples']:>14,}  at dupe factor {found['dupe_factor']}, {padding}",
            f"  on disk     {bytes_text(found['example_bytes']):>14}  as {found['format']}",
            f"  time        {_duration(found['hours']):>14}  on {found['cores']} core{'s'[: found['cores'] - 1]}",
            f"  memory      {bytes_text(found['worker_bytes']):>14}  a worker",
        ]
    )


def _duration(hours: float) -> str:
    if hours * 3600 < 90:
        return f"{hours * 3600:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 1.5 else f"{hours:,.1f} h"
