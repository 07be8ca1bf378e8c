"""What stands at the end of a summary: how much lies on disk, and the command that may follow."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.storage import files
from pipelines.settings.stage_options import VocabularyStageOptions
from pipelines.stages.registry import EVAL_NAME, why_not_trained


def report(outputs: Sequence[str], command: str) -> None:
    """Prints how much lies below the directories of a finished command, and the command that may follow.

    Args:
      outputs: the directories; of those that are not on this machine no size is printed.
      command: a command line; empty where none follows.
    """
    if all(files.is_local(output) for output in outputs):
        print(f"on disk: {_size_text(sum(map(_bytes_below, outputs)))}")
    if command:
        print(f"next:    {command}")


def of(stages: Mapping[str, Any]) -> str:
    """The command that goes on where these stages, given by name with their options, end; empty where none does."""
    if "train" in stages or not {"extract", "vocabulary", "examples"} & set(stages):
        return ""
    if "vocabulary" in stages and "examples" not in stages:
        return _command_line("examples", _examples_with(stages["vocabulary"]))
    if "examples" not in stages:
        arguments = {"input": stages["extract"].output, "output": "DIRECTORY", "vocab_file": "VOCABULARY"}
        return _command_line("examples", arguments)
    made = stages["examples"]
    if why_not_trained(made):
        return ""
    arguments = {"input_file": made.output}
    if made.objective.objective in ("mlm", "blocks"):
        arguments["next_sentence_prediction"] = "False"
    if "eval" in stages:
        # Without stored masks only the manifest of all examples says how they are drawn.
        picked = files.join(stages["eval"].output, EVAL_NAME)
        arguments["eval_file"] = made.output if made.objective.dynamic_masking else picked
    name, path = made.tokenizer
    return _command_line("train", arguments | {name: path, "preset": "base", "output_dir": "DIRECTORY"})


def _examples_with(vocabulary: VocabularyStageOptions) -> dict[str, str]:
    """The options of examples that take the text and the vocabulary that was made of it."""
    name, path = vocabulary.tokenizer
    arguments = {"input": ",".join(vocabulary.input), "output": "DIRECTORY", name: path}
    if name == "vocab_file" and not vocabulary.vocabulary.decided.do_lower_case:
        arguments["do_lower_case"] = "False"
    return arguments


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
