"""The whole chain on a dump, from XML to masked examples: maskmill by stage, and beside it the reference's chain.

    python -m benchmarks.build [DUMP] [--shard_size_mb 4]
    python -m benchmarks.build DUMP --reference DIR --wikiextractor FILE [--python PYTHON] [--nltk_python PYTHON]

DIR is retired_benchmarks/bert/cleanup_scripts in a checkout of mlcommons/training, FILE WikiExtractor.py of
attardi/wikiextractor at commit 3162bb6, PYTHON one with TensorFlow (and below 3.11 for WikiExtractor), NLTK_PYTHON one
with NLTK 3.8.2 or later, whose Punkt parameters are bundled here. Every figure is of whole processes, all
that they start counted, Beam's start-up too; kernels are compiled before the measurement.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from benchmarks.measure import Usage, measure
from benchmarks.reading import read_pages, unpack_with_ours
from benchmarks.reference import SHIM, VOCABULARY
from transforms.extraction.wikitext import WikitextExtractor, WikitextOptions
from transforms.inputs.mediawiki import Page, read_header
from transforms.inputs.options import ReadOptions
from transforms.inputs.site import Site
from transforms.inputs.units import plan_units, read_unit
from transforms.sentences.punkt import SentenceSplitter
from transforms.storage import files

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "tests" / "data" / "dump" / "enwiki-sample-multistream.xml.bz2"
PUNKT = ROOT / "transforms" / "data" / "punkt_tab"

LENGTHS = ["--max_seq_length=512", "--max_predictions_per_seq=76", "--dupe_factor=10"]


def run(label: str, command: Sequence[object], cwd: Path, **environment: str) -> Usage:
    """Measures a command and prints its row; ends the benchmark where the command fails."""
    usage = measure([str(part) for part in command], cwd=str(cwd), env=os.environ | environment)
    if usage.exit_code:
        sys.exit(f"{label} ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    print(usage.row(label), flush=True)
    return usage


def maskmill(arguments: argparse.Namespace, scratch: Path, workers: int) -> Usage:
    """Runs each stage, then the whole build, and returns what the build took."""
    local = [f"--direct_num_workers={workers}"]
    here = {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "maskmill"]
    text = scratch / f"text-{workers}"
    flags = [f"--shard_size_mb={arguments.shard_size_mb}", f"--num_eval_articles={arguments.num_eval_articles}"]
    print(f"maskmill, {workers} worker{'s' if workers > 1 else ''}")
    run(
        "  extract",
        [*command, "extract", f"--input={arguments.dump}", f"--output={text}", *flags, *local],
        ROOT,
        **here,
    )
    masking = [f"--input={text}", f"--output={scratch / 'examples'}", f"--vocab_file={arguments.vocab}", *LENGTHS]
    run("  examples", [*command, "examples", *masking, *local], ROOT, **here)
    config = scratch / f"build-{workers}.yaml"
    sections = {
        "output": str(scratch / "build"),
        "extract": {
            "input": arguments.dump,
            "shard_size_mb": arguments.shard_size_mb,
            "num_eval_articles": arguments.num_eval_articles,
        },
        "examples": {"vocab_file": arguments.vocab, "max_seq_length": 512, "max_predictions_per_seq": 76},
        "eval": {"num_examples_to_pick": 100},
    }
    config.write_text(yaml.safe_dump(sections))
    usage = run("  build, all of it as one graph", [*command, "build", config, *local], ROOT, **here)
    shards = len(list((scratch / "build" / "text").glob("part-*")))
    written = sum(f.stat().st_size for f in (scratch / "build").rglob("*.tfrecord"))
    print(f"  {shards} shards, {written:,} bytes of records")
    for folder in (scratch / "build", scratch / "examples"):
        shutil.rmtree(folder)
    return usage


def extract_steps(path: str) -> None:
    """Prints the CPU seconds of the steps of `extract`, one after another in this process."""

    def seconds(step: Callable[[], object]) -> float:
        step()  # warm
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
    unpacking = seconds(lambda: unpack_with_ours(path)) if path.endswith(".bz2") else 0.0
    rows = [
        ("bz2", unpacking),
        ("XML to pages", seconds(lambda: read_pages(path)) - unpacking),
        ("wikitext", seconds(lambda: [extractor.extract(page.title, page.text) for page in articles])),
        ("sentences", seconds(lambda: [splitter.split_lines(text) for text in texts])),
    ]
    print("  steps of extract in one process: " + ", ".join(f"{name} {s:.2f} s CPU" for name, s in rows))


def reference(arguments: argparse.Namespace, scratch: Path) -> float:
    """Runs the reference's chain, one process at a time, and returns its CPU seconds."""
    scripts = Path(arguments.reference).resolve()
    python = arguments.python
    nltk_data = scratch / "nltk_data" / "tokenizers" / "punkt_tab"
    shutil.copytree(PUNKT, nltk_data)
    here = {"NLTK_DATA": str(scratch / "nltk_data")}
    print("the reference's chain")
    extractor = Path(arguments.wikiextractor).resolve()
    text = scratch / "reference-text"
    total = run(
        "  WikiExtractor", [python, extractor, arguments.dump, "--output", text, "--processes", 1, "--quiet"], scratch
    ).cpu
    data = f"--data={text}/*/wiki_??"
    one = "--nworker=1"
    total += run("  cleanup_file", [python, scripts / "cleanup_file.py", data, one], scratch).cpu
    loop = f'for f in {text}/*/wiki_??; do bash "{scripts}/clean.sh" "$f.1" "$f.2"; done'
    total += run("  clean.sh", ["bash", "-c", loop], scratch).cpu
    total += run(
        "  do_sentence_segmentation",
        [arguments.nltk_python, scripts / "do_sentence_segmentation.py", data, one],
        scratch,
        **here,
    ).cpu
    (scratch / "results").mkdir()
    separate = ["--num_test_articles", arguments.num_eval_articles, "--test_output", scratch / "results" / "eval"]
    total += run("  seperate_test_set", [python, scripts / "seperate_test_set.py", data, one, *separate], scratch).cpu
    gather = ["--input_suffix=.4", "--block_size=26.92", f"--out_dir={scratch / 'results'}", one]
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
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", nargs="?", default=str(SAMPLE), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--reference", metavar="DIR")
    parser.add_argument("--wikiextractor", metavar="FILE")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--nltk_python", default=sys.executable)
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--shard_size_mb", type=float, default=4.0)
    parser.add_argument("--num_eval_articles", type=int, default=100)
    parser.add_argument("--scratch", help="folder for the outputs, about 50 times the packed dump")
    arguments = parser.parse_args()
    if bool(arguments.reference) != bool(arguments.wikiextractor):
        parser.error("--reference and --wikiextractor go together")
    if arguments.dump == str(SAMPLE):
        arguments.shard_size_mb, arguments.num_eval_articles = min(arguments.shard_size_mb, 0.2), 20
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        warm = [sys.executable, "-m", "transforms.kernels"]
        measure(warm, cwd=str(ROOT))
        ours = [maskmill(arguments, scratch, workers) for workers in (1, 2)]
        if arguments.reference:
            theirs = reference(arguments, scratch)
            print(f"reference, CPU seconds in all: {theirs:.1f}")
            for workers, usage in enumerate(ours, 1):
                print(f"ratio of CPU seconds to maskmill's whole build, {workers} worker(s): {theirs / usage.cpu:.1f}")
    extract_steps(arguments.dump)


if __name__ == "__main__":
    main()
