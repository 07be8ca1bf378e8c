"""What stands at the end of a summary: how much lies on disk, and the command that may follow."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.storage import files
from pipelines.settings.stage_options import VocabularyStageOptions
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import MixStage
from pipelines.stages.stage import Build, Stage
from pipelines.stages.train_stage import TrainStage, eval_examples, has_pairs
from pipelines.stages.vocabulary_stage import VocabularyStage


def report(outputs: Sequence[str], command: str) -> None:
    """Prints how much lies below the directories of a finished command, and the command that may follow.

    No size is printed of directories that are not on this machine, and no command if `command` is empty.
    """
    if all(files.is_local(output) for output in outputs):
        print(f"on disk: {_size_text(sum(map(_bytes_below, outputs)))}")
    if command:
        print(f"next:    {command}")


def of(stages: Mapping[type[Stage[Any]], Any]) -> str:
    """The command that goes on where these stages, given with their options, end; empty if none does."""
    build = Build(output="", compat="none", stages=stages)
    text = build.get(ExtractStage) or build.get(MixStage)
    vocabulary, examples = build.get(VocabularyStage), build.get(ExamplesStage)
    if TrainStage in build:
        return ""
    if examples is None:
        if vocabulary is not None:
            return _command_line("examples", _examples_with(vocabulary))
        if text is None:
            return ""
        arguments = {"input": text.output, "output": "DIRECTORY", "vocab_file": "VOCABULARY"}
        return _command_line("examples", arguments)
    arguments = {"input_file": examples.output}
    if not has_pairs(examples):
        arguments["next_sentence_prediction"] = "False"
    if EvalStage in build:
        # Without stored masks only the manifest of all examples says how they are drawn.
        (arguments["eval_file"],) = eval_examples(build)
    name, path = examples.tokenizer
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
