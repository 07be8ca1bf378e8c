"""The end of a summary: how much lies on disk, and the command that may follow."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.storage import files, manifest
from pipelines.settings.stage_options import ExamplesOptions, VocabularyStageOptions
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.examples_stage import ExamplesStage
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import MixStage
from pipelines.stages.stage import Build, Stage
from pipelines.stages.train_stage import TrainStage, eval_examples, has_pairs
from pipelines.stages.vocabulary_stage import VocabularyStage
from pipelines.terminal import console
from training.config import from_preset

# The presets of models: those of recipes for examples that have one of their own, the usual one, one for long rows.
_MODELS = {"mlperf": "large", "roberta": "roberta-base", "albert": "albert-base", "modernbert": "modernbert-base"}
_MODEL, _LONG_MODEL = "base", "modernbert-base"
_ANY_MODEL = {"bert_config_file": "CONFIGURATION"}  # where rows are too long for the models of all presets


def report(outputs: Sequence[str], command: str, say: console.Say = console.say) -> None:
    """Say how much lies below the directories of a finished command, and the command that may follow.

    No size is said of directories that are not on this machine, and no command if `command` is empty.
    """
    if all(files.is_local(output) for output in outputs):
        say(f"on disk: {_size_text(sum(map(_bytes_below, outputs)))}")
    if command:
        say(f"next:    {command}")


def of(stages: Mapping[type[Stage[Any]], Any], manifests: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the command that goes on where these stages, given with their options, end; empty if none does.

    manifests: those of the stages that have just run, by directory; others are read.
    """
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
        return _command_line("examples", arguments | ({} if text.compat == "none" else {"compat": text.compat}))
    return _train_with(build, manifests)


def _train_with(build: Build, manifests: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the training of a build's examples; empty if it has none to train with."""

    def examples_in(directory: str, kind: str, name: str) -> int:
        made = manifests.get(directory) or manifest.find_manifest(directory) or {}
        return int(made.get("counts", {}).get(kind, {}).get(name, 0))

    examples, picked = build[ExamplesStage], build.get(EvalStage)
    if not examples_in(examples.output, "train", "examples"):
        return ""
    arguments = {"input_file": examples.output}
    if not has_pairs(examples):
        arguments["next_sentence_prediction"] = "False"
    (eval_file,) = eval_examples(build)
    if eval_file == examples.output or picked is None:
        has_eval = examples_in(examples.output, "eval", "examples") > 0
    else:
        has_eval = examples_in(picked.output, "eval", "picked") > 0
    if has_eval:
        arguments["eval_file"] = eval_file
    name, path = examples.tokenizer
    return _command_line("train", arguments | {name: path} | _model_for(examples) | {"output_dir": "DIRECTORY"})


def _model_for(examples: ExamplesOptions) -> dict[str, str]:
    """Return the model that takes examples: the one of their recipe, or the first that takes rows of their length."""
    length = examples.masking.max_seq_length
    for preset in (_MODELS.get(examples.preset or "", _MODEL), _MODEL, _LONG_MODEL):
        config = from_preset(preset)
        if length <= config.max_position_embeddings and (config.has_segments or not has_pairs(examples)):
            return {"preset": preset}
    return {"preset": _LONG_MODEL} if length <= from_preset(_LONG_MODEL).max_position_embeddings else _ANY_MODEL


def _examples_with(vocabulary: VocabularyStageOptions) -> dict[str, str]:
    """Return the options of examples that take the text and the vocabulary that was made of it."""
    name, path = vocabulary.tokenizer
    arguments = {"input": ",".join(vocabulary.input), "output": "DIRECTORY", name: path}
    if name == "vocab_file" and not vocabulary.vocabulary.decided.do_lower_case:
        arguments["do_lower_case"] = "False"
    return arguments


def _command_line(command: str, arguments: Mapping[str, str]) -> str:
    return shlex.join(["maskmill", command, *(f"--{name}={value}" for name, value in arguments.items())])


def _bytes_below(directory: str) -> int:
    """Return the bytes of all files below a local directory."""
    return sum(
        os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(directory) for name in names
    )


def _size_text(size: int) -> str:
    """Return a number of bytes as `12.3 MB`."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size} bytes"
