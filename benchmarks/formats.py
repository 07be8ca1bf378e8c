"""Measures the formats of examples: bytes, and the CPU time of `maskmill examples`.

    python -m benchmarks.formats TEXT [--vocab FILE] [--rounds 5]

TEXT is a directory that `maskmill extract` wrote. Each kind of data set is written as each format, one after the other,
in several rounds; the least CPU time of a format counts. Ratios are of whole commands, and of what is left without
their start-up, which is what a text of some lines takes. Sizes are of the train set, without DALI's indexes.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.measure import measure, print_machine, ratio, shorten
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent

FORMATS: Mapping[str, Sequence[str]] = {
    "TFRecord": ["--format=tfrecord"],
    "TFRecord, gzip": ["--format=tfrecord", "--packed"],
    "Parquet": ["--format=parquet"],
    "MDS": ["--format=mds"],
}
SUFFIXES = (".tfrecord", ".tfrecord.gz", ".parquet", ".mds")
LENGTHS = ["--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=1"]
DATA_SETS: Mapping[str, Sequence[str]] = {
    "nsp, static masks": [],
    "mlm, static masks, packed": ["--objective=mlm", "--pack"],
    "mlm, dynamic masks": ["--objective=mlm", "--nocross_documents", "--dynamic_masking"],
    "mlm, dynamic masks, packed": ["--objective=mlm", "--dynamic_masking", "--pack"],
}


def cpu_seconds(text: Path, output: Path, vocab: str, flags: Sequence[str]) -> float:
    """The CPU seconds of writing the examples of `text` anew; ends the benchmark if that fails."""
    command = [sys.executable, "-m", "maskmill", "examples", f"--input={text}/part-*", f"--output={output}"]
    command += [f"--vocab_file={vocab}", "--workers=1", "--quiet", *LENGTHS, *flags]
    usage = measure(command, cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)})
    if usage.exit_code:
        sys.exit(f"{' '.join(command)} ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    return usage.cpu


def bytes_of(output: Path) -> int:
    """The bytes of all examples in a directory."""
    return sum(path.stat().st_size for path in output.rglob("*") if path.name.endswith(SUFFIXES))


def compare(name: str, flags: Sequence[str], text: Path, vocab: str, rounds: int) -> None:
    """Prints a table of the formats of one kind of data set."""
    sizes: dict[str, int] = {}
    whole: dict[str, float] = {}
    start_up: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        shards = sorted(path for path in text.iterdir() if path.name.startswith("part-"))
        shorten(shards, scratch / "short")
        for number in range(rounds):
            for place, (form, chosen) in enumerate(FORMATS.items()):
                for source, least in ((scratch / "short", start_up), (text, whole)):
                    output = scratch / f"{number}-{place}-{source.name}"
                    cpu = cpu_seconds(source, output, vocab, [*flags, *chosen])
                    least[form] = min(cpu, least.get(form, cpu))
                    sizes[form] = bytes_of(output)
    first = next(iter(FORMATS))
    print(f"{name}: {' '.join([*LENGTHS, *flags])}")
    for form in FORMATS:
        left = [whole[f] - start_up[f] for f in (form, first)]
        print(
            f"  {form:<15} {sizes[form]:>13,} bytes {sizes[form] / sizes[first]:5.0%}   {whole[form]:6.2f} s CPU, "
            f"{ratio(whole[form], whole[first], 2)} times TFRecord's ({ratio(*left, 2)} without start-up)",
            flush=True,
        )


def main() -> None:
    """Prints the machine, and a table for each kind of data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", metavar="TEXT", type=lambda path: Path(path).resolve())
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print_machine()
    measure([sys.executable, "-m", "maskmill", "warm-up"], cwd=str(ROOT))
    for name, flags in DATA_SETS.items():
        compare(name, flags, arguments.text, arguments.vocab, arguments.rounds)


if __name__ == "__main__":
    main()
