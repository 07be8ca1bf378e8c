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

import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.measure import in_turn, maskmill, parser_of, print_machine, ratio, resolved

FILES = 500  # of the data set whose first batch is measured
GOAL = 5_000_000  # tokens a second and core
MOST_MEMORY = 300_000_000  # bytes

ROWS = ("--objective=mlm", "--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=1")
KINDS: Mapping[str, Sequence[str]] = {
    "static": (),
    "dynamic": ("--dynamic_masking", "--special_tokens_mask"),
    "packed": ("--dynamic_masking", "--nofull_sentences", "--pack"),
}
FORMATS = ("tfrecord", "parquet", "mds")
PEERS_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TOKENIZERS_PARALLELISM": "false",
    # Otherwise transformers and datasets import TensorFlow, too, whose LLVM and that of PyTorch's Triton are at odds.
    "USE_TF": "0",
}
# Under the other Python: ours in a framework, then the frameworks' own; name, loader of peers.py, kind and format.
WITH_FRAMEWORKS = (
    ("maskmill, tfrecord, as PyTorch tensors", "torch", "dynamic", "tfrecord"),
    ("maskmill, tfrecord, as tf.data.Dataset", "tf", "dynamic", "tfrecord"),
    ("tf.data: TFRecordDataset, parse_example, no shuffling", "bare_tf", "static", "tfrecord"),
    ("tf.data: the same with shuffle(16384)", "shuffled_tf", "static", "tfrecord"),
    ("streaming, DataLoader", "streaming", "static", "mds"),
    ("grain, ArrayRecord", "grain", "static", "array_record"),
    ("streaming, DataLoader, HF collator", "streaming_collator", "dynamic", "mds"),
    ("datasets, DataLoader, HF collator", "datasets", "dynamic", "parquet"),
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A loader of peers.py, the Python that it runs under, its data, the tokens of a row, and more flags of it."""

    name: str
    loader: str
    python: str
    data: Path
    tokens: float
    flags: tuple[str, ...] = ()
    kind: str = ""

    def run(self) -> "Figures":
        """Run the loader in a process of its own."""
        found = measure.peer(self.python, self.loader, self.data, *self.flags, **PEERS_ENVIRONMENT)
        return Figures(rate=found["samples"] / found["cpu"], tokens=self.tokens, found=found)

    @property
    def masks(self) -> str:
        """Return the source of the masks: "stored" in the data, or "drawn" by the loader."""
        return "stored" if self.kind == "static" else "drawn"


@dataclasses.dataclass(frozen=True)
class Figures:
    """Return what a run gave: samples for a CPU second, the tokens of one, and what peers.py printed."""

    rate: float
    tokens: float
    found: dict[str, Any]

    @property
    def tokens_a_second(self) -> float:
        return self.rate * self.tokens

    @property
    def megabytes(self) -> float:
        """The most memory of the process."""
        return float(self.found["largest"] / 1e6)


def best_runs(cases: Sequence[Case], rounds: int) -> dict[Case, Figures]:
    """Return the best run of each case, all in turn; prints what was imported."""
    runs = in_turn(rounds, {case: case.run for case in cases})
    best = {case: max(figures, key=lambda one: one.rate) for case, figures in runs.items()}
    versions = {version for figures in best.values() for version in figures.found["versions"]}
    print(f"Versions: {', '.join(sorted(versions))}.\n", flush=True)
    return best


def tokens_of(data: Path) -> float:
    """Return pieces of a row without padding, on average."""
    counts = json.loads((data / "manifest.json").read_text())["counts"]["train"]
    return float(counts["example_tokens"] + counts["special_tokens"]) / float(counts["examples"])


def cut_into_files(text: Path, output: Path, count: int) -> None:
    """Spread the documents of text shards over so many."""
    documents = [part for shard in sorted(text.glob("part-*")) for part in shard.read_bytes().split(b"\n\n")]
    documents = [part.strip(b"\n") for part in documents if part.strip()]
    output.mkdir()
    for number in range(count):
        (output / f"part-{number:05d}-of-{count:05d}").write_bytes(b"\n\n".join(documents[number::count]) + b"\n\n")


def print_first_batch(case: Case, rounds: int) -> None:
    """Print how long the first batch of many files takes, and what a process holds."""
    (runs,) = in_turn(rounds, {case: case.run}).values()
    first, cpu = (min(run.found[name] for run in runs) for name in ("first_batch", "first_batch_cpu"))
    print(
        f"{case.name}, {FILES} files: first batch after {first:.2f} s ({cpu:.2f} s CPU), "
        f"{max(run.megabytes for run in runs):.0f} MB at most (goal: {MOST_MEMORY / 1e6:.0f}), "
        f"{min(run.found['imported'] for run in runs) / 1e6:.0f} MB after imports",
        flush=True,
    )


def print_speeds(best: Mapping[Case, Figures]) -> None:
    """Print a line for each case; then how ours stand to the goal, and to the others that do the same."""
    print("| loader | data | masks | samples/s | tokens/s | µs a sample | MB | first batch, s |")
    print("|---|---|---|---|---|---|---|---|")
    for case, figures in best.items():
        print(
            f"| {case.name} | {case.kind} | {case.masks} | {figures.rate:,.0f} "
            f"| {figures.tokens_a_second / 1e6:.1f} million | {1e6 / figures.rate:.1f} "
            f"| {figures.megabytes:.0f} | {figures.found['first_batch']:.2f} |"
        )
    print()
    for case, figures in best.items():
        if not case.name.startswith("maskmill") or case.kind == "packed":
            continue
        others = [c for c in best if not c.name.startswith("maskmill") and c.masks == case.masks]
        times = [f"{ratio(figures.rate, best[other].rate)} times {other.name}" for other in others]
        times.append(f"{ratio(figures.tokens_a_second, GOAL)} times the goal of {GOAL:,} tokens a second and core")
        print(f"{case.name}, masks {case.masks}: {'; '.join(times)}.")
    print(flush=True)


def main() -> None:
    """Print the machine and the tables."""
    parser = parser_of(__doc__, rounds=3, scratch="the data sets, which take about ten times the size of the text")
    parser.add_argument("text", metavar="TEXT", type=resolved)
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with the other projects")
    parser.add_argument("--seconds", type=float, default=5, help="CPU seconds of a run")
    arguments = parser.parse_args()
    print_machine()
    maskmill("warm-up")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)

        def make(text: Path, kind: str, form: str, name: str = "") -> Path:
            output = scratch / f"{form}-{kind}{name}"
            flags = (f"--vocab_file={arguments.vocab}", f"--format={form}", *ROWS, *KINDS[kind])
            maskmill("examples", f"--input={text}/part-*", f"--output={output}", "--workers=1", "--quiet", *flags)
            return output

        def case(name: str, loader: str, kind: str, form: str, python: str = sys.executable) -> Case:
            tokens = tokens_of(scratch / f"tfrecord-{kind}")
            flags = (f"--seconds={arguments.seconds}", f"--vocab={arguments.vocab}", f"--cache={scratch / 'cache'}")
            return Case(name, loader, python, scratch / f"{form}-{kind}", tokens, flags, kind)

        made = {(kind, form): make(arguments.text, kind, form) for kind in KINDS for form in FORMATS}
        cases = [case(f"maskmill, {form}", "maskmill", kind, form) for form in FORMATS for kind in KINDS]
        if arguments.peers:
            output = f"--output={scratch / 'array_record-static'}"
            measure.peer(arguments.peers, "write_array_records", made["static", "parquet"], output)
            cases += [case(*one, arguments.peers) for one in WITH_FRAMEWORKS]
        print_speeds(best_runs(cases, arguments.rounds))
        cut_into_files(arguments.text, scratch / "text", FILES)
        for form in FORMATS:
            many = make(scratch / "text", "dynamic", form, f"-{FILES}")
            flags = ("--seconds=1",)
            print_first_batch(Case(f"maskmill, {form}", "maskmill", sys.executable, many, 0, flags), arguments.rounds)


if __name__ == "__main__":
    main()
