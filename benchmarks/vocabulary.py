"""Measures `maskmill vocabulary` beside the programs that vocabularies are usually learnt with.

    python -m benchmarks.vocabulary cost TEXT [--workers 2] [--rounds 3] [--tensorflow PYTHON]
    python -m benchmarks.vocabulary growth TEXT [--copies 1,2,4,8] [--new_words]
    python -m benchmarks.vocabulary limit
    python -m benchmarks.vocabulary speed TEXT TOKENIZER.json [--megabytes 20]
    python -m benchmarks.vocabulary languages TEXT... [--size 30528]

TEXT is a folder that `maskmill extract` wrote. --scratch DIR, a new folder, keeps what is made.

`cost` learns BERT's size of WordPiece and RoBERTa's of byte-level BPE, with maskmill and with `tokenizers` on the same
shards, by turns. It prints CPU time, wall time and peak memory of all processes, medians of the rounds, and how the
vocabularies cut the held-out articles, beside BERT's own vocabulary. The start-up of maskmill is what it takes for the
first lines of each shard. With --tensorflow, a Python that has tensorflow-text, its learner runs once, too.

`growth` learns from several copies of the text. With --new_words each copy exchanges Latin letters (a becomes b, …),
so that distinct words grow with the text, and `tokenizers` is measured beside it.

`limit` learns from as many made-up words as a vocabulary is learnt from at most, which have nearly as many bytes as
they may have: the most memory that learning takes.

`speed` encodes the lines of documents with a byte-level BPE, compiled and by `tokenizers` in one thread. The ids must
be equal.

`languages` learns both kinds from each text, and shows how they cut its held-out articles and one of its lines.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import pieces
from benchmarks.measure import LIBRARIES, Usage, measure, print_machine, ratio, shorten
from benchmarks.reference import VOCABULARY
from maskmill.tokenization import line_joints

ROOT = Path(__file__).parent.parent
PEERS = Path(__file__).with_name("peer_vocabularies.py")
SIZES = {"wordpiece": 30522, "bpe": 50265}  # those of BERT's and RoBERTa's own vocabularies
_ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false"}
_EXAMPLE_CHARACTERS = 40
_TURNS = 5


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


def ours(text: Path, output: Path, kind: str, workers: int, flags: Sequence[str]) -> Usage:
    """Runs `maskmill vocabulary` on the training shards of a folder into a new folder."""
    command = [sys.executable, "-m", "maskmill", "vocabulary", f"--input={text}/part-*", f"--output={output}"]
    command += [f"--kind={kind}", f"--workers={workers}", "--quiet", *flags]
    return checked(measure(command, cwd=str(ROOT), env=os.environ | {"PYTHONPATH": str(ROOT)}))


def peer(text: Path, output: Path, library: str, kind: str, python: str, one_thread: bool = False) -> Usage:
    """Learns a vocabulary with another project's program, and writes it to a new file."""
    command = [python, str(PEERS), library, kind, str(SIZES[kind]), str(output), *map(str, training_shards(text))]
    return checked(measure(command, env=os.environ | (_ONE_THREAD if one_thread else {})))


@dataclasses.dataclass(frozen=True)
class Program:
    """What learns a vocabulary from the shards of a folder into a new path, and the file that is then there."""

    name: str
    run: Callable[[Path, Path], Usage]
    vocabulary: str = ""


