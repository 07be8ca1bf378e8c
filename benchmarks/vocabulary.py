"""Measures `maskmill vocabulary` beside the programs that vocabularies are usually learnt with.

    python -m benchmarks.vocabulary cost TEXT [--workers 2] [--rounds 3] [--tensorflow PYTHON] [--keep DIR]
    python -m benchmarks.vocabulary growth TEXT [--copies 1,2,4,8] [--new_words] [--scratch DIR]
    python -m benchmarks.vocabulary speed TEXT TOKENIZER.json [--megabytes 20]
    python -m benchmarks.vocabulary quality TEXT VOCABULARY...

TEXT is a folder that `maskmill extract` wrote.

`cost` learns BERT's size of WordPiece and RoBERTa's of byte-level BPE, with maskmill and with `tokenizers` on the same
shards, by turns. It prints CPU time, wall time and peak memory of all processes, the median of the rounds, and then
what `quality` prints. The start-up of a command is what it takes for the first lines of each shard. With --tensorflow,
a Python that has tensorflow-text, its learner runs once, too. --keep keeps the vocabularies.

`growth` learns from 1, 2, 4 and 8 copies of the text: linear in time, and with flat memory where words are counted.
With --new_words each copy writes its Latin letters as others do (a becomes b, …), so that the number of distinct words
grows with the text, and `tokenizers` is measured beside it.

`speed` encodes lines with a byte-level BPE, compiled and by `tokenizers` in one thread, and checks that the ids are
equal.

`quality` encodes the held-out articles of TEXT with vocabularies (vocab.txt or tokenizer.json): pieces a word, where a
word is BERT's basic tokenizer's, whole words, unknown pieces, bytes a piece, and the end of the first line as pieces.
"""

import argparse
import dataclasses
import os
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import BertWordPieceTokenizer, Tokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from benchmarks.measure import LIBRARIES, Usage, measure, print_machine, ratio, shorten
from benchmarks.reference import VOCABULARY

ROOT = Path(__file__).parent.parent
PEERS = Path(__file__).with_name("peer_vocabularies.py")
SIZES = {"wordpiece": 30522, "bpe": 50265}  # those of BERT's and RoBERTa's own vocabularies
FILES = {"wordpiece": "vocab.txt", "bpe": "tokenizer.json"}
MIN_FREQUENCY = 2
_ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false"}


def training_shards(text: Path) -> list[Path]:
    """The shards of a text folder that vocabularies are learnt from."""
    shards = sorted(text.glob("part-*"))
    if not shards:
        sys.exit(f"{text} is no folder of text shards; give the --output of `maskmill extract`.")
    return shards


def checked(usage: Usage) -> Usage:
    """What a command took; ends the benchmark if the command failed."""
    if usage.exit_code:
        sys.exit(f"a command ended with exit code {usage.exit_code}:\n{usage.output[-2000:]}")
    return usage


def ours(kind: str, text: Path, output: Path, workers: int, size: int | None = None) -> Usage:
    """Runs `maskmill vocabulary` on the shards of a folder into a new folder."""
    command = [sys.executable, "-m", "maskmill", "vocabulary", f"--input={text}/part-*", f"--output={output}"]
    flags = [f"--kind={kind}", f"--size={size or SIZES[kind]}", f"--min_frequency={MIN_FREQUENCY}"]
    local = [f"--workers={workers}", "--quiet"]
    return checked(measure([*command, *flags, *local], cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)}))


def peers(library: str, kind: str, text: Path, output: Path, *, python: str, one_thread: bool = False) -> Usage:
    """Learns a vocabulary with another project's program, and writes it to a file."""
    command = [python, str(PEERS), library, kind, str(SIZES[kind]), str(output), *map(str, training_shards(text))]
    return checked(measure(command, env=os.environ | (_ONE_THREAD if one_thread else {})))


@dataclasses.dataclass(frozen=True)
class Program:
    """Something that learns a vocabulary from the shards of a folder into a new path, and the file that it writes."""

    name: str
    run: Callable[[Path, Path], Usage]
    vocabulary: str = ""

    def learnt(self, output: Path) -> Path:
        """The vocabulary that was written to `output`."""
        return output / self.vocabulary if self.vocabulary else output


def programs(kind: str, workers: int) -> list[Program]:
    """maskmill, and `tokenizers` with threads and without."""
    here = sys.executable
    return [
        Program(f"maskmill, {workers} workers", lambda text, out: ours(kind, text, out, workers), FILES[kind]),
        Program("tokenizers", lambda text, out: peers("tokenizers", kind, text, out, python=here)),
        Program(
            "tokenizers, one thread",
            lambda text, out: peers("tokenizers", kind, text, out, python=here, one_thread=True),
        ),
    ]


