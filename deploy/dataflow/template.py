"""The program of the Flex Template: turns the template's parameters into a build and runs it on Dataflow.

    python template.py --output=gs://… --extract_input=gs://… --examples_vocab_file=gs://… --runner=DataflowRunner …
    python template.py --write_metadata=metadata.json

The name of a parameter is the name of a section and that of an option in it: `extract_num_eval_articles` is
`num_eval_articles` in the section `extract` of a build's YAML file. All other flags go to Beam.

With a parameter of the section `release` or `watch` it builds a release, in two launches: a template's launcher only
describes a job and ends before the job does, so the launch after the job's end completes the release. Dataflow takes a
launcher that describes no job for a failed one; where there is nothing to build, the job has one step and no work.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from pipelines.building import build_options, build_report
from pipelines.settings import beam_flags, flags, options
from pipelines.settings.release_options import SETTINGS
from pipelines.stages.registry import TEMPLATE_STAGES
from pipelines.terminal import console

_RELEASE_SECTIONS = {"release", "watch"}
_GS = "^gs://.+"
_PATTERNS = {
    bool: "^([Tt]rue|[Ff]alse)$",
    int: "^-?[0-9]+$",
    float: "^[0-9.eE+-]+$",
}
_WHOLE_NUMBERS = "^-?[0-9]+(,-?[0-9]+)*$"


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of the template: an option of a build's section, or one of the keys beside the sections.

    has_instead: whether the section may hold something else instead of what it requires, as `extract_from`.
    """

    section: str | None
    option: options.Option
    has_instead: bool = False

    @property
    def name(self) -> str:
        """The parameter's name, which begins with the section's."""
        return self.option.name if self.section is None else f"{self.section}_{self.option.name}"

    def metadata(self) -> dict[str, Any]:
        """Return the parameter's entry in the template's metadata."""
        kind = self.option.kind
        pattern = _PATTERNS.get(kind.type)
        if kind.choices:
            words = (*kind.words_of_choices, *(("[Tt]rue", "[Ff]alse") if kind.can_be_off else ()))
            pattern = f"^({'|'.join(words)})$"
        elif kind.is_list and kind.type is int:
            pattern = _WHOLE_NUMBERS
        elif self.option.name in ("output", "input", "from", "vocab_file", "tokenizer_file"):
            pattern = _GS
        text = self.option.help if self.section is None or self.option.is_required else self.option.full_help
        label = f"{self.section or 'build'}: {self.option.name.replace('_', ' ')}"
        entry: dict[str, Any] = {"name": self.name, "label": label, "helpText": text}
        entry |= {"isOptional": not self.option.is_required or self.has_instead, "paramType": "TEXT"}
        return entry | ({"regexes": [pattern]} if pattern else {})


def parameters() -> list[Parameter]:
    """Return every parameter of the template. Training has none, for it does not run on Dataflow, nor has the
    vocabulary.
    """
    keys = [Parameter(None, option) for option in options.options_of(build_options.BuildKeys).values()]
    stages = [
        Parameter(stage.name, option, has_instead=stage.instead is not None)
        for stage in TEMPLATE_STAGES
        for option in build_options.options_of_section(stage).values()
    ]
    settings = [
        Parameter(name, option) for name, section in SETTINGS.items() for option in options.options_of(section).values()
    ]
    return keys + stages + settings


def metadata() -> dict[str, Any]:
    """Return the template's metadata in the form that `gcloud dataflow flex-template build` reads."""
    return {
        "name": "maskmill",
        "description": "A Wikipedia dump, or any text corpus, to masked-language-model pre-training data.",
        "streaming": False,
        "parameters": [p.metadata() for p in parameters()],
    }


def read(argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Read the arguments: the build that the parameters describe, as its YAML file has it, and Beam's flags.

    Raises:
      UnusableInputError: an unknown flag, or a value that a parameter does not take.
    """
    known = {parameter.name: parameter for parameter in parameters()}
    own = {name: dataclasses.replace(parameter.option, name=name) for name, parameter in known.items()}
    line = flags.parse(argv, own, beam_flags.BeamFlags)
    content: dict[str, Any] = {}
    for name, value in line.values.items():
        section = known[name].section
        options_of_section = content if section is None else content.setdefault(section, {})
        options_of_section[known[name].option.name] = list(value) if isinstance(value, tuple) else value
    return content, list(line.beam)


def run(argv: Sequence[str]) -> None:
    """Make the build that the arguments describe and pass it to Beam's runner.

    Raises:
      UnusableInputError, RunFailedError: in the same cases as `maskmill build`.
    """
    content, beam_arguments = read(argv)
    # The workers get the image in which this program runs.
    image = os.environ.get("MASKMILL_IMAGE")
    if image and not any(a.partition("=")[0] == "--sdk_container_image" for a in beam_arguments):
        beam_arguments = [*beam_arguments, f"--sdk_container_image={image}"]
    from pipelines.building import build

    made = build_options.make_build(content, where="parameters")
    if _RELEASE_SECTIONS & set(content):
        _Releasing(options=made, beam_arguments=beam_arguments).run()
    elif build.run(made, beam_arguments):
        build_report.of_build(made.output, made.report, beam_arguments)


@dataclasses.dataclass
class _Releasing:
    """A launch that is about a release.

    Attributes:
      options: of the build.
      beam_arguments: flags for Beam.
      has_job: whether a job was described or run.
    """

    options: build_options.BuildOptions
    beam_arguments: Sequence[str]
    has_job: bool = False

    def run(self) -> None:
        """Describe the job of a release that is not built, or complete one whose job has ended.

        Raises:
          UnusableInputError, RunFailedError: in the same cases as `maskmill watch` and `maskmill build --release`.
        """
        if self.options.watch is None:
            self._build(None)
        else:
            from pipelines.releasing import watch
            from pipelines.settings.command_options import WatchFlags

            watch.watch(
                self.options, WatchFlags(), build_options.BuildChoices(), build=lambda dump: self._build(dump.date)
            )
        if not self.has_job and any(a.partition("=")[0] == "--template_location" for a in self.beam_arguments):
            _describe_nothing(self.beam_arguments)

    def _build(self, date: str | None) -> int:
        """Make the release of a dump, or of the input that is named. Returns the exit code."""
        from pipelines.building import build, stage_states
        from pipelines.releasing import release_plan, releases

        plan = release_plan.make_plan(self.options, date)
        names = plan.options.names
        states = stage_states.states_of(plan.options, names)
        if plan.record is None and any(state.action != "reuse" for state in states):
            self.has_job = True
            # Nobody holds the release's lock while the job runs. The launches share a name of jobs, and Dataflow
            # runs one job of a name at a time.
            if not build.run(plan.options, self.beam_arguments):
                return 0
        choices = build_options.BuildChoices(release=True, dump=date, from_=None if plan.record else names[-1])
        return releases.run(self.options, choices)[0]


def _describe_nothing(beam_arguments: Sequence[str]) -> None:
    import apache_beam as beam

    from pipelines.running import runner

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | "NothingNew" >> beam.Create([None]).with_output_types(None)

    runner.run(build, runner.choose(beam_arguments, pieces=1))


def main(argv: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: 0 done, 1 the run failed, 2 a parameter or the input is unusable."""
    if len(argv) == 1 and argv[0].startswith("--write_metadata="):
        Path(argv[0].partition("=")[2]).write_text(json.dumps(metadata(), indent=2) + "\n")
        return 0
    try:
        with console.showing():
            run(argv)
    except (UnusableInputError, RunFailedError) as error:
        print(f"maskmill template: {error}", file=sys.stderr)
        return 2 if isinstance(error, UnusableInputError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
