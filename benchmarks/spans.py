"""Measures examples that are not stored: spans, beside stored formats, and beside `datasets` with `tokenizers`.

    python -m benchmarks.spans TEXT [--vocab FILE] [--peers PYTHON] [--rounds 3] [--seconds 5] [--scratch DIR]

TEXT is a directory that `maskmill extract` wrote. First, what writing costs: the CPU seconds of a running process,
tokenizing included, and the bytes beside those of the text. Then what reading gives: each loader in a process of its
own that is bound to one core, as benchmarks/loaders.py has it; the best run counts. A token is a piece of a row,
padding not counted. Then the first batch of a data set of 500 shards, and the memory of its process.

PYTHON is one with datasets and tokenizers, which stream and split the same text, with a shuffle buffer and without
masks; without it, they are left out. The byte-level BPE is learnt from the text, with 30,000 pieces.
"""

import argparse
import dataclasses
import functools
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.loaders import FILES, GOAL, Case, Figures, best_runs, cut_into_files, print_first_batch, tokens_of
from benchmarks.measure import in_turn, maskmill, parser_of, print_machine, ratio, resolved

LENGTHS = (128, 512, 8192)
BATCH_TOKENS = 1 << 16
FORMATS = ("tfrecord", "parquet", "mds", "spans")
WRITTEN = (("nsp", 128), ("nsp", 512), ("mlm", 128), ("mlm", 512), ("mlm", 8192))  # objective, pieces of a row
GOAL_OF_PEERS = 20  # times the peers


def write_once(text: Path, vocab: str, objective: str, length: int, form: str, scratch: Path) -> tuple[float, int]:
    """Return CPU seconds and bytes of the examples of all shards, in this process."""
    from maskmill.masking.objective_options import ObjectiveOptions
    from maskmill.masking.options import MaskingOptions
    from maskmill.records.examples import write_example_files
    from maskmill.records.options import FormatOptions
    from maskmill.records.plan import ExamplesPlan
    from maskmill.records.tokenizing import load_tokenization

    masking = MaskingOptions(
        max_seq_length=length,
        max_predictions_per_seq=length * 3 // 20,
        dupe_factor=1,
        short_seq_prob=0.1 if objective == "nsp" else 0.0,
        unicode="15.1.0",
    )
    chosen = ObjectiveOptions(objective=objective, dynamic_masking=True)  # type: ignore[arg-type]
    plan = ExamplesPlan(masking=masking, objective=chosen, format=FormatOptions(format=form))
    tokenization = load_tokenization(vocab, masking, is_tokenizer=False)
    seconds, size = 0.0, 0
    for shard in sorted(text.glob("part-*")):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            began = time.process_time()
            written, _ = write_example_files([str(shard)], [f"{folder}/{shard.name}"], tokenization, plan)
            seconds += time.process_time() - began
            size += sum(file.size for file in written)
    return seconds, size


def print_writing(text: Path, vocab: str, rounds: int, scratch: Path) -> None:
    """Print what examples cost in each format, and how large they are."""
    of_text = sum(path.stat().st_size for path in text.glob("part-*"))
    print(f"Text: {of_text:,} bytes.\n")
    print("| objective | pieces | format | CPU s | bytes | times the text |\n|---|---|---|---|---|---|")
    for objective, length in WRITTEN:
        cases = {form: functools.partial(write_once, text, vocab, objective, length, form, scratch) for form in FORMATS}
        for form, runs in in_turn(rounds, cases).items():
            seconds, size = min(runs)
            row = f"{seconds:.2f} | {size:,} | {size / of_text:.4f}"
            print(f"| {objective} | {length:,} | {form} | {row} |", flush=True)
    print()


def made(text: Path, tokenizer: str, length: int, form: str, scratch: Path) -> Path:
    """Write full sentences in a format into a new folder."""
    kind = "tokenizer_file" if tokenizer.endswith(".json") else "vocab_file"
    output = scratch / f"{form}-{kind}-{length}-{text.name}"
    flags = (f"--{kind}={tokenizer}", f"--format={form}", "--dynamic_masking", "--objective=mlm", "--workers=1")
    maskmill(
        "examples", f"--input={text}/part-*", f"--output={output}", f"--max_seq_length={length}", "--quiet", *flags
    )
    return output


