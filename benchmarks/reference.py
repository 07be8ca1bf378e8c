"""create_pretraining_data.py against maskmill on one text shard: CPU, wall time, memory, and the same records.

    python -m benchmarks.reference SHARD.txt --reference DIR [--python PYTHON] [--vocab vocab.txt] [--repeats 3]
    python -m benchmarks.reference SHARD.txt

DIR is the folder of create_pretraining_data.py and tokenization.py in a checkout of mlcommons/training
(retired_benchmarks/bert/cleanup_scripts) or of google-research/bert; PYTHON one with TensorFlow, 1.15 or 2. Both
programs run as whole processes with warm file caches, maskmill once more before that to have its kernels compiled.

Without --reference: what each stage takes in a process of its own that is already running, in CPU seconds.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

from benchmarks.measure import measure
from transforms.masking.instances import make_instances
from transforms.masking.options import MaskingOptions
from transforms.records.example_proto import parse_example
from transforms.records.examples import write_instances
from transforms.records.tfrecord import read_records
from transforms.storage import files
from transforms.tokenization.vocabulary import load_vocabulary
from transforms.tokenization.wordpiece import Tokenizer

ROOT = Path(__file__).parent.parent
VOCABULARY = ROOT / "tests" / "data" / "vocab.txt"

# The scripts are of TensorFlow 1; under 2, its compatibility module stands in for the whole.
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
    """What both programs are called with."""
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
    """The number of records, all with the same features in the same order; exits where two differ."""
    count = 0
    for one, other in zip_longest(read_records(expected), read_records(actual)):
        if one is None or other is None or parse_example(one) != parse_example(other):
            sys.exit(f"record {count} differs")
        count += 1
    return count


def against_the_reference(arguments: argparse.Namespace) -> None:
    """Runs both programs, compares what they write, and prints their figures."""
    script = str(Path(arguments.reference).resolve() / "create_pretraining_data.py")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        theirs, ours = f"{scratch}/reference", f"{scratch}/maskmill"
        command = [sys.executable, "-m", "pipelines.cli", "create-pretraining-data", *flags(arguments, ours)]
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
            f"reference / maskmill (best of {len(runs)}): {reference.cpu / best.cpu:.1f} times the CPU time, "
            f"{reference.wall / best.wall:.1f} times the wall time, "
            f"{reference.largest / best.largest:.1f} times the memory"
        )


def by_stage(arguments: argparse.Namespace) -> None:
    """Prints the throughput of each stage, the best of the repeats."""
    options = MaskingOptions(
        max_seq_length=arguments.max_seq_length,
        max_predictions_per_seq=arguments.max_predictions_per_seq,
        dupe_factor=arguments.dupe_factor,
    )
    vocabulary = load_vocabulary(arguments.vocab)
    size = files.size(arguments.shard)

    def timed(stage: Callable[[], object]) -> float:
        seconds = []
        for _ in range(1 + arguments.repeats):
            began = time.process_time()
            stage()
            seconds.append(time.process_time() - began)
        return min(seconds[1:])

    def row(stage: str, seconds: float, produced: str) -> None:
        print(f"{stage:<22} {seconds:7.3f} s CPU {size / 1e6 / seconds:8.1f} MB of text a second   {produced}")

    seconds = timed(lambda: Tokenizer(vocabulary).tokenize_file(arguments.shard))
    text = Tokenizer(vocabulary).tokenize_file(arguments.shard)
    row("tokenize", seconds, f"{len(text.ids):,} pieces")
    seconds = timed(lambda: make_instances(text, vocabulary, options))
    instances = make_instances(text, vocabulary, options)
    row("pair and mask", seconds, f"{len(instances):,} examples")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        output = f"{scratch}/examples"
        for what, checksum in (("serialise and write", False), ("the same with sha256", True)):

            def write(checksum: bool = checksum) -> None:
                write_instances([output], text, instances, vocabulary, options, checksum=checksum)

            seconds = timed(write)
            written = files.size(output) / 1e6 / seconds
            row(what, seconds, f"{written:,.0f} MB/s out, {len(instances) / seconds:,.0f} records/s")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shard", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--reference", metavar="DIR")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--max_seq_length", type=int, default=512)
    parser.add_argument("--max_predictions_per_seq", type=int, default=76)
    parser.add_argument("--dupe_factor", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scratch", help="folder for the outputs, about 40 times the shard")
    arguments = parser.parse_args()
    if arguments.reference:
        against_the_reference(arguments)
    else:
        by_stage(arguments)


if __name__ == "__main__":
    main()
