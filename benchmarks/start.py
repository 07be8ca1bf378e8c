"""Measures what commands cost before their work: help, mistakes, and a text of one line.

    python -m benchmarks.start [--rounds 9] [--vocab V] [--scratch DIR]

Prints the CPU seconds of whole processes, with all that they start: the median of the rounds, the least and the most;
then the median of their wall time. What a worker costs is the difference between two rows. The kernels are compiled
before; where every module is compiled to bytecode, too, the first run of each command is like the others. `python -c
pass` is what any program in this environment costs.
"""

import compileall
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import ROOT, Usage, measure, parser_of, print_machine

TEXT = "The quick brown fox jumps over the lazy dog. It barks.\n"
PYTHON = (sys.executable, "-c")
MASKMILL = (sys.executable, "-m", "maskmill")

Row = tuple[str, tuple[str, ...], int]


def rows(vocabulary: str) -> list[Row]:
    """Return what is measured: its label, the command, and the exit code of it; OUT is a folder that is new in each
    run.

    Texts and examples are made by the first row that needs them.
    """
    extract = (*MASKMILL, "extract", "--input=line.txt")
    examples = (*MASKMILL, "examples", "--input=text", f"--vocab_file={vocabulary}")
    return [
        ("python -c pass", (*PYTHON, "pass"), 0),
        ("import maskmill", (*PYTHON, "import maskmill"), 0),
        (
            "maskmill.open, a batch",
            (*PYTHON, "import maskmill; next(iter(maskmill.open('examples', batch_size=4)))"),
            0,
        ),
        ("--help", (*MASKMILL, "--help"), 0),
        ("a mistyped path", (*MASKMILL, "extract", "--input=lime.txt", "--output=OUT"), 2),
        ("extract", (*extract, "--output=OUT"), 0),
        ("extract, 2 workers", (*extract, "--output=OUT", "--workers=2"), 0),
        ("examples", (*examples, "--output=OUT"), 0),
        ("build", (*MASKMILL, "build", "build.yaml", "--output=OUT"), 0),
    ]


def take(command: Sequence[str], exit_code: int, folder: Path) -> Usage:
    """Run a command in a folder; return what it took."""
    with tempfile.TemporaryDirectory(dir=folder) as new:
        usage = measure([part.replace("OUT", f"{new}/out") for part in command], cwd=str(folder))
    if usage.exit_code != exit_code:
        sys.exit(f"{' '.join(command)}: exit code {usage.exit_code}\n{usage.output[-2000:]}")
    return usage


def main() -> None:
    """Print the machine, then a line for each command."""
    arguments = parser_of(__doc__, rounds=9, scratch="what the commands write").parse_args()
    print_machine()
    for package in ("maskmill", "pipelines", "training", "transforms", Path(sys.prefix) / "lib"):
        compileall.compile_dir(ROOT / package, quiet=2)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as name:
        folder = Path(name)
        (folder / "line.txt").write_text(TEXT)
        (folder / "build.yaml").write_text(
            f"output: built\nextract: {{input: line.txt}}\nexamples: {{vocab_file: {arguments.vocab}}}\n"
        )
        for stage in (["extract", "--input=line.txt", "--output=text"],
                      ["examples", "--input=text", "--output=examples", f"--vocab_file={arguments.vocab}"],
                      ["build", "build.yaml"]):  # fmt: skip
            take([*MASKMILL, *stage], 0, folder)
        for label, command, exit_code in rows(arguments.vocab):
            taken = [take(command, exit_code, folder) for _ in range(arguments.rounds)]
            cpu = [usage.cpu for usage in taken]
            wall = statistics.median(usage.wall for usage in taken)
            figures = f"{statistics.median(cpu):6.3f} s CPU   ({min(cpu):.3f} to {max(cpu):.3f}) {wall:6.2f} s wall"
            print(f"{label:<26} {figures}", flush=True)


if __name__ == "__main__":
    main()
