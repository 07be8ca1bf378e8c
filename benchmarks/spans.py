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
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.loaders import FILES, MOST_MEMORY, OTHERS_ENVIRONMENT, cut_into_files
from benchmarks.measure import measure, print_machine, ratio
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
LENGTHS = (128, 512, 8192)
BATCH_TOKENS = 1 << 16
FORMATS = ("tfrecord", "parquet", "mds", "spans")
OBJECTIVES = ("nsp", "mlm")
GOAL = 5_000_000  # tokens a second and core at 512 pieces
GOAL_OF_PEERS = 20  # times the peers


def run(command: Sequence[str], **environment: str) -> str:
    """The output of a command; ends the benchmark if that fails."""
    usage = measure(command, cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)} | environment)
    if usage.exit_code:
        sys.exit(f"{' '.join(command)} ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    return usage.output


def loaded(python: str, loader: str, data: Path, **options: Any) -> dict[str, Any]:
    """What a loader of benchmarks/peer_loaders.py gave."""
    flags = [f"--{name}={value}" for name, value in options.items()]
    output = run([python, "-m", "benchmarks.peer_loaders", loader, str(data), *flags], **OTHERS_ENVIRONMENT)
    found: dict[str, Any] = json.loads([line for line in output.splitlines() if line.startswith("{")][-1])
    return found


# ---- writing


def write_once(text: Path, vocab: str, objective: str, length: int, form: str, scratch: Path) -> tuple[float, int]:
    """CPU seconds and bytes of the examples of all shards, in this process."""
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
    began, size = time.process_time(), 0
    for shard in sorted(text.glob("part-*")):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            files, _ = write_example_files([str(shard)], [f"{folder}/{shard.name}"], tokenization, plan)
            size += sum(file.size for file in files)
    return time.process_time() - began, size


def print_writing(text: Path, vocab: str, rounds: int, scratch: Path) -> None:
    """Prints what examples cost in each format, and how large they are."""
    of_text = sum(path.stat().st_size for path in text.glob("part-*"))
    print(f"Text: {of_text:,} bytes.\n")
    print("| objective | pieces | format | CPU s | bytes | times the text |\n|---|---|---|---|---|---|")
    for objective in OBJECTIVES:
        for length in LENGTHS[:2] if objective == "nsp" else LENGTHS:
            best = dict.fromkeys(FORMATS, (float("inf"), 0))
            for _ in range(rounds):
                for form in FORMATS:
                    best[form] = min(best[form], write_once(text, vocab, objective, length, form, scratch))
            for form, (seconds, size) in best.items():
                print(
                    f"| {objective} | {length:,} | {form} | {seconds:.2f} | {size:,} | {size / of_text:.4f} |",
                    flush=True,
                )
    print()


# ---- reading


@dataclasses.dataclass(frozen=True)
class Case:
    """A loader, the data that it reads, and the tokens of a row."""

    name: str
    loader: str
    data: Path
    length: int
    tokens: float
    vocab: str
    cold: str = ""

    def rate(self, python: str, seconds: float) -> tuple[float, dict[str, Any]]:
        """Tokens for a CPU second, and what the run said."""
        options = {"batch": max(8, BATCH_TOKENS // self.length), "seconds": seconds, "length": self.length}
        found = loaded(python, self.loader, self.data, **options, vocab=self.vocab, cold=self.cold)
        return found["samples"] * self.tokens / found["cpu"], found


def made(text: Path, tokenizer: str, length: int, form: str, scratch: Path) -> tuple[Path, float]:
    """Writes full sentences in a format; their directory, and the tokens of a row."""
    kind = "tokenizer_file" if tokenizer.endswith(".json") else "vocab_file"
    output = scratch / f"{form}-{kind}-{length}-{text.name}"
    if not output.exists():
        command = [sys.executable, "-m", "maskmill", "examples", f"--input={text}/part-*", "--workers=1", "--quiet"]
        command += [f"--output={output}", f"--{kind}={tokenizer}", f"--format={form}", "--dynamic_masking"]
        run([*command, "--objective=mlm", f"--max_seq_length={length}"])
    counts = json.loads((output / "manifest.json").read_text())["counts"]["train"]
    return output, (counts["example_tokens"] + counts["special_tokens"]) / counts["examples"]


def cases_of(text: Path, tokenizer: str, saved: str, peers: str | None, scratch: Path) -> list[Case]:
    """Ours and, if there is a Python for them, the peers', at each length; saved: the same as a tokenizer.json."""
    kind = "byte-level BPE" if tokenizer.endswith(".json") else "WordPiece"
    cases = []
    for length in LENGTHS:
        for form in ("spans", "tfrecord"):
            output, tokens = made(text, tokenizer, length, form, scratch)
            cases.append(Case(f"maskmill, {form}, {kind}", "maskmill", output, length, tokens, tokenizer))
            if form == "spans" and length == 512:
                name, cold = f"{cases[-1].name}, cold", f"{text}/part-*"
                cases.append(dataclasses.replace(cases[-1], name=name, cold=cold))
        if peers is not None:
            name = f"datasets, tokenizers, {kind}"
            cases.append(Case(name, "streamed_text", text, length, length, saved))
    return cases


def print_reading(cases: Sequence[Case], arguments: argparse.Namespace) -> None:
    """Prints how many tokens each loader gives."""
    best: dict[Case, tuple[float, dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for case in cases:
            python = arguments.peers if case.loader == "streamed_text" else sys.executable
            found = case.rate(python, arguments.seconds)
            if case not in best or found[0] > best[case][0]:
                best[case] = found
    print("| loader | pieces | tokens for a CPU second | first batch, s | MB |\n|---|---|---|---|---|")
    for case, (rate, found) in best.items():
        shown = f"{rate / 1e6:.2f} million | {found['first_batch']:.2f} | {found['largest'] / 1e6:.0f}"
        print(f"| {case.name} | {case.length:,} | {shown} |")
    versions = {version for _, found in best.values() for version in found["versions"]}
    print(f"\nVersions: {', '.join(sorted(versions))}.")
    rates = {(case.name, case.length): rate for case, (rate, _) in best.items()}
    for kind in ("WordPiece", "byte-level BPE"):
        ours = rates[f"maskmill, spans, {kind}", 512]
        print(f"{kind}, 512 pieces: {ratio(ours, GOAL)} times the goal of {GOAL:,} tokens a second and core", end="")
        theirs = rates.get((f"datasets, tokenizers, {kind}", 512))
        print(
            "." if theirs is None else f", {ratio(ours, theirs)} times the peers' (goal: {GOAL_OF_PEERS}).", flush=True
        )


def print_first_batch(text: Path, vocab: str, rounds: int, scratch: Path) -> None:
    """Prints how long the first batch of many shards takes, and what a process holds."""
    cut_into_files(text, scratch / "many", FILES)
    output, _ = made(scratch / "many", vocab, 512, "spans", scratch)
    runs = [loaded(sys.executable, "maskmill", output, batch=128, seconds=1) for _ in range(rounds)]
    first, cpu = (min(run[name] for run in runs) for name in ("first_batch", "first_batch_cpu"))
    largest = max(run["largest"] for run in runs) / 1e6
    print(f"spans, {FILES} shards: first batch after {first:.2f} s ({cpu:.2f} s CPU), ", end="")
    print(f"{largest:.0f} MB at most (goal: {MOST_MEMORY / 1e6:.0f}).", flush=True)


def main() -> None:
    """Prints the machine and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", metavar="TEXT", type=lambda path: Path(path).resolve())
    parser.add_argument("--vocab", default=str(VOCABULARY), type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--peers", metavar="PYTHON", help="a Python with datasets and tokenizers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="CPU seconds of a run")
    parser.add_argument("--scratch", help="folder for the data sets, which take about ten times the size of the text")
    arguments = parser.parse_args()
    print_machine()
    run([sys.executable, "-m", "maskmill", "warm-up"])
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        print_writing(arguments.text, arguments.vocab, arguments.rounds, scratch)
        from tokenizers.implementations import BertWordPieceTokenizer

        BertWordPieceTokenizer(arguments.vocab, lowercase=True).save(str(scratch / "wordpiece.json"))
        learn = [sys.executable, "-m", "maskmill", "vocabulary", f"--input={arguments.text}/part-*", "--quiet"]
        run([*learn, f"--output={scratch / 'bpe'}", "--kind=bpe", "--size=30000"])
        bpe = str(scratch / "bpe" / "tokenizer.json")
        cases = cases_of(arguments.text, arguments.vocab, str(scratch / "wordpiece.json"), arguments.peers, scratch)
        print_reading([*cases, *cases_of(arguments.text, bpe, bpe, arguments.peers, scratch)], arguments)
        print_first_batch(arguments.text, arguments.vocab, arguments.rounds, scratch)


if __name__ == "__main__":
    main()
