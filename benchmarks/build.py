"""Measures the whole chain on a dump, from XML to masked examples: maskmill's stages, and the reference's programs.

    python -m benchmarks.build [DUMP] [--shard_size_mb 4]
    python -m benchmarks.build DUMP --reference DIR --wikiextractor FILE [--python PYTHON] [--nltk_python PYTHON]
        [--runs 5]

DIR is the folder retired_benchmarks/bert/cleanup_scripts of a checkout of mlcommons/training. FILE is WikiExtractor.py
of attardi/wikiextractor at commit 3162bb6. PYTHON has TensorFlow and is older than 3.11, as WikiExtractor needs.
NLTK_PYTHON has NLTK 3.8.2 or later, which reads the Punkt parameters that maskmill bundles.

Every figure is of a whole command with all processes that it starts. The kernels are compiled before the measurement.
With --runs the programs run that often, in turn, and the ratios are those of the medians.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from benchmarks.measure import Usage, measure, print_machine, ratio
from benchmarks.reading import read_pages, unpack_with_maskmill
from benchmarks.reference import SHIM, VOCABULARY
from maskmill.storage import files
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.mediawiki import Page, read_header
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import plan_units, read_unit
from transforms.sentences.punkt import SentenceSplitter

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "tests" / "data" / "dump" / "enwiki-sample-multistream.xml.bz2"
PUNKT = ROOT / "transforms" / "sentences" / "data" / "punkt_tab"

LENGTHS = ["--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=10"]


def run(label: str, command: Sequence[object], cwd: Path, **environment: str) -> Usage:
    """Measures a command and prints its row; ends the benchmark if the command fails."""
    usage = measure([str(part) for part in command], cwd=str(cwd), env=os.environ | environment)
    if usage.exit_code:
        sys.exit(f"{label} ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    print(usage.row(label), flush=True)
    return usage


def write_config(folder: Path, *, vocab_file: str, **extract: object) -> Path:
    """Writes the YAML of a build of 512/76 into a folder, in whose `build` its output goes; `extract`: its options."""
    config = folder / "build.yaml"
    sections = {
        "output": str(folder / "build"),
        "report": "off",  # the reference makes none
        "extract": extract,
        "examples": {"vocab_file": vocab_file, "max_seq_length": 512, "max_predictions_per_seq": 76},
        "eval": {"num_examples_to_pick": 100},
    }
    config.write_text(yaml.safe_dump(sections))
    return config


def maskmill(arguments: argparse.Namespace, scratch: Path, workers: int) -> Usage:
    """Runs each stage, then the whole build. Returns what the build took."""
    local = [f"--direct_num_workers={workers}"]
    environment = {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "maskmill"]
    text = scratch / f"text-{workers}"
    flags = [f"--shard_size_mb={arguments.shard_size_mb}", f"--num_eval_articles={arguments.num_eval_articles}"]
    print(f"maskmill, {workers} worker{'s' if workers > 1 else ''}")
    run(
        "  extract",
        [*command, "extract", f"--input={arguments.dump}", f"--output={text}", *flags, *local],
        ROOT,
        **environment,
    )
    masking = [f"--input={text}", f"--output={scratch / 'examples'}", f"--vocab_file={arguments.vocab}", *LENGTHS]
    run("  examples", [*command, "examples", *masking, *local], ROOT, **environment)
    config = write_config(
        scratch,
        vocab_file=arguments.vocab,
        input=arguments.dump,
        shard_size_mb=arguments.shard_size_mb,
        num_eval_articles=arguments.num_eval_articles,
    )
    usage = run("  build, all stages as one graph", [*command, "build", config, *local], ROOT, **environment)
    shards = len(list((scratch / "build" / "text").glob("part-*")))
    written = sum(f.stat().st_size for f in (scratch / "build").rglob("*.tfrecord"))
    print(f"  {shards} shards, {written:,} bytes of records")
    for folder in (scratch / "build", scratch / "examples", text):
        shutil.rmtree(folder)
    return usage


def extract_steps(path: str) -> None:
    """Runs the steps of `extract` one after another in this process and prints the CPU seconds of each."""

    def seconds(step: Callable[[], object]) -> float:
        step()  # compiles the kernels and fills the caches
        began = time.process_time()
        step()
        return time.process_time() - began

    extractor = WikitextExtractor(Site.parse(read_header(path)), WikitextOptions())
    splitter = SentenceSplitter()
    pages = [page for unit in plan_units(files.match(path)) for page in read_unit(unit, ReadOptions())]
    articles = [
        page
        for page in pages
        if isinstance(page, Page) and page.namespace == 0 and not extractor.is_redirect(page.text)
    ]
    texts = [extractor.extract(page.title, page.text) for page in articles]
    unpacking = seconds(lambda: unpack_with_maskmill(path)) if path.endswith(".bz2") else 0.0
    rows = [
        ("bz2", unpacking),
        ("XML to pages", seconds(lambda: read_pages(path)) - unpacking),
        ("wikitext", seconds(lambda: [extractor.extract(page.title, page.text) for page in articles])),
        ("sentences", seconds(lambda: [splitter.split_lines(text) for text in texts])),
    ]
    print("  steps of extract in one process: " + ", ".join(f"{name} {cpu:.2f} s CPU" for name, cpu in rows))


def reference(arguments: argparse.Namespace, scratch: Path) -> float:
    """Runs the programs of the reference one after another. Returns their CPU seconds together."""
    scripts = Path(arguments.reference).resolve()
    python = arguments.python
    nltk_data = scratch / "nltk_data" / "tokenizers" / "punkt_tab"
    shutil.copytree(PUNKT, nltk_data)
    environment = {"NLTK_DATA": str(scratch / "nltk_data")}
    print("the reference's chain")
    extractor = Path(arguments.wikiextractor).resolve()
    text = scratch / "reference-text"
    total = run(
        "  WikiExtractor", [python, extractor, arguments.dump, "--output", text, "--processes", 1, "--quiet"], scratch
    ).cpu
    data = f"--data={text}/*/wiki_??"
    one_worker = "--nworker=1"
    total += run("  cleanup_file", [python, scripts / "cleanup_file.py", data, one_worker], scratch).cpu
    loop = f'for f in {text}/*/wiki_??; do bash "{scripts}/clean.sh" "$f.1" "$f.2"; done'
    total += run("  clean.sh", ["bash", "-c", loop], scratch).cpu
    total += run(
        "  do_sentence_segmentation",
        [arguments.nltk_python, scripts / "do_sentence_segmentation.py", data, one_worker],
        scratch,
        **environment,
    ).cpu
    (scratch / "results").mkdir()
    separate = ["--num_test_articles", arguments.num_eval_articles, "--test_output", scratch / "results" / "eval"]
    command = [python, scripts / "seperate_test_set.py", data, one_worker, *separate]
    total += run("  seperate_test_set", command, scratch).cpu
    gather = ["--input_suffix=.4", "--block_size=26.92", f"--out_dir={scratch / 'results'}", one_worker]
    total += run("  do_gather", [python, scripts / "do_gather.py", data, *gather], scratch).cpu
    for shard in sorted((scratch / "results").glob("part-*")):
        masking = [
            f"--input_file={shard}",
            f"--output_file={scratch / 'one.tfrecord'}",
            f"--vocab_file={arguments.vocab}",
        ]
        create = [python, "-c", SHIM, scripts / "create_pretraining_data.py", *masking, *LENGTHS]
        total += run(f"  create_pretraining_data {shard.name[:10]}", create, scratch).cpu
    return total


def main() -> None:
    """Prints the machine, a row for each command, and the ratio of the reference to maskmill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", nargs="?", default=str(SAMPLE), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--reference", metavar="DIR")
    parser.add_argument("--wikiextractor", metavar="FILE")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--nltk_python", default=sys.executable)
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--shard_size_mb", type=float, default=4.0)
    parser.add_argument("--num_eval_articles", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument(
        "--scratch", help="folder for the outputs, which take about 50 times the size of the packed dump"
    )
    arguments = parser.parse_args()
    if bool(arguments.reference) != bool(arguments.wikiextractor):
        parser.error("--reference and --wikiextractor go together")
    if arguments.dump == str(SAMPLE):
        arguments.shard_size_mb, arguments.num_eval_articles = min(arguments.shard_size_mb, 0.2), 20
    print_machine()
    measure([sys.executable, "-m", "maskmill", "warm-up"], cwd=str(ROOT))
    ours: dict[int, list[Usage]] = {1: [], 2: []}
    theirs = []
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
            for workers, usages in ours.items():
                usages.append(maskmill(arguments, Path(folder), workers))
            if arguments.reference:
                theirs.append(reference(arguments, Path(folder)))
                print(f"reference: {theirs[-1]:.1f} s CPU together")
    for workers, usages in ours.items():
        cpu = statistics.median(usage.cpu for usage in usages)
        wall = statistics.median(usage.wall for usage in usages)
        print(f"medians of {arguments.runs}: whole build, {workers} worker(s): {cpu:.1f} s CPU, {wall:.1f} s")
        if theirs:
            times = ratio(statistics.median(theirs), cpu)
            print(f"  CPU seconds, reference ({statistics.median(theirs):.1f}) / maskmill's: {times}")
    extract_steps(arguments.dump)


if __name__ == "__main__":
    main()