def medians(usages: Sequence[Usage]) -> Usage:
    """The median CPU and wall time of some runs, and their highest memory."""
    return dataclasses.replace(
        usages[0],
        cpu=statistics.median(usage.cpu for usage in usages),
        wall=statistics.median(usage.wall for usage in usages),
        largest=max(usage.largest for usage in usages),
        total=max(usage.total for usage in usages),
    )


def cost(text: Path, *, workers: int, rounds: int, tensorflow: str | None, folder: Path) -> None:
    """Prints what each program takes for each kind, and how good its vocabulary is."""
    short = folder / "short"
    shorten(training_shards(text), short)
    for kind, size in SIZES.items():
        runs: dict[str, list[Usage]] = {}
        learners = programs(kind, workers)
        learners[0].run(short, folder / f"{kind}-compiled")  # compiles the kernels, if they are not yet
        for number in range(rounds):
            for program in learners:
                runs.setdefault(program.name, []).append(program.run(text, output_of(folder, kind, program, number)))
        start_up = learners[0].run(short, folder / f"{kind}-start-up")
        print(f"{kind}, {size:,} pieces")
        taken = {name: medians(usages) for name, usages in runs.items()}
        for name, usage in taken.items():
            print(f"  {usage.row(name)}")
        print(f"  {start_up.row('maskmill, start-up')}")
        mine, *others = taken.values()
        for name, other in zip(list(taken)[1:], others, strict=True):
            print(
                f"  maskmill / {name}: CPU {ratio(mine.cpu, other.cpu, 2)}, wall {ratio(mine.wall, other.wall, 2)}, "
                f"largest process {ratio(mine.largest, other.largest, 2)}, "
                f"above its start-up {ratio(mine.largest - start_up.largest, other.largest, 2)}"
            )
        learnt = [program.learnt(output_of(folder, kind, program, 0)) for program in learners[:2]]
        if kind == "wordpiece":
            learnt.append(VOCABULARY)
            if tensorflow:
                pieces = folder / "tensorflow-text.txt"
                usage = peers("tensorflow-text", kind, text, pieces, python=tensorflow)
                print(f"  {usage.row('tensorflow-text')}")
                learnt.append(pieces)
        quality(text, learnt)
        print(flush=True)


def output_of(folder: Path, kind: str, program: Program, number: int) -> Path:
    """Where a program writes in one of the rounds."""
    return folder / f"{kind}-{program.name.replace(', ', '-').replace(' ', '-')}-{number}"


def letters_exchanged(by: int) -> bytes:
    """A table for bytes.translate that exchanges each Latin letter for the one `by` places further in the alphabet."""
    table = bytearray(range(256))
    for letters in (string.ascii_lowercase.encode(), string.ascii_uppercase.encode()):
        for place, letter in enumerate(letters):
            table[letter] = letters[(place + by) % len(letters)]
    return bytes(table)


def copy_text(text: Path, copies: int, new_words: bool, folder: Path) -> None:
    """Writes copies of all training shards into a new folder."""
    folder.mkdir()
    shards = training_shards(text)
    of = len(shards) * copies
    for copy in range(copies):
        table = letters_exchanged(copy if new_words else 0)
        for place, shard in enumerate(shards):
            path = folder / f"part-{copy * len(shards) + place:05}-of-{of:05}"
            path.write_bytes(shard.read_bytes().translate(table))


def growth(text: Path, *, copies: Sequence[int], new_words: bool, workers: int, folder: Path) -> None:
    """Prints what more and more text takes."""
    for kind in SIZES:
        print(f"{kind}, {'new words in each copy' if new_words else 'the same words in each copy'}")
        for number in copies:
            copied = folder / f"{kind}-{number}"
            copy_text(text, number, new_words, copied)
            megabytes = sum(path.stat().st_size for path in copied.iterdir()) / 1e6
            for program in programs(kind, workers)[: 2 if new_words else 1]:
                usage = program.run(copied, output_of(folder, f"{kind}-{number}", program, 0))
                print(f"  {megabytes:6.0f} MB {usage.row(program.name)}", flush=True)
            for path in copied.iterdir():
                path.unlink()


