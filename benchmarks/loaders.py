"""Measures how many samples loaders give on one core: maskmill's, and other projects' on the same rows.

    python -m benchmarks.loaders TEXT [--vocab FILE] [--peers PYTHON] [--rounds 3] [--seconds 5] [--scratch DIR]

TEXT is a directory that `maskmill extract` wrote. Its rows (mlm, 512 pieces, 76 masks) are written once in each format;
then each loader reads them in a process of its own that is bound to one core, epoch after epoch, batches of 256. The
cases take turns, and the least CPU time of a case counts; start-up and warming up are not counted. A token is a piece
of a row, padding not counted.

PYTHON is one with tensorflow, torch, datasets, transformers, mosaicml-streaming, grain, array-record and what maskmill
needs; without it, the others are left out. LDDL is left out: it does not install with a current Python. What loaders
give differs: grain gets the bytes of finished arrays, and only some of them draw masks, so ratios are to those that do
the same.

The last figures are the first batch of a data set of 500 files, and the memory of a process.
"""

import argparse
import dataclasses
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import measure, print_machine, ratio
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent

FILES = 500  # of the data set whose first batch is measured
GOAL = 5_000_000  # tokens a second and core, with dynamic masks
MOST_MEMORY = 300_000_000  # bytes

ROWS = ["--objective=mlm", "--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=1"]
KINDS: Mapping[str, Sequence[str]] = {
    "static": [],
    "dynamic": ["--dynamic_masking", "--special_tokens_mask"],
    "packed": ["--dynamic_masking", "--nofull_sentences", "--pack"],
}
FORMATS = ("tfrecord", "parquet", "mds")
OTHERS_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TOKENIZERS_PARALLELISM": "false",
    # Otherwise transformers and datasets import TensorFlow, too, whose LLVM and that of PyTorch's Triton are at odds.
    "USE_TF": "0",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A loader of peer_loaders.py and the kind and format of its data; name: in the table; masks: who draws them."""

    name: str
    loader: str
    kind: str
    format: str
    masks: str

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("maskmill")


OURS = [
    Case(f"maskmill, {file_format}", "maskmill", kind, file_format, "stored" if kind == "static" else "drawn")
    for file_format in FORMATS
    for kind in KINDS
]
# Under the other Python: ours in a framework, then the frameworks' own.
WITH_FRAMEWORKS = [
    Case("maskmill, tfrecord, as PyTorch tensors", "torch", "dynamic", "tfrecord", "drawn"),
    Case("maskmill, tfrecord, as tf.data.Dataset", "tf", "dynamic", "tfrecord", "drawn"),
    Case("tf.data: TFRecordDataset, parse_example, no shuffling", "bare_tf", "static", "tfrecord", "stored"),
    Case("tf.data: the same with shuffle(16384)", "shuffled_tf", "static", "tfrecord", "stored"),
    Case("streaming, DataLoader", "streaming", "static", "mds", "stored"),
    Case("grain, ArrayRecord", "grain", "static", "array_record", "stored"),
    Case("streaming, DataLoader, HF collator", "streaming_collator", "dynamic", "mds", "drawn"),
    Case("datasets, DataLoader, HF collator", "datasets", "dynamic", "parquet", "drawn"),
]


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a run of a case gave; see peer_loaders.py."""

    samples: int
    cpu: float
    first_batch: float
    first_batch_cpu: float
    imported: int
    largest: int
    versions: Sequence[str]

    @property
    def rate(self) -> float:
        """Samples for a CPU second."""
        return self.samples / self.cpu


