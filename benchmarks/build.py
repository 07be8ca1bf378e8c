"""Measures the whole chain on a dump, from XML to masked examples: maskmill's stages, and the reference's programs.

    python -m benchmarks.build [DUMP] [--shard_size_mb 4]
    python -m benchmarks.build DUMP --reference DIR --wikiextractor FILE [--python PYTHON] [--nltk_python PYTHON]
        [--rounds 5]

DIR is the folder retired_benchmarks/bert/cleanup_scripts of a checkout of mlcommons/training. FILE is WikiExtractor.py
of attardi/wikiextractor at commit 3162bb6. PYTHON has TensorFlow and is older than 3.11, as WikiExtractor needs.
NLTK_PYTHON has NLTK 3.8.2 or later, which reads the Punkt parameters that maskmill bundles.

Every figure is of a whole command with all processes that it starts. The kernels are compiled before the measurement.
With --rounds the programs run that often, in turn, and the ratios are those of the medians.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from benchmarks import measure
from benchmarks.measure import LENGTHS, ROOT, SAMPLE, Usage, in_turn, parser_of, print_machine, ratio, resolved

PUNKT = ROOT / "maskmill" / "sentences" / "data" / "punkt_tab"
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

Taken = tuple[float, float]  # CPU seconds of all processes, and seconds from start to end


def run(label: str, command: Sequence[object], cwd: Path, **environment: str) -> Usage:
    """Measure a command and print its row."""
    usage = measure.run(command, cwd, **environment)
    print(usage.row(label), flush=True)
    return usage


def write_config(folder: Path, *, vocab_file: Path, **extract: object) -> Path:
    """Write the YAML of a build of 512/76 into a folder, in whose `build` its output goes; `extract`: its options."""
    config = folder / "build.yaml"
    sections = {
        "output": str(folder / "build"),
        "report": "off",  # the reference makes none
        "extract": extract,
        "examples": {"vocab_file": str(vocab_file), "max_seq_length": 512, "max_predictions_per_seq": 76},
        "eval": {"num_examples_to_pick": 100},
    }
    config.write_text(yaml.safe_dump(sections))
    return config


def maskmill(arguments: argparse.Namespace, workers: int) -> Taken:
    """Run each stage, then the whole build; return what the build took."""
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        return stages_and_build(arguments, Path(folder), workers)


def stages_and_build(arguments: argparse.Namespace, scratch: Path, workers: int) -> Taken:
    """Do so in a new folder."""
    local = f"--workers={workers}"
    command = [sys.executable, "-m", "maskmill"]
    text = scratch / f"text-{workers}"
    extract = {"shard_size_mb": arguments.shard_size_mb, "num_eval_articles": arguments.num_eval_articles}
    print(f"maskmill, {workers} worker{'s' if workers > 1 else ''}")
    flags = [f"--input={arguments.dump}", f"--output={text}", *(f"--{k}={v}" for k, v in extract.items())]
    run("  extract", [*command, "extract", *flags, local], ROOT)
    masking = [f"--input={text}", f"--output={scratch / 'examples'}", f"--vocab_file={arguments.vocab}", *LENGTHS]
    run("  examples", [*command, "examples", *masking, local], ROOT)
    config = write_config(scratch, vocab_file=arguments.vocab, input=str(arguments.dump), **extract)
    usage = run("  build, all stages as one graph", [*command, "build", config, local], ROOT)
    shards = len(list((scratch / "build" / "text").glob("part-*")))
    written = sum(f.stat().st_size for f in (scratch / "build").rglob("*.tfrecord"))
    print(f"  {shards} shards, {written:,} bytes of records")
    return usage.cpu, usage.wall


def reference(arguments: argparse.Namespace) -> Taken:
    """Run the programs of the reference one after another; return what they take together."""
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        usages = list(chain_of_programs(arguments, Path(folder)))
    return sum(usage.cpu for usage in usages), sum(usage.wall for usage in usages)


def chain_of_programs(arguments: argparse.Namespace, scratch: Path) -> Iterator[Usage]:
    """Run them in a new folder."""
    scripts, python = Path(arguments.reference).resolve(), arguments.python
    shutil.copytree(PUNKT, scratch / "nltk_data" / "tokenizers" / "punkt_tab")
    text, results = scratch / "reference-text", scratch / "results"
    results.mkdir()
    data = (f"--data={text}/*/wiki_??", "--nworker=1")
    clean = f'for f in {text}/*/wiki_??; do bash "{scripts}/clean.sh" "$f.1" "$f.2"; done'
    separate = ("--num_test_articles", arguments.num_eval_articles, "--test_output", results / "eval")
    extractor = Path(arguments.wikiextractor).resolve()
    programs: dict[str, Sequence[object]] = {
        "WikiExtractor": (python, extractor, arguments.dump, "--output", text, "--processes", 1, "--quiet"),
        "cleanup_file": (python, scripts / "cleanup_file.py", *data),
        "clean.sh": ("bash", "-c", clean),
        "do_sentence_segmentation": (arguments.nltk_python, scripts / "do_sentence_segmentation.py", *data),
        "seperate_test_set": (python, scripts / "seperate_test_set.py", *data, *separate),
        "do_gather": (
            python, scripts / "do_gather.py", *data, "--input_suffix=.4", "--block_size=26.92", f"--out_dir={results}"
        ),
    }  # fmt: skip
    print("the reference's chain")
    nltk_data = str(scratch / "nltk_data")
    for name, line in programs.items():
        yield run(f"  {name}", line, scratch, NLTK_DATA=nltk_data)
    create = (python, "-c", SHIM, scripts / "create_pretraining_data.py", f"--vocab_file={arguments.vocab}", *LENGTHS)
    for shard in sorted(results.glob("part-*")):
        masking = (f"--input_file={shard}", f"--output_file={scratch / 'one.tfrecord'}")
        yield run(f"  create_pretraining_data {shard.name[:10]}", (*create, *masking), scratch)


def main() -> None:
    """Print the machine, a row for each command, and the ratio of the reference to maskmill."""
    parser = parser_of(__doc__, rounds=1, scratch="the outputs, which take about 50 times the size of the packed dump")
    parser.add_argument("dump", nargs="?", default=SAMPLE, type=resolved)
    parser.add_argument("--reference", metavar="DIR")
    parser.add_argument("--wikiextractor", metavar="FILE")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--nltk_python", default=sys.executable)
    parser.add_argument("--shard_size_mb", type=float, default=4.0)
    parser.add_argument("--num_eval_articles", type=int, default=100)
    arguments = parser.parse_args()
    if bool(arguments.reference) != bool(arguments.wikiextractor):
        parser.error("--reference and --wikiextractor go together")
    if arguments.dump == SAMPLE:
        arguments.shard_size_mb, arguments.num_eval_articles = min(arguments.shard_size_mb, 0.2), 20
    print_machine()
    measure.maskmill("warm-up")

    programs = {"1 worker": lambda: maskmill(arguments, 1), "2 workers": lambda: maskmill(arguments, 2)}
    if arguments.reference:
        programs["reference"] = lambda: reference(arguments)
    runs = in_turn(arguments.rounds, programs)
    medians = {
        name: [statistics.median(seconds) for seconds in zip(*taken, strict=True)] for name, taken in runs.items()
    }
    for name, (cpu, wall) in medians.items():
        print(f"medians of {arguments.rounds}: whole chain, {name}: {cpu:.1f} s CPU, {wall:.1f} s")
        if "reference" in medians:
            print(f"  CPU seconds, reference / this: {ratio(medians['reference'][0], cpu)}")


if __name__ == "__main__":
    main()