def speed(text: Path, tokenizer_file: Path, megabytes: int) -> None:
    """Prints the megabytes a second that byte-level BPE encodes, compiled and by `tokenizers`."""
    from transforms.tokenization.tokenizers import load_tokenizer

    shard = training_shards(text)[0].read_bytes()[: megabytes * 1_000_000]
    shard = shard[: shard.rindex(b"\n") + 1]
    lines = [line for line in shard.decode("utf-8").split("\n") if line]
    library = Tokenizer.from_file(str(tokenizer_file))
    compiled = load_tokenizer(str(tokenizer_file), tokenizer_file.read_bytes()).tokenizer()
    compiled.tokenize_bytes(shard[:1000], "text")

    def fastest(work: Callable[[], object]) -> float:
        seconds = []
        for _ in range(5):
            began = time.process_time()
            work()
            seconds.append(time.process_time() - began)
        return min(seconds)

    def expected() -> list[int]:
        encoded = library.encode_batch_fast(lines, add_special_tokens=False)
        return [piece for line in encoded for piece in line.ids]

    if compiled.tokenize_bytes(shard, "text").ids.tolist() != expected():
        sys.exit("The ids of the compiled tokenizer are not those of `tokenizers`.")
    size = len(shard) / 1e6
    ours_seconds = fastest(lambda: compiled.tokenize_bytes(shard, "text"))
    their_seconds = fastest(lambda: library.encode_batch_fast(lines, add_special_tokens=False))
    print(f"{size:.1f} MB, {len(lines):,} lines: the same ids")
    print(f"  maskmill    {size / ours_seconds:7.1f} MB/s")
    print(f"  tokenizers  {size / their_seconds:7.1f} MB/s, encode_batch_fast in one thread")
    print(f"  {ratio(their_seconds, ours_seconds)} times as fast")


def words_of(line: str, lower: bool) -> int:
    """How many words BERT's basic tokenizer finds in a line."""
    normalised = BertNormalizer(lowercase=lower, strip_accents=lower).normalize_str(line)
    return len(BertPreTokenizer().pre_tokenize_str(normalised))


def quality(text: Path, vocabularies: Sequence[Path]) -> None:
    """Prints a row for each vocabulary: how it cuts the held-out articles into pieces."""
    lines = [line for line in (text / "eval.txt").read_text(encoding="utf-8").split("\n") if line]
    size = sum(len(line.encode()) for line in lines)
    words = sum(words_of(line, lower=True) for line in lines)
    print(f"  held-out text: {size:,} bytes, {words:,} words")
    print("  | vocabulary | size | pieces | pieces a word | [UNK] | bytes a piece |\n  |---|---|---|---|---|---|")
    for path in vocabularies:
        tokenizer = (
            BertWordPieceTokenizer(str(path), lowercase=True)
            if path.suffix == ".txt"
            else Tokenizer.from_file(str(path))
        )
        encoded = [tokenizer.encode(line, add_special_tokens=False) for line in lines]
        pieces = sum(len(line.ids) for line in encoded)
        unknown = sum(line.tokens.count("[UNK]") for line in encoded)
        name = path.parent.name + "/" + path.name if path.parent != path.parent.parent else path.name
        figures = [f"{tokenizer.get_vocab_size():,}", f"{pieces:,}", f"{pieces / words:.4f}"]
        figures += [f"{unknown / pieces:.3%}", f"{size / pieces:.3f}"]
        print(f"  | {name} | {' | '.join(figures)} |")


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("cost", "growth", "speed", "quality"):
        command = commands.add_parser(name)
        command.add_argument("text", type=lambda path: Path(path).resolve())
        if name in ("cost", "growth"):
            command.add_argument("--workers", type=int, default=2)
            command.add_argument("--scratch", default=None)
        if name == "cost":
            command.add_argument("--rounds", type=int, default=3)
            command.add_argument("--tensorflow", help="a Python that has tensorflow-text")
            command.add_argument("--keep", help="a new folder for the vocabularies")
        elif name == "growth":
            command.add_argument(
                "--copies", type=lambda value: [int(n) for n in value.split(",")], default=[1, 2, 4, 8]
            )
            command.add_argument("--new_words", action="store_true")
        elif name == "speed":
            command.add_argument("tokenizer_file", type=Path)
            command.add_argument("--megabytes", type=int, default=20)
        else:
            command.add_argument("vocabularies", type=Path, nargs="+")
    return parser.parse_args()


def main() -> None:
    """Prints the machine, and what the command measures."""
    arguments = parse_arguments()
    os.environ.update(_ONE_THREAD if arguments.command == "speed" else {})
    print_machine([*LIBRARIES, "tokenizers"])
    if arguments.command == "speed":
        speed(arguments.text, arguments.tokenizer_file, arguments.megabytes)
    elif arguments.command == "quality":
        quality(arguments.text, arguments.vocabularies)
    else:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            folder = Path(scratch)
            if arguments.command == "growth":
                growth(
                    arguments.text,
                    copies=[int(number) for number in arguments.copies.split(",")],
                    new_words=arguments.new_words,
                    workers=arguments.workers,
                    folder=folder,
                )
                return
            if arguments.keep:
                folder = Path(arguments.keep).resolve()
                folder.mkdir(parents=True)
            cost(
                arguments.text,
                workers=arguments.workers,
                rounds=arguments.rounds,
                tensorflow=arguments.tensorflow,
                folder=folder,
            )


if __name__ == "__main__":
    main()