class Bench:
    """Makes data sets and runs loaders on them."""

    def __init__(self, arguments: argparse.Namespace, scratch: Path) -> None:
        self._arguments, self._scratch = arguments, scratch

    def make(self, kind: str, file_format: str, text: Path, name: str = "") -> None:
        """Writes the rows of a text."""
        command = [sys.executable, "-m", "maskmill", "examples", f"--input={text}/part-*", "--workers=1", "--quiet"]
        command += [f"--output={self.path(kind, file_format, name)}", f"--vocab_file={self._arguments.vocab}"]
        _run([*command, f"--format={file_format}", *ROWS, *KINDS[kind]], {})

    def make_array_records(self) -> None:
        """Writes the rows of Parquet as ArrayRecords."""
        output = self.path("static", "array_record")
        self._peer("write_array_records", [str(self.path("static", "parquet")), f"--output={output}"])

    def path(self, kind: str, file_format: str, name: str = "") -> Path:
        """Where a data set lies."""
        return self._scratch / f"{file_format}-{kind}{name}"

    def tokens(self, kind: str) -> float:
        """Pieces of a row without padding, on average."""
        counts = json.loads((self.path(kind, "tfrecord") / "manifest.json").read_text())["counts"]["train"]
        return float(counts["example_tokens"] + counts["special_tokens"]) / float(counts["examples"])

    def run(self, case: Case, seconds: float, name: str = "") -> Figures:
        """Runs a loader for some CPU seconds."""
        chosen = [str(self.path(case.kind, case.format, name)), f"--seconds={seconds}"]
        chosen += [f"--vocab={self._arguments.vocab}", f"--cache={self._scratch / 'cache'}"]
        found = self._peer(case.loader, chosen)
        return Figures(**{field.name: found[field.name] for field in dataclasses.fields(Figures)})

    def _peer(self, loader: str, arguments: Sequence[str]) -> dict[str, Any]:
        python = sys.executable if loader == "maskmill" else self._arguments.peers
        output = _run([python, "-m", "benchmarks.peer_loaders", loader, *arguments], OTHERS_ENVIRONMENT)
        lines = [line for line in output.splitlines() if line.startswith("{")]
        found: dict[str, Any] = json.loads(lines[-1])
        return found


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The output of a command; ends the benchmark if that fails."""
    usage = measure(command, cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)} | environment)
    if usage.exit_code:
        sys.exit(f"{' '.join(command)} ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    return usage.output


def cut_into_files(text: Path, output: Path, count: int) -> None:
    """Spreads the documents of text shards over so many."""
    shards = sorted(path for path in text.iterdir() if path.name.startswith("part-"))
    documents = [part for shard in shards for part in shard.read_bytes().split(b"\n\n") if part.strip()]
    output.mkdir()
    for number in range(count):
        chosen = b"\n\n".join(part.strip(b"\n") for part in documents[number::count])
        (output / f"part-{number:05d}-of-{count:05d}").write_bytes(chosen + b"\n\n")


def measured(bench: Bench, cases: Sequence[Case], rounds: int, seconds: float) -> dict[Case, Figures]:
    """The best run of each case."""
    best: dict[Case, Figures] = {}
    for _ in range(rounds):
        for case in cases:
            figures = bench.run(case, seconds)
            if case not in best or figures.rate > best[case].rate:
                best[case] = figures
    return best


def print_speeds(bench: Bench, best: Mapping[Case, Figures]) -> None:
    """Prints a line for each case."""
    print("| loader | data | masks | samples/s | tokens/s | µs a sample | MB | first batch, s |")
    print("|---|---|---|---|---|---|---|---|")
    for case, figures in best.items():
        print(
            f"| {case.name} | {case.kind} | {case.masks} | {figures.rate:,.0f} "
            f"| {figures.rate * bench.tokens(case.kind) / 1e6:.1f} million | {1e6 / figures.rate:.1f} "
            f"| {figures.largest / 1e6:.0f} | {figures.first_batch:.2f} |"
        )
    print()
    versions = {version for figures in best.values() for version in figures.versions}
    print(f"Versions: {', '.join(sorted(versions))}.\n", flush=True)


def print_ratios(bench: Bench, best: Mapping[Case, Figures]) -> None:
    """Prints how ours stand to the goal, and to the best of the others that do the same."""
    dynamic = [case for case in best if case.loader == "maskmill" and case.kind == "dynamic"]
    for case in dynamic:
        tokens = best[case].rate * bench.tokens(case.kind)
        print(f"{case.name}, masks drawn: {ratio(tokens, GOAL)} times the goal of {GOAL:,} tokens a second and core.")
    for masks in ("drawn", "stored"):
        others = [case for case in best if not case.is_ours and case.masks == masks]
        for case in (c for c in best if others and c.is_ours and c.masks == masks and c.kind != "packed"):
            times = [f"{ratio(best[case].rate, best[other].rate)} times {other.name}" for other in others]
            print(f"{case.name}, masks {masks}: {'; '.join(times)}.")
    print(flush=True)


def print_first_batches(bench: Bench, text: Path, scratch: Path, rounds: int) -> None:
    """Prints how long the first batch of many files takes, and what a process holds."""
    cut_into_files(text, scratch / "text", FILES)
    for file_format in FORMATS:
        bench.make("dynamic", file_format, scratch / "text", f"-{FILES}")
        case = next(c for c in OURS if c.format == file_format and c.kind == "dynamic")
        runs = [bench.run(case, 1, f"-{FILES}") for _ in range(rounds)]
        print(
            f"{case.name}, {FILES} files: first batch after {min(run.first_batch for run in runs):.2f} s "
            f"({min(run.first_batch_cpu for run in runs):.2f} s CPU), "
            f"{max(run.largest for run in runs) / 1e6:.0f} MB at most (goal: {MOST_MEMORY / 1e6:.0f}), "
            f"{min(run.imported for run in runs) / 1e6:.0f} MB after imports",
            flush=True,
        )


def main() -> None:
    """Prints the machine and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", metavar="TEXT", type=lambda path: Path(path).resolve())
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with the other projects")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="CPU seconds of a run")
    parser.add_argument("--scratch", help="folder for the data sets, which take about ten times the size of the text")
    arguments = parser.parse_args()
    print_machine()
    cases = [*OURS, *(WITH_FRAMEWORKS if arguments.peers else [])]
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        bench = Bench(arguments, scratch)
        _prepare(bench, cases, arguments.text)
        best = measured(bench, cases, arguments.rounds, arguments.seconds)
        print_speeds(bench, best)
        print_ratios(bench, best)
        print_first_batches(bench, arguments.text, scratch, arguments.rounds)


def _prepare(bench: Bench, cases: Iterable[Case], text: Path) -> None:
    """Writes all data sets, and has the kernels compiled."""
    measure([sys.executable, "-m", "maskmill", "warm-up"], cwd=str(ROOT))
    for kind in KINDS:
        for file_format in FORMATS:
            bench.make(kind, file_format, text)
    if any(case.format == "array_record" for case in cases):
        bench.make_array_records()


if __name__ == "__main__":
    main()