def programs(kind: str, workers: int) -> list[Program]:
    """maskmill, and `tokenizers` with threads and without."""
    size = f"--size={SIZES[kind]}"
    return [
        Program("maskmill", lambda text, out: ours(text, out, kind, workers, [size]), "tokenizer.json"),
        Program("tokenizers", lambda text, out: peer(text, out, "tokenizers", kind, sys.executable)),
        Program(
            "tokenizers, one thread",
            lambda text, out: peer(text, out, "tokenizers", kind, sys.executable, one_thread=True),
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
    """Prints what each program takes for each kind, and how its vocabulary cuts the held-out articles."""
    short = folder / "short"
    shorten(training_shards(text), short)
    for kind, size in SIZES.items():
        learners = programs(kind, workers)
        mine = learners[0]
        mine.run(short, folder / f"{kind}-compiled")  # compiles the kernels, if they are not yet
        start_up = mine.run(short, folder / f"{kind}-start-up")
        runs: dict[str, list[Usage]] = {}
        learnt: dict[str, Path] = {}
        for number in range(rounds):
            for place, program in enumerate(learners):
                output = folder / f"{kind}-{place}-{number}"
                runs.setdefault(program.name, []).append(program.run(text, output))
                learnt[program.name] = output / program.vocabulary
        print(f"{kind}, {size:,} pieces, {workers} workers, medians of {rounds}")
        print_costs({name: medians(usages) for name, usages in runs.items()}, start_up)
        if kind == "wordpiece":
            learnt["BERT's own"] = VOCABULARY
            if tensorflow:
                learnt["tensorflow-text"] = folder / "tensorflow-text.txt"
                print(peer(text, learnt["tensorflow-text"], "tensorflow-text", kind, tensorflow).row("tensorflow-text"))
        quality(text, learnt)
        print(flush=True)


def print_costs(taken: Mapping[str, Usage], start_up: Usage) -> None:
    """Prints a row for each program, and the first one's share of the others'."""
    (_, mine), *others = taken.items()
    for name, usage in taken.items():
        print(usage.row(name))
    print(start_up.row("maskmill, start-up"))
    for name, other in others:
        shares = [("CPU", mine.cpu, other.cpu), ("wall", mine.wall, other.wall)]
        shares += [("largest process", mine.largest, other.largest)]
        shares += [("largest process above start-up", mine.largest - start_up.largest, other.largest)]
        print(f"of {name}: {', '.join(f'{what} {ratio(one, two, 2)}' for what, one, two in shares)}")


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
    for copy in range(copies):
        table = letters_exchanged(copy if new_words else 0)
        for place, shard in enumerate(shards):
            name = f"part-{copy * len(shards) + place:05}-of-{len(shards) * copies:05}"
            # Shards that are the same bytes are counted once, so each copy gets a line of its own.
            (folder / name).write_bytes(shard.read_bytes().translate(table) + b"%d\n\n" % copy)


def growth(text: Path, *, copies: Sequence[int], new_words: bool, workers: int, folder: Path) -> None:
    """Prints what more and more text takes."""
    for kind, size in SIZES.items():
        print(f"{kind}, {size:,} pieces, {'new words' if new_words else 'the same words'} in each copy")
        for number in copies:
            copied = folder / f"{kind}-{number}"
            copy_text(text, number, new_words, copied)
            megabytes = sum(path.stat().st_size for path in copied.iterdir()) / 1e6
            for place, program in enumerate(programs(kind, workers)[: 2 if new_words else 1]):
                usage = program.run(copied, folder / f"{kind}-{number}-{place}")
                print(f"{megabytes:6.0f} MB {usage.row(program.name)}", flush=True)
            for path in copied.iterdir():
                path.unlink()


def limit(*, workers: int, folder: Path) -> None:
    """Prints what the most words take that a vocabulary is learnt from, each of four syllables."""
    from transforms.vocabularies.merging import MAX_WORD_BYTES, MAX_WORDS

    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprstvz", "aeiou")][:57]
    long = [syllable + ending for syllable, ending in zip(syllables, itertools.cycle(["", "n", "st"]))]
    words = itertools.islice(map("".join, itertools.product(long, repeat=4)), MAX_WORDS)
    lines = iter(lambda: " ".join(itertools.islice(words, 20)), "")
    folder.joinpath("text").mkdir()
    part = folder / "text" / "part-00000-of-00001"
    part.write_text("".join(f"{line}\n" for line in lines))
    print(f"{MAX_WORDS:,} words, {part.stat().st_size - MAX_WORDS:,} of at most {MAX_WORD_BYTES:,} bytes")
    for kind, size in SIZES.items():
        print(ours(part.parent, folder / kind, kind, workers, [f"--size={size}"]).row(kind), flush=True)


def fastest(work: Callable[[], object]) -> float:
    """The least CPU seconds that some work takes."""
    seconds = []
    for _ in range(_TURNS):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def in_running_text(lines: Iterable[str]) -> Iterator[str]:
    """The lines of documents that are not blank, with the space that tokenizers see before them."""
    before = line_joints.NO_LINE
    for line in lines:
        if line:
            both_unspaced = before == line_joints.kind_of(line) == line_joints.UNSPACED
            yield line if before == line_joints.NO_LINE or both_unspaced else f" {line}"
        before = line_joints.kind_of(reversed(line)) if line else line_joints.NO_LINE


def speed(text: Path, tokenizer_file: Path, megabytes: int) -> None:
    """Prints the megabytes a second that byte-level BPE encodes, compiled and by `tokenizers`."""
    from maskmill.tokenization.tokenizers import load_tokenizer

    os.environ.update(_ONE_THREAD)
    content = training_shards(text)[0].read_bytes()[: megabytes * 1_000_000]
    content = content[: content.rindex(b"\n") + 1]
    lines = list(in_running_text(content.decode("utf-8").split("\n")))
    library = pieces.load(tokenizer_file)
    compiled = load_tokenizer(str(tokenizer_file), tokenizer_file.read_bytes()).tokenizer()
    expected = [piece for line in library.encode_batch_fast(lines, add_special_tokens=False) for piece in line.ids]
    if compiled.tokenize_bytes(content, "text").ids.tolist() != expected:
        sys.exit("The ids of the compiled tokenizer are not those of `tokenizers`.")
    ours_seconds = fastest(lambda: compiled.tokenize_bytes(content, "text"))
    their_seconds = fastest(lambda: library.encode_batch_fast(lines, add_special_tokens=False))
    size = len(content) / 1e6
    print(f"{size:.1f} MB, {len(lines):,} lines, {len(expected):,} pieces: the same ids")
    print(f"maskmill    {size / ours_seconds:7.1f} MB/s")
    print(f"tokenizers  {size / their_seconds:7.1f} MB/s, encode_batch_fast in one thread")
    print(f"{ratio(their_seconds, ours_seconds)} times as fast")


def quality(text: Path, vocabularies: Mapping[str, Path]) -> None:
    """Prints a table of how vocabularies cut the held-out articles."""
    lines = pieces.held_out_lines(text)
    cuts = [pieces.cut(name, pieces.load(path), lines) for name, path in vocabularies.items()]
    print(f"held-out text: {cuts[0].bytes:,} bytes, {cuts[0].words:,} words\n{pieces.table(cuts)}")


def languages(texts: Sequence[Path], *, workers: int, size: int, folder: Path) -> None:
    """Prints how vocabularies of both kinds cut the held-out articles of each text, and a line as pieces."""
    for text in texts:
        lines = pieces.held_out_lines(text)
        line = next(line for line in lines if len(line) >= _EXAMPLE_CHARACTERS)
        cuts, shown = [], []
        for kind, flags in (("wordpiece", ["--nodo_lower_case"]), ("bpe", [])):
            output = folder / f"{text.name}-{kind}"
            ours(text, output, kind, workers, [f"--size={size}", *flags])
            tokenizer = pieces.load(output / "tokenizer.json")
            encoded = tokenizer.encode(line, add_special_tokens=False)
            cuts.append(pieces.cut(kind, tokenizer, lines))
            # Pieces of bytes are shown as the characters that they are part of.
            tokens = encoded.tokens if kind == "wordpiece" else [line[slice(*place)] for place in encoded.offsets]
            shown += [f"{kind}: {'|'.join(tokens)}", f"{kind}, decoded: {tokenizer.decode(encoded.ids)}"]
        print(f"{text.name}: held-out text of {cuts[0].bytes:,} bytes, {cuts[0].words:,} words\n{pieces.table(cuts)}")
        print(f"text: {line}", *shown, sep="\n", end="\n\n", flush=True)


def parse_arguments() -> argparse.Namespace:
    """The arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    added = {name: commands.add_parser(name) for name in ("cost", "growth", "limit", "speed", "languages")}
    for name, command in added.items():
        if name != "limit":
            of_many = "+" if name == "languages" else None
            command.add_argument("text", type=lambda path: Path(path).resolve(), nargs=of_many)
        if name != "speed":
            command.add_argument("--workers", type=int, default=2)
            command.add_argument("--scratch", help="a new folder that keeps what is made")
    added["cost"].add_argument("--rounds", type=int, default=3)
    added["cost"].add_argument("--tensorflow", help="a Python that has tensorflow-text")
    added["growth"].add_argument("--copies", default="1,2,4,8")
    added["growth"].add_argument("--new_words", action="store_true")
    added["speed"].add_argument("tokenizer_file", type=Path)
    added["speed"].add_argument("--megabytes", type=int, default=20)
    added["languages"].add_argument("--size", type=int, default=30528)
    return parser.parse_args()


@contextlib.contextmanager
def scratch_folder(kept: str | None) -> Iterator[Path]:
    """A new folder that stays, or one that is deleted at the end."""
    if kept:
        Path(kept).mkdir(parents=True)
        yield Path(kept).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> None:
    """Prints the machine, and what the command measures."""
    chosen = parse_arguments()
    print_machine([*LIBRARIES, "tokenizers"])
    if chosen.command == "speed":
        speed(chosen.text, chosen.tokenizer_file, chosen.megabytes)
        return
    with scratch_folder(chosen.scratch) as folder:
        local = {"workers": chosen.workers, "folder": folder}
        if chosen.command == "cost":
            cost(chosen.text, rounds=chosen.rounds, tensorflow=chosen.tensorflow, **local)
        elif chosen.command == "limit":
            limit(**local)
        elif chosen.command == "growth":
            copies = [int(number) for number in chosen.copies.split(",")]
            growth(chosen.text, copies=copies, new_words=chosen.new_words, **local)
        else:
            languages(chosen.text, size=chosen.size, **local)


if __name__ == "__main__":
    main()
