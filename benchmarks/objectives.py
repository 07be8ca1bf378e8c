"""Measures the CPU time that each objective and each format takes, beside BERT's exact records.

    python -m benchmarks.objectives SHARD --vocab vocab.txt [--dupe_factor 10] [--rounds 3] [--scratch DIR]
        [--run_mlm FILE --peers PYTHON]

Text is tokenized, rows are drawn and written with checksums, in this process; the kernels are compiled before. A figure
is nanoseconds of CPU for each piece of the text and each pass over it, the least of the rounds, in which all take
turns. Static masks are measured with one pass and with --dupe_factor passes, each beside the exact path with as many.
Goals: 1.5 times the exact path for an objective, 2 times TFRecord for a format. Then the padding of packed rows.

FILE is examples/pytorch/language-modeling/run_mlm.py of huggingface/transformers, PYTHON one with numpy, datasets and
transformers: the recipe's blocks of the same text, without masks, beside the same blocks in Parquet.
"""

import argparse
import dataclasses
import functools
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import in_turn, parser_of, peer, print_machine, ratio, resolved
from maskmill.masking.objective_options import ObjectiveOptions
from maskmill.masking.options import MaskingOptions
from maskmill.records.examples import ExampleCounts, write_example_files
from maskmill.records.options import FormatOptions
from maskmill.records.plan import ExamplesPlan
from maskmill.records.tokenizing import wordpiece
from maskmill.tokenization.vocabulary import Vocabulary, load_vocabulary

EXACT = "nsp, exact"
RECIPE = "blocks as run_mlm.py cuts them"

