"""Measures create_pretraining_data.py and maskmill on one text shard and compares their records.

    python -m benchmarks.reference SHARD.txt --reference DIR [--python PYTHON] [--vocab vocab.txt] [--repeats 3]
    python -m benchmarks.reference SHARD.txt

DIR is the folder of create_pretraining_data.py and tokenization.py in a checkout of mlcommons/training
(retired_benchmarks/bert/cleanup_scripts) or of google-research/bert. PYTHON has TensorFlow 1.15 or 2. Both programs run
as whole processes with warm file caches. maskmill runs once before, uncounted, so that its kernels are compiled.

Without --reference, each step of maskmill runs in this process, and its CPU seconds are printed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

from benchmarks.measure import measure, print_machine, ratio
from maskmill.masking.instances import make_instances
from maskmill.masking.options import MaskingOptions
from maskmill.records.drawing import rows_of_instances
from maskmill.records.example_proto import parse_example
from maskmill.records.examples import write_records, writing_of
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tfrecord import read_records
from maskmill.storage import files
from maskmill.tokenization.vocabulary import load_vocabulary
from maskmill.tokenization.wordpiece import Tokenizer

ROOT = Path(__file__).parent.parent
VOCABULARY = ROOT / "tests" / "data" / "vocab.txt"

# The scripts are written for TensorFlow 1. With TensorFlow 2 they get its compatibility module as `tensorflow`.
SHIM = """
import runpy, sys
import tensorflow
if not tensorflow.__version__.startswith("1."):
    import tensorflow.compat.v1 as tensorflow
    sys.modules["tensorflow"] = tensorflow
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def flags(arguments: argparse.Namespace, output: str) -> list[str]:
    """The flags that both programs are called with."""
    return [
        f"--input_file={arguments.shard}",
        f"--output_file={output}",
        f"--vocab_file={arguments.vocab}",
        "--do_lower_case=True",
        f"--max_seq_length={arguments.max_seq_length}",
        f"--max_predictions_per_seq={arguments.max_predictions_per_seq}",
        "--masked_lm_prob=0.15",
        "--random_seed=12345",
        f"--dupe_factor={arguments.dupe_factor}",
    ]


def compare(expected: str, actual: str) -> int:
    """Compares two files record by record and ends the benchmark if two differ. Returns the number of records."""
    count = 0
    for theirs, ours in zip_longest(read_records(expected), read_records(actual)):
        if theirs is None or ours is None or parse_example(theirs) != parse_example(ours):
            sys.exit(f"record {count} differs")
        count += 1
    return count


def against_the_reference(arguments: argparse.Namespace) -> None:
    """Runs both programs, compares what they write, and prints their figures."""
    script = str(Path(arguments.reference).resolve() / "create_pretraining_data.py")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        theirs, ours = f"{scratch}/reference", f"{scratch}/maskmill"
        command = [sys.executable, "-m", "maskmill", "create-pretraining-data", *flags(arguments, ours)]
        runs = [measure(command, cwd=str(ROOT)) for _ in range(1 + arguments.repeats)][1:]
        reference = measure([arguments.python, "-c", SHIM, script, *flags(arguments, theirs)])
        for run in (reference, *runs):
            if run.exit_code:
                sys.exit(run.output[-2000:])
        records = compare(theirs, ours)
        size = files.size(arguments.shard)
        print(f"{size / 1e6:.2f} MB of text, {records:,} records, {files.size(ours) / 1e6:.1f} MB: the same in both")
        print(reference.row("reference"))
        for run in runs:
            print(run.row("maskmill"))
        best = min(runs, key=lambda run: run.cpu)
        print(
            f"reference / maskmill (best of {len(runs)}): {ratio(reference.cpu, best.cpu)} times the CPU time, "
            f"{ratio(reference.wall, best.wall)} times the wall time, "
            f"{ratio(reference.largest, best.largest)} times the memory"
        )


def by_step(arguments: argparse.Namespace) -> None:
    """Prints CPU seconds and throughput of each step, the best of the repeats."""
    options = MaskingOptions(
        max_seq_length=arguments.max_seq_length,
        max_predictions_per_seq=arguments.max_predictions_per_seq,
        dupe_factor=arguments.dupe_factor,
    )
    vocabulary = load_vocabulary(arguments.vocab)
    size = files.size(arguments.shard)

    def timed(step: Callable[[], object]) -> float:
        seconds = []
        for _ in range(1 + arguments.repeats):
            began = time.process_time()
            step()
            seconds.append(time.process_time() - began)
        return min(seconds[1:])  # the first run compiles

    def row(step: str, seconds: float, produced: str) -> None:
        print(f"{step:<22} {seconds:7.3f} s CPU {size / 1e6 / seconds:8.1f} MB of text a second   {produced}")

    seconds = timed(lambda: Tokenizer(vocabulary).tokenize_files([arguments.shard]))
    text = Tokenizer(vocabulary).tokenize_files([arguments.shard])
    row("tokenize", seconds, f"{len(text.ids):,} pieces")
    seconds = timed(lambda: make_instances(text, vocabulary, options))
    instances = make_instances(text, vocabulary, options)
    row("pair and mask", seconds, f"{len(instances):,} examples")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        output, plan = f"{scratch}/examples", ExamplesPlan(masking=options)
        for step, checksum in (("serialise and write", False), ("the same with sha256", True)):

            def write(checksum: bool = checksum) -> None:
                rows = rows_of_instances(text, instances, vocabulary, plan)
                blocks = rows.lay_out(rows.order, options.max_seq_length)
                write_records(output, blocks, writing_of(vocabulary, plan, indexes=True, checksum=checksum))

            seconds = timed(write)
            written = files.size(output) / 1e6 / seconds
            row(step, seconds, f"{written:,.0f} MB/s out, {len(instances) / seconds:,.0f} records/s")


def main() -> None:
    """Prints the machine and the comparison, or the steps where no reference is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--reference", metavar="DIR")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--max_seq_length", type=int, default=512)
    parser.add_argument("--max_predictions_per_seq", type=int, default=76)
    parser.add_argument("--dupe_factor", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", help="folder for the outputs, which take about 40 times the size of the shard")
    arguments = parser.parse_args()
    print_machine()
    if arguments.reference:
        against_the_reference(arguments)
    else:
        by_step(arguments)


if __name__ == "__main__":
    main()
