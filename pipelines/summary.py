"""What a command prints when it is done: what went in, what came out, and what the user should know about it."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.stages import EVAL_NAME
from transforms.storage import files

# The order in which a summary shows the counts of a manifest.
_STEPS = ("templates", "extract", "paragraphs", "clean", "train", "eval")
# The summary shows these counts of shards, in this order; the manifest has more. Of other steps it shows all counts,
# with what went in and what came out first.
_SHOWN = ("shards", "documents", "sentences", "tokens", "examples", "available", "picked", "bytes")


def report(output: str, manifest: Mapping[str, Any]) -> None:
    """Prints the counts of a stage.

    Args:
      output: the stage's directory.
      manifest: the stage's manifest; empty where the job was only described.
    """
    if not manifest:
        print(f"{output}: nothing was run, the job was only described.")
        return
    print(f"{manifest['stage']}: {output}")
    width = max(8, *map(len, manifest["counts"]))
    # A step that is not in the list comes last.
    for step in sorted(manifest["counts"], key=lambda name: _STEPS.index(name) if name in _STEPS else len(_STEPS)):
        counts = manifest["counts"][step]
        names = (
            _SHOWN
            if step in ("train", "eval")
            else sorted(counts, key=lambda name: (name not in ("read", "documents"), name == "documents", name))
        )
        shown = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in names if name in counts)
        print(f"  {step:<{width}} {shown}")
    rejected = sum(counts.get("rejected", 0) for counts in manifest["counts"].values())
    if rejected:
        print(f"  {rejected:,} documents could not be processed; {output}/rejected.jsonl lists each with its reason.")


def report_end(outputs: Sequence[str], next_step: str) -> None:
    """Prints how much lies below the directories of a finished command, and the command that may follow.

    Args:
      outputs: the directories; of those that are not on this machine no size is printed.
      next_step: a command line; empty where none follows.
    """
    if all(files.is_local(output) for output in outputs):
        print(f"on disk: {_size_text(sum(map(_bytes_below, outputs)))}")
    if next_step:
        print(f"next:    {next_step}")


def next_step(stages: Mapping[str, Any]) -> str:
    """The command that goes on where these stages, given by name with their options, end; empty where none does."""
    if "train" in stages or not {"extract", "examples"} & set(stages):
        return ""
    if "examples" not in stages:
        arguments = {"input": stages["extract"].output, "output": "DIRECTORY", "vocab_file": "VOCABULARY"}
        return _command_line("examples", arguments)
    made = stages["examples"]
    arguments = {"input_file": files.join(made.output, "part-*.tfrecord" + (".gz" if made.packed else ""))}
    if "eval" in stages:
        arguments["eval_file"] = files.join(stages["eval"].output, EVAL_NAME)
    return _command_line(
        "train", arguments | {"vocab_file": made.vocab_file, "preset": "base", "output_dir": "DIRECTORY"}
    )


def _command_line(command: str, arguments: Mapping[str, str]) -> str:
    return shlex.join(["maskmill", command, *(f"--{name}={value}" for name, value in arguments.items())])


def _bytes_below(directory: str) -> int:
    """The bytes of all files below a local directory."""
    return sum(
        os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(directory) for name in names
    )


def _size_text(size: int) -> str:
    """A number of bytes as `12.3 MB`."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size} bytes"
