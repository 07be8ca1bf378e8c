"""What the Flex Template's launcher runs: the template's parameters make a build, which goes to Dataflow.

    python template.py --output=gs://… --extract_input=gs://… --examples_vocab_file=gs://… --runner=DataflowRunner …
    python template.py --write_metadata=metadata.json

A parameter is an option of a build's section under the section's name: `extract_num_eval_articles` is
`num_eval_articles` in the section `extract` of a build's YAML file. Flags that are none go to Beam.
"""

import argparse
import dataclasses
import json
import os
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipelines import build_options, options, stage_options
from transforms.errors import RunFailedError, UnusableInputError

# Each section's options, and those that the build decides itself. Training does not run on Dataflow.
SECTIONS: dict[str, tuple[type, tuple[str, ...]]] = {
    "extract": (stage_options.ExtractOptions, ("output", "compat")),
    "examples": (stage_options.ExamplesOptions, ("input", "output", "compat")),
    "eval": (stage_options.EvalOptions, ()),
}

_GS = "^gs://.+"
_KINDS = {
    "text": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "integers": "whole numbers separated by commas",
}
_PATTERNS = {
    "boolean": "^([Tt]rue|[Ff]alse)$",
    "integer": "^-?[0-9]+$",
    "number": "^[0-9.eE+-]+$",
    "integers": "^-?[0-9]+(,-?[0-9]+)*$",
}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of the template: where it goes in a build, and what it may be."""

    name: str
    section: str | None
    key: str
    help: str
    required: bool
    kind: str  # one of _KINDS
    choices: tuple[str, ...] = ()

    def value(self, text: str) -> Any:
        """The value that YAML would have for the key."""
        read: dict[str, Callable[[str], Any]] = {
            "text": str,
            "boolean": options.parse_boolean,
            "integer": int,
            "number": float,
            "integers": lambda listed: [int(part) for part in listed.split(",")],
        }
        try:
            return read[self.kind](text)
        except (ValueError, argparse.ArgumentTypeError):
            raise UnusableInputError(f"--{self.name} takes {_KINDS[self.kind]}, not {text!r}.") from None

    def metadata(self) -> dict[str, Any]:
        """The parameter's entry in the template's metadata."""
        pattern = _PATTERNS.get(self.kind)
        if self.choices:
            pattern = f"^({'|'.join(self.choices)})$"
        elif self.key in ("output", "input", "vocab_file"):
            pattern = _GS
        label = f"{self.section or 'build'}: {self.key.replace('_', ' ')}"
        entry: dict[str, Any] = {"name": self.name, "label": label, "helpText": self.help}
        entry |= {"isOptional": not self.required, "paramType": "TEXT"}
        return entry | ({"regexes": [pattern]} if pattern else {})


def parameters() -> list[Parameter]:
    """Every parameter of the template."""
    compat = tuple(typing.get_args(stage_options.Compat))
    found = [
        Parameter(
            "output", None, "output", "directory of the build: text, examples and eval go below it", True, "text"
        ),
        Parameter("compat", None, "compat", "whose data to reproduce, text and records", False, "text", compat),
    ]
    for section, (options_class, decided) in SECTIONS.items():
        hints = typing.get_type_hints(options_class)
        for field in dataclasses.fields(options_class):
            if field.name in decided:
                continue
            kind, choices = _kind(hints[field.name])
            required = field.default is dataclasses.MISSING
            name = f"{section}_{field.name}"
            found.append(Parameter(name, section, field.name, _help(field), required, kind, choices))
    return found


def _help(field: dataclasses.Field[Any]) -> str:
    text: str = field.metadata["help"]
    if field.default in (dataclasses.MISSING, None, ""):
        return text
    shown = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    return f"{text} (default: {shown})"


def _kind(annotation: Any) -> tuple[str, tuple[str, ...]]:
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return "text", tuple(map(str, arguments))
    if arguments:
        inner = next(a for a in arguments if a is not type(None))
        kind, choices = _kind(inner)
        is_list = typing.get_origin(annotation) is tuple
        return ("integers" if is_list and kind == "integer" else kind), choices
    return {bool: "boolean", int: "integer", float: "number", str: "text"}[annotation], ()


def metadata() -> dict[str, Any]:
    """The template's metadata, as `gcloud dataflow flex-template build` takes it."""
    return {
        "name": "maskmill",
        "description": "A Wikipedia dump, or any text corpus, to masked-language-model pre-training data.",
        "streaming": False,
        "parameters": [p.metadata() for p in parameters()],
    }


def run(argv: Sequence[str]) -> None:
    """Makes the build that the arguments describe, and hands it to Beam's runner.

    Raises:
      UnusableInputError, RunFailedError: as `maskmill build` does.
    """
    parser = argparse.ArgumentParser(prog="template.py", allow_abbrev=False)
    known = parameters()
    for parameter in known:
        parser.add_argument(f"--{parameter.name}", default=argparse.SUPPRESS, help=parameter.help)
    from pipelines import build, runner

    namespace, beam_arguments = options.parse(parser, argv, runner.beam_flags)
    content: dict[str, Any] = {}
    for parameter in known:
        text = getattr(namespace, parameter.name, None)
        if text is not None:
            place = content if parameter.section is None else content.setdefault(parameter.section, {})
            place[parameter.key] = parameter.value(text)
    # The image that this runs in is the workers' image too.
    image = os.environ.get("MASKMILL_IMAGE")
    if image and not any(a.partition("=")[0] == "--sdk_container_image" for a in beam_arguments):
        beam_arguments = [*beam_arguments, f"--sdk_container_image={image}"]
    build.run(build_options.make_build(content, where="parameters"), beam_arguments)


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns its exit code: 0 done, 1 the run failed, 2 a parameter or its input is unusable."""
    if len(argv) == 1 and argv[0].startswith("--write_metadata="):
        Path(argv[0].partition("=")[2]).write_text(json.dumps(metadata(), indent=2) + "\n")
        return 0
    try:
        run(argv)
    except (UnusableInputError, RunFailedError) as error:
        print(f"maskmill template: {error}", file=sys.stderr)
        return 2 if isinstance(error, UnusableInputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