STATIC = {
    EXACT: ObjectiveOptions(),
    "nsp, whole words": ObjectiveOptions(mask_unit="whole_word"),
    "nsp, word": ObjectiveOptions(mask_unit="word"),
    "nsp, strict labels": ObjectiveOptions(strict_labels=True),
    "mlm": ObjectiveOptions(objective="mlm"),
    "mlm, n-grams": ObjectiveOptions(objective="mlm", mask_unit="ngram"),
    "mlm, spans": ObjectiveOptions(objective="mlm", mask_unit="span"),
    "mlm, packed": ObjectiveOptions(objective="mlm", full_sentences=False, pack=True),
    "blocks": ObjectiveOptions(objective="blocks", block_separators="sep"),
    "sop": ObjectiveOptions(objective="sop"),
    "sop, n-grams": ObjectiveOptions(objective="sop", mask_unit="ngram"),
}
DYNAMIC = {
    "mlm": ObjectiveOptions(objective="mlm", dynamic_masking=True),
    "mlm, packed": ObjectiveOptions(objective="mlm", full_sentences=False, pack=True, dynamic_masking=True),
    "sop": ObjectiveOptions(objective="sop", dynamic_masking=True),
    RECIPE: ObjectiveOptions(
        objective="blocks", block_separators="recipe", block_remainder="drop", dynamic_masking=True
    ),
}
FORMATS: tuple[str, ...] = ("tfrecord", "parquet", "mds")
# Rows whose sequences are packed, and how many pieces they would leave empty else.
PACKED = {
    "nsp": ObjectiveOptions(pack=True),
    "sop": ObjectiveOptions(objective="sop", pack=True),
    "mlm within documents, full sentences": ObjectiveOptions(objective="mlm", cross_documents=False, pack=True),
    "mlm within documents": ObjectiveOptions(
        objective="mlm", cross_documents=False, full_sentences=False, pack=True
    ),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """The data that is written: an objective, so many passes over the text, a format."""

    name: str
    objective: ObjectiveOptions
    passes: int
    format: str = "tfrecord"


@dataclasses.dataclass
class Result:
    """The least CPU seconds of a case, and the counts of its rows."""

    seconds: float
    counts: ExampleCounts

    @property
    def nanoseconds(self) -> float:
        """CPU time for a piece of the text; divide by the passes."""
        return self.seconds * 1e9 / self.counts.tokens


class Bench:
    """Writes cases into a folder, and deletes what they wrote."""

    def __init__(self, arguments: argparse.Namespace, vocabulary: Vocabulary, scratch: str) -> None:
        self._shard, self._length, self._rounds = str(arguments.shard), arguments.max_seq_length, arguments.rounds
        self._vocabulary, self._scratch = vocabulary, Path(scratch)

    def write(self, case: Case) -> Result:
        """Write a case once."""
        masking = MaskingOptions(
            max_seq_length=self._length,
            max_predictions_per_seq=-(-self._length * 15 // 100),
            dupe_factor=case.passes,
            short_seq_prob=0.1 if case.objective.objective in ("nsp", "sop") else 0.0,
        )
        plan = ExamplesPlan(masking=masking, objective=case.objective, format=FormatOptions(format=case.format))
        began = time.process_time()
        loaded = wordpiece(self._vocabulary, plan.masking)
        _, counts = write_example_files([self._shard], [str(self._scratch / "rows")], loaded, plan)
        seconds = time.process_time() - began
        for path in self._scratch.iterdir():
            path.unlink()
        return Result(seconds, counts)

    def measure(self, cases: list[Case]) -> dict[Case, Result]:
        """Write all cases in turn, again and again; return the first time, which compiles, does not count."""
        runs = in_turn(1 + self._rounds, {case: functools.partial(self.write, case) for case in cases})
        return {case: min(results[1:], key=lambda result: result.seconds) for case, results in runs.items()}


def objectives_table(results: dict[Case, Result]) -> None:
    """Print what each objective takes beside the exact path with as many passes."""
    tfrecords = {case: result for case, result in results.items() if case.format == "tfrecord"}
    baselines = {case.passes: result for case, result in tfrecords.items() if case.name == EXACT}
    print("| objective, TFRecord | passes | rows | ns CPU a piece and pass | times the exact path |")
    print("|---|---|---|---|---|")
    for case, result in tfrecords.items():
        name = f"{case.name}, dynamic masks" if case.objective.dynamic_masking else case.name
        times = ratio(result.seconds, baselines[case.passes].seconds, 2)
        nanoseconds = result.nanoseconds / case.passes
        print(f"| {name} | {case.passes} | {result.counts.examples:,} | {nanoseconds:.0f} | {times} |")
    print()


def formats_table(results: dict[Case, Result]) -> None:
    """Print what each format takes beside TFRecord with the same rows."""
    print("| rows | masks | format | ns CPU a piece and pass | times TFRecord |")
    print("|---|---|---|---|---|")
    for case, base in results.items():
        versions = [dataclasses.replace(case, format=file_format) for file_format in FORMATS]
        if case.format != FORMATS[0] or not all(version in results for version in versions):
            continue
        masks = "dynamic" if case.objective.dynamic_masking else f"static, {case.passes} passes"
        for version in versions:
            result = results[version]
            print(
                f"| {case.name} | {masks} | {version.format} | {result.nanoseconds / case.passes:.0f} "
                f"| {ratio(result.seconds, base.seconds, 2)} |"
            )
    print()


def packing_table(bench: Bench) -> None:
    """Print the padding of rows that are packed, before and after."""
    print("| sequences | of them | padding | packed rows | padding | rows saved |")
    print("|---|---|---|---|---|---|")
    for name, objective in PACKED.items():
        counts = bench.write(Case(name, objective, 1)).counts
        assert counts.sequences is not None
        assert counts.unpacked_padding_tokens is not None
        assert counts.padding_tokens is not None
        places = (counts.example_tokens + counts.special_tokens + counts.padding_tokens) / counts.examples
        print(
            f"| {name} | {counts.sequences:,} | {counts.unpacked_padding_tokens / (places * counts.sequences):.2%} "
            f"| {counts.examples:,} | {counts.padding_tokens / (places * counts.examples):.2%} "
            f"| {1 - counts.examples / counts.sequences:.1%} |"
        )
    print()


def beside_the_recipe(arguments: argparse.Namespace, ours: Result) -> None:
    """Print what run_mlm.py's recipe takes for the same blocks."""
    if not arguments.run_mlm:
        print("Hugging Face's recipe is left out: --run_mlm and --peers are not given.")
        return
    command = ("run_mlm", arguments.shard, f"--script={arguments.run_mlm}", f"--vocab={arguments.vocab}")
    flags = (*command, f"--length={arguments.max_seq_length}")
    (runs,) = in_turn(arguments.rounds, {"": lambda: peer(arguments.peers, *flags, HF_HUB_OFFLINE="1")}).values()
    best = min(runs, key=lambda figures: figures["cpu_seconds"])
    nanoseconds = best["cpu_seconds"] * 1e9 / ours.counts.tokens
    print(
        f"run_mlm.py with {', '.join(best['versions'])}: {best['blocks']:,} blocks, {nanoseconds:.0f} ns CPU a piece, "
        f"{ratio(best['cpu_seconds'], ours.seconds)} times maskmill's {ours.counts.examples:,} blocks in Parquet."
    )


def main() -> None:
    """Print the machine and the tables."""
    parser = parser_of(__doc__, rounds=3, scratch="the outputs, which take about 20 times the size of the shard")
    parser.add_argument("shard", type=resolved)
    parser.add_argument("--max_seq_length", type=int, default=512)
    parser.add_argument("--dupe_factor", type=int, default=10)
    parser.add_argument("--run_mlm", metavar="FILE", type=resolved)
    parser.add_argument("--peers", metavar="PYTHON", default=sys.executable)
    arguments = parser.parse_args()
    print_machine()
    passes = sorted({1, arguments.dupe_factor})
    cases = [Case(name, objective, count) for count in passes for name, objective in STATIC.items()]
    cases += [Case(name, objective, 1) for name, objective in DYNAMIC.items()]
    for file_format in FORMATS[1:]:
        cases += [Case(name, STATIC[name], passes[-1], file_format) for name in (EXACT, "mlm", "mlm, packed")]
        cases += [Case(name, DYNAMIC[name], 1, file_format) for name in ("mlm", RECIPE)]
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        bench = Bench(arguments, load_vocabulary(str(arguments.vocab)), scratch)
        results = bench.measure(cases)
        objectives_table(results)
        formats_table(results)
        packing_table(bench)
        beside_the_recipe(arguments, results[Case(RECIPE, DYNAMIC[RECIPE], 1, "parquet")])


if __name__ == "__main__":
    main()