def cases_of(arguments: argparse.Namespace, tokenizer: str, saved: str, scratch: Path) -> list[Case]:
    """Ours and, if there is a Python for them, the peers', at each length; saved: the same as a tokenizer.json."""
    kind, text = "byte-level BPE" if tokenizer.endswith(".json") else "WordPiece", arguments.text
    cases = []
    for length in LENGTHS:
        batch = max(8, BATCH_TOKENS // length)
        flags = (f"--seconds={arguments.seconds}", f"--batch={batch}", f"--length={length}")
        for form in ("spans", "tfrecord"):
            data = made(text, tokenizer, length, form, scratch)
            name = f"maskmill, {form}, {kind}, {length}"
            cases.append(Case(name, "maskmill", sys.executable, data, tokens_of(data), flags))
            if form == "spans" and length == 512:
                cold = (*flags, f"--cold={text}/part-*")
                cases.append(dataclasses.replace(cases[-1], name=f"{name}, cold", flags=cold))
        if arguments.peers:
            name, flags = f"datasets, tokenizers, {kind}, {length}", (*flags, f"--vocab={saved}")
            cases.append(Case(name, "streamed_text", arguments.peers, text, length, flags))
    return cases


def print_reading(best: Mapping[Case, Figures]) -> None:
    """Print how many tokens each loader gives."""
    print("| loader | tokens for a CPU second | first batch, s | MB |\n|---|---|---|---|")
    for case, one in best.items():
        row = f"{one.tokens_a_second / 1e6:.2f} million | {one.found['first_batch']:.2f} | {one.megabytes:.0f}"
        print(f"| {case.name} | {row} |")
    rates = {case.name: figures.tokens_a_second for case, figures in best.items()}
    for kind in ("WordPiece, 512", "byte-level BPE, 512"):
        ours, theirs = rates[f"maskmill, spans, {kind}"], rates.get(f"datasets, tokenizers, {kind}")
        print(f"{kind} pieces: {ratio(ours, GOAL)} times the goal of {GOAL:,} tokens a second and core", end="")
        print(f", {ratio(ours, theirs)} times the peers' (goal: {GOAL_OF_PEERS})." if theirs else ".", flush=True)


def main() -> None:
    """Print the machine and the tables."""
    parser = parser_of(__doc__, rounds=3, scratch="the data sets, which take about ten times the size of the text")
    parser.add_argument("text", metavar="TEXT", type=resolved)
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with datasets and tokenizers")
    parser.add_argument("--seconds", type=float, default=5, help="CPU seconds of a run")
    arguments = parser.parse_args()
    vocab = str(arguments.vocab)
    print_machine()
    maskmill("warm-up")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        print_writing(arguments.text, vocab, arguments.rounds, scratch)
        from tokenizers.implementations import BertWordPieceTokenizer

        BertWordPieceTokenizer(vocab, lowercase=True).save(str(scratch / "wordpiece.json"))
        learn = (f"--input={arguments.text}/part-*", f"--output={scratch / 'bpe'}", "--kind=bpe", "--size=30000")
        maskmill("vocabulary", *learn, "--quiet")
        bpe = str(scratch / "bpe" / "tokenizer.json")
        cases = cases_of(arguments, vocab, str(scratch / "wordpiece.json"), scratch)
        print_reading(best_runs([*cases, *cases_of(arguments, bpe, bpe, scratch)], arguments.rounds))
        cut_into_files(arguments.text, scratch / "many", FILES)
        many = made(scratch / "many", vocab, 512, "spans", scratch)
        flags = ("--batch=128", "--seconds=1")
        print_first_batch(Case("maskmill, spans", "maskmill", sys.executable, many, 0, flags), arguments.rounds)


if __name__ == "__main__":
    main()
