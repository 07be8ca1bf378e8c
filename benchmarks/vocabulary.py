"""Measures `maskmill vocabulary` beside the programs that vocabularies are usually learnt with.

    python -m benchmarks.vocabulary TEXT [--workers 2] [--rounds 3]

TEXT is a folder that `maskmill extract` wrote. BERT's size of WordPiece and RoBERTa's of byte-level BPE are learnt,
with maskmill and with `tokenizers` on the same shards, in turn. It prints CPU time, wall time and peak memory of all
processes, medians of the rounds, and how the vocabularies cut the held-out articles, beside BERT's own vocabulary. All
are read by `tokenizers`, so that none is judged by its own program. The start-up of maskmill is what it takes for the
first lines of each shard.
"""

import dataclasses
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from benchmarks.measure import (
    LIBRARIES,
    ROOT,
    VOCABULARY,
    Usage,
    in_turn,
    maskmill,
    parser_of,
    print_machine,
    ratio,
    resolved,
    run,
    shorten,
)

SIZES = {"wordpiece": 30522, "bpe": 50265}  # those of BERT's and RoBERTa's own vocabularies
UNKNOWN = ("[UNK]", "<unk>")


def ours(text: Path, output: Path, kind: str, workers: int) -> Usage:
    """Run `maskmill vocabulary` on the training shards of a folder into a folder, which it replaces."""
    flags = (f"--kind={kind}", f"--size={SIZES[kind]}", f"--workers={workers}", "--quiet")
    shutil.rmtree(output, ignore_errors=True)
    return maskmill("vocabulary", f"--input={text}/part-*", f"--output={output}", *flags)


def theirs(text: Path, output: Path, kind: str, **environment: str) -> Usage:
    """Learn a vocabulary with `tokenizers`, and write it to a file."""
    flags = (f"--kind={kind}", f"--size={SIZES[kind]}", f"--output={output}")
    return run(
        [sys.executable, "-m", "benchmarks.peers", "learn_tokenizers", text, *flags],
        PYTHONPATH=str(ROOT),
        **environment,
    )


def medians(usages: Sequence[Usage]) -> Usage:
    """Return the median CPU and wall time of some runs, and their highest memory."""
    return dataclasses.replace(
        usages[0],
        cpu=statistics.median(usage.cpu for usage in usages),
        wall=statistics.median(usage.wall for usage in usages),
        largest=max(usage.largest for usage in usages),
        total=max(usage.total for usage in usages),
    )


def learn(kind: str, text: Path, *, workers: int, rounds: int, folder: Path) -> None:
    """Print what each program takes for a kind, and how its vocabulary cuts the held-out articles."""
    ours(folder / "short", folder / f"{kind}-compiled", kind, workers)  # compiles the kernels, if they are not yet
    start_up = ours(folder / "short", folder / f"{kind}-start-up", kind, workers)
    mine = folder / kind
    learnt = {"maskmill": mine / "tokenizer.json", "tokenizers": folder / f"{kind}.json"}
    runs = in_turn(
        rounds,
        {
            "maskmill": lambda: ours(text, mine, kind, workers),
            "tokenizers": lambda: theirs(text, learnt["tokenizers"], kind),
            "tokenizers, one thread": lambda: theirs(text, learnt["tokenizers"], kind, TOKENIZERS_PARALLELISM="false"),
        },
    )
    print(f"{kind}, {SIZES[kind]:,} pieces, {workers} workers, medians of {rounds}")
    taken = {name: medians(usages) for name, usages in runs.items()}
    for name, usage in taken.items():
        times = f"{ratio(usage.cpu, taken['maskmill'].cpu)} times maskmill's CPU"
        print(usage.row(name), f"{times}, {ratio(usage.wall, taken['maskmill'].wall)} times its time")
    print(start_up.row("maskmill, start-up"))
    if kind == "wordpiece":
        learnt["BERT's own"] = VOCABULARY
    print_cuts((text / "eval.txt").read_text(encoding="utf-8").split("\n"), learnt)


def print_cuts(lines: Sequence[str], vocabularies: Mapping[str, Path]) -> None:
    """Print a table of how vocabularies cut lines. A word is one of BERT's basic tokenizer, whatever the tokenizer."""
    normalizer, splitter = BertNormalizer(lowercase=False), BertPreTokenizer()
    size = sum(len(line.encode()) for line in lines)
    words = sum(len(splitter.pre_tokenize_str(normalizer.normalize_str(line))) for line in lines)
    print(f"held-out text: {size:,} bytes, {words:,} words")
    print("| vocabulary | size | pieces a word | bytes a piece | [UNK] a word |\n|---|---|---|---|---|")
    for name, path in vocabularies.items():
        is_list = path.suffix == ".txt"
        tokenizer = BertWordPieceTokenizer(str(path), lowercase=True) if is_list else Tokenizer.from_file(str(path))
        cut = [piece for line in lines for piece in tokenizer.encode(line, add_special_tokens=False).tokens]
        unknown = sum(piece in UNKNOWN for piece in cut) / words
        shares = f"{len(cut) / words:.4f} | {size / len(cut):.3f} | {unknown:.3%}"
        print(f"| {name} | {tokenizer.get_vocab_size():,} | {shares} |")
    print(flush=True)


def main() -> None:
    """Print the machine, and what each kind of vocabulary takes."""
    parser = parser_of(__doc__, rounds=3, scratch="the vocabularies")
    parser.add_argument("text", type=resolved)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print_machine([*LIBRARIES, "tokenizers"])
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
        folder = Path(scratch)
        shorten(sorted(arguments.text.glob("part-*")), folder / "short")
        for kind in SIZES:
            learn(kind, arguments.text, workers=arguments.workers, rounds=arguments.rounds, folder=folder)


if __name__ == "__main__":
    main()
