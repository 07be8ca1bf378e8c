"""A new stage is one class in one file: flags, sections, help, choices and the summary follow from it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_runs.commands import ROOT

# The whole of the stage, and all that is added: the file lies in a folder beside those of pipelines/stages.
STAGE = '''
"""numbers: whole numbers, each in a file of its own."""

import dataclasses

from maskmill.errors import UnusableInputError
from maskmill.options import option
from maskmill.storage import files, manifest
from pipelines.stages.eval_stage import EvalStage
from pipelines.stages.stage import GraphStage


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumbersStage(GraphStage):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Options:
        output: str = option(help="directory of the numbers")
        count: int = option(3, help="how many numbers")

        def __post_init__(self):
            if self.count < 1:
                raise UnusableInputError(f"--count must be 1 or more, not {self.count}.")

    name = "numbers"
    options_class = Options
    after = EvalStage
    is_optional = True
    purpose = "With this section the build counts, too."

    @classmethod
    def check(cls, options, *, is_first):
        cls.check_output(options)
        return cls(options=options)

    def source(self, pipeline):
        import apache_beam as beam

        return pipeline | "Nothing" >> beam.Create([None])

    def expand(self, elements):
        import apache_beam as beam

        counted = elements | "Count" >> beam.FlatMap(lambda _: [*range(self.options.count)])
        written = counted | "Write" >> beam.Map(self.write)
        return written, [written]

    def write(self, number):
        files.write_bytes(files.join(self.output, f"number-{number}"), str(number).encode())
        return number

    def close(self, elements):
        shards = [{"name": f"number-{number}"} for number in sorted(elements)]
        counts = {"numbers": {"sum": sum(elements)}}
        manifest.write_manifest(
            self.output, stage=self.name, parameters=self.parameters, inputs=[], shards=shards, counts=counts
        )

    def progress(self):
        return {"numbers": "numbers"}
'''

PROGRAM = """
import sys
from pipelines import stages
stages.__path__.append(sys.argv[1])
from pipelines.commands import cli
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stages")
    (folder / "numbers_stage.py").write_text(STAGE)
    return folder


def maskmill(stages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process whose folder of stages has one file more."""
    command = [sys.executable, "-c", PROGRAM, str(stages), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_new_stage_has_a_section_a_flag_and_a_place_in_the_help(stages: Path, tmp_path: Path) -> None:
    printed = maskmill(stages, "build", "--print_config").stdout
    assert "# With this section the build counts, too.\n# numbers:\n#   # how many numbers\n#   count: 3\n" in printed
    told = maskmill(stages, "build", "--help").stdout
    assert "numbers:\n  --numbers.count N     how many numbers (default: 3)\n" in told
    assert "--until extract|vocabulary|examples|eval|numbers|train" in told
    config = tmp_path / "build.yaml"
    config.write_text("output: o\nextract:\n  input: i\nexamples:\n  vocab_file: v\nnumbers:\n  count: 0\n")
    refused = maskmill(stages, "build", str(config))
    assert (refused.returncode, refused.stderr) == (
        2,
        f"maskmill build: {config}: numbers: --count must be 1 or more, not 0.\n",
    )


def test_a_new_stage_runs_in_a_build(stages: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("A sentence is here.\nAnother one is there.\n\nA third one.\n\n")
    vocabulary = ROOT / "tests" / "data" / "vocab.txt"
    config = tmp_path / "build.yaml"
    config.write_text(
        f"output: {tmp_path}/out\nreport: 'off'\nextract:\n  from: {tmp_path}/text.txt\nnumbers:\n  count: 2\n"
        f"examples:\n  vocab_file: {vocabulary}\n  dupe_factor: 1\n"
    )
    done = maskmill(stages, "build", str(config), "--numbers.count", "4", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert f"\nnumbers: {tmp_path}/out/numbers\n  numbers  6 sum\n" in done.stdout
    made = json.loads((tmp_path / "out" / "numbers" / "manifest.json").read_text())
    assert made["parameters"] == {"count": 4}
    assert sorted(path.name for path in (tmp_path / "out" / "numbers").glob("number-*")) == [
        f"number-{number}" for number in range(4)
    ]
