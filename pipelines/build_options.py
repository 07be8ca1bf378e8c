"""The YAML file of a build: sections of the stages' options, checked before anything runs."""

import dataclasses
import functools
from typing import Any

import yaml

from pipelines import options as option_tools
from pipelines.options import option
from pipelines.stage_options import Compat, EvalOptions, ExamplesOptions, ExtractOptions
from training.options import TrainOptions
from transforms.errors import UnusableInputError
from transforms.storage import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Top:
    """The keys beside the sections."""

    output: str = option(help="directory of the build: text, examples and eval go below it")
    compat: Compat = option("none", help="whose data to reproduce, text and records")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """A build, whole."""

    output: str
    compat: Compat
    extract: ExtractOptions
    examples: ExamplesOptions
    eval: EvalOptions
    train: TrainOptions | None


# What a build decides itself, by section.
_FIXED: dict[str, tuple[str, ...]] = {
    "extract": ("output", "compat"),
    "examples": ("input", "output", "compat"),
    "eval": (),
    "train": ("output_dir", "input_file", "eval_file", "vocab_file"),
}
_SECTIONS: dict[str, type] = {
    "extract": ExtractOptions,
    "examples": ExamplesOptions,
    "eval": EvalOptions,
    "train": TrainOptions,
}

# The file of the picked eval examples, in the build's folder `eval`.
EVAL_NAME = "eval.tfrecord"


def read_build(path: str) -> BuildOptions:
    """Reads a build's YAML file.

    Raises:
      UnusableInputError: the file is missing or no YAML, a key is unknown, a value has another type.
    """
    try:
        content = yaml.safe_load(files.read_bytes(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise UnusableInputError(f"{path}{place}: this is not YAML ({getattr(error, 'problem', error)}).") from error
    if not isinstance(content, dict):
        raise UnusableInputError(f"{path}: a build is a mapping of sections; see maskmill build --print_config.")
    return make_build(content, where=path)


def make_build(content: dict[str, Any], *, where: str) -> BuildOptions:
    """Makes a build from the mapping that its YAML file holds."""
    known = [*option_tools.field_names(_Top), *_SECTIONS]
    for key in content:
        if key not in known:
            raise UnusableInputError(f"{where}: there is no section {key!r}{option_tools.nearest(str(key), known)}.")
    top = option_tools.from_mapping(_Top, {k: v for k, v in content.items() if k not in _SECTIONS}, where=where)
    make = functools.partial(_section, content, where)
    text, masked = files.join(top.output, "text"), files.join(top.output, "examples")
    examples: ExamplesOptions = make("examples", input=(text,), output=masked, compat=top.compat)
    return BuildOptions(
        output=top.output,
        compat=top.compat,
        extract=make("extract", output=text, compat=top.compat),
        examples=examples,
        eval=make("eval"),
        # Training is for those who have the extra [tensorflow]: it runs only where its section is there.
        train=make(
            "train",
            output_dir=files.join(top.output, "train"),
            input_file=(files.join(masked, "part-*.tfrecord" + (".gz" if examples.packed else "")),),
            eval_file=(files.join(files.join(top.output, "eval"), EVAL_NAME),),
            vocab_file=examples.vocab_file,
        )
        if "train" in content
        else None,
    )


def _section(content: dict[str, Any], where: str, name: str, **fixed: Any) -> Any:
    return option_tools.from_mapping(_SECTIONS[name], content.get(name), where=f"{where}: {name}", **fixed)


def print_config() -> str:
    """A build's YAML file with every default and a comment each."""
    parts = [option_tools.describe(_Top, indent="")]
    for name, section in _SECTIONS.items():
        text = f"{name}:\n" + option_tools.describe(section, skip=_FIXED[name])
        if name == "train":
            text = "# With this section the build ends with a training (extra [tensorflow]).\n" + text
            text = text.split("\n", 1)[0] + "\n# " + text.split("\n", 1)[1].replace("\n", "\n# ")
        parts.append("\n" + text)
    return "\n".join(parts)
