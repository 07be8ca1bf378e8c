"""Second runs over an output directory: other options, changed files, damaged state."""

import contextlib
import functools
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from mistakes.table import Mistake, make_good_inputs
from pipelines.commands import cli

EXTRACT = "extract --input=dump.xml --output=text --num_eval_articles=1"
EXAMPLES = (
    "examples --input=text --output=examples --vocab_file=vocab.txt --max_seq_length=32 --max_predictions_per_seq=5 "
    "--dupe_factor=2"
)
BUILD = "build demo.yaml"
CLAIM = ".maskmill/parameters.json"

Damage = Callable[[Path], object]


@functools.cache
def _outputs() -> Path:
    """A folder with what the three commands make of the good inputs; it is deleted when the process ends."""
    directory = tempfile.TemporaryDirectory(prefix="maskmill-mistakes-")
    _kept.append(directory)
    folder = Path(directory.name)
    make_good_inputs(folder)
    with contextlib.chdir(folder):
        for command in (EXTRACT, EXAMPLES, BUILD):
            assert cli.main(command.split()) == 0
    return folder


_kept: list[object] = []


def made(*damages: Damage) -> Damage:
    """Puts the output of that name there as its command makes it, then damages it."""

    def put(path: Path) -> None:
        shutil.copytree(_outputs() / path.name, path)
        for damage in damages:
            damage(path)

    return put


def write(name: str, content: bytes) -> Damage:
    return lambda output: (_only(output, name)).write_bytes(content)


def change(name: str, how: Callable[[bytes], bytes]) -> Damage:
    return lambda output: _only(output, name).write_bytes(how(_only(output, name).read_bytes()))


def lose(name: str) -> Damage:
    return lambda output: _only(output, name).unlink()


def swap(pattern: str) -> Damage:
    """Copies a file over its neighbour."""

    def damage(output: Path) -> None:
        first, second, *_ = sorted(output.glob(pattern))
        second.write_bytes(first.read_bytes())

    return damage


def lose_folder(name: str) -> Damage:
    return lambda output: shutil.rmtree(output / name)


def file_for_folder(name: str) -> Damage:
    def damage(output: Path) -> None:
        shutil.rmtree(output / name)
        (output / name).write_bytes(b"")

    return damage


def folder_for_file(name: str) -> Damage:
    def damage(output: Path) -> None:
        path = _only(output, name)
        path.unlink()
        path.mkdir()

    return damage


def _only(output: Path, pattern: str) -> Path:
    """The first file that a glob below an output matches, else the file of that name."""
    return next(iter(sorted(output.glob(pattern))), output / pattern)


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    place = random.Random(len(content)).randrange(len(content))
    return content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]


def with_another_word(path: Path) -> None:
    path.write_text(path.read_text() + "anotherword\n")


def yaml_with(old: str, new: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(path.read_text().replace(old, new))


def _refused(name: str, command: str, says: str, **files: bytes | Damage) -> Mistake:
    return Mistake(name, command, says, files={"text": made(), "examples": made()} | files)


def _again(name: str, command: str, says: str, **files: bytes | Damage) -> Mistake:
    """A run that finds damage, makes it good and says so."""
    return Mistake(
        name, command, says, code=0, files={"text": made(), "examples": made()} | files, leaves=("text", "examples")
    )


OTHER_OPTIONS = [
    _refused(
        "text-with-another-seed",
        f"{EXTRACT} --random_seed=7",
        r"made with other parameters \(random_seed=12345, now 7\)",
    ),
    _refused("text-with-another-shard-size", f"{EXTRACT} --shard_size_mb=1", r"\(shard_size_mb=None, now 1.0\)"),
    _refused("examples-with-another-seed", f"{EXAMPLES} --random_seed=7", r"\(random_seed=12345, now 7\)"),
    _refused("examples-of-another-length", f"{EXAMPLES} --max_seq_length=64", r"\(max_seq_length=32, now 64\)"),
    _refused(
        "text-into-examples", EXTRACT.replace("output=text", "output=examples"), "belongs to 'examples'; name another"
    ),
    _refused(
        "examples-into-text", EXAMPLES.replace("output=examples", "output=text"), "belongs to 'extract'; name another"
    ),
    Mistake(
        "build-with-another-seed-of-its-examples",
        BUILD,
        r"build/examples: this directory was made with other parameters \(random_seed=12345, now 7\)",
        files={"build": made(), "demo.yaml": yaml_with("examples:\n", "examples:\n  random_seed: 7\n")},
    ),
    Mistake(
        "build-with-another-eval-set",
        BUILD,
        r"build/text: this directory was made with other parameters \(num_eval_articles=1, now 2\)",
        files={"build": made(), "demo.yaml": yaml_with("num_eval_articles: 1", "num_eval_articles: 2")},
    ),
    Mistake(
        "build-with-other-examples-to-pick",
        BUILD,
        r"build/eval: this directory was made with other parameters \(num_examples_to_pick=2, now 3\)",
        files={"build": made(), "demo.yaml": yaml_with("num_examples_to_pick: 2", "num_examples_to_pick: 3")},
    ),
    Mistake(
        "build-refused-for-its-examples-claims-no-text",
        BUILD,
        r"build/examples: this directory was made with other parameters",
        files={
            "build": made(lose_folder("text")),
            "demo.yaml": yaml_with("examples:\n", "examples:\n  random_seed: 7\n"),
        },
    ),
    Mistake(
        "text-with-other-options-after-a-run-that-failed",
        f"maskmill extract --input=dump.xml --output=text --num_eval_articles=1000; maskmill {EXTRACT}",
        r"--num_eval_articles 1000 is more than",
        code=0,
        shell=True,
        leaves=("text",),
    ),
    Mistake(
        "text-into-a-folder-of-notes",
        EXTRACT,
        r"text: this directory holds other files \(notes.txt, …\); name an empty or a new one",
        files={"text/notes.txt": b"mine"},
    ),
    Mistake(
        "examples-into-a-folder-of-notes",
        f"examples --input={'part-00000-of-00001'} --vocab_file=vocab.txt --output=examples",
        r"examples: this directory holds other files",
        files={"examples/notes.txt": b"mine"},
    ),
    Mistake(
        "text-into-the-folder-of-the-inputs",
        "extract --input=dump.xml --output=.",
        r"\.: this directory holds other files",
    ),
    Mistake(
        "text-below-a-file",
        "extract --input=dump.xml --output=book.txt/text",
        r"book.txt/text.*: this directory cannot be made",
    ),
]

CHANGED_VOCABULARIES = [
    _refused(
        f"examples-of-a-vocabulary-{name}",
        EXAMPLES,
        r"examples: the data of vocab_file \(vocab.txt\) has changed since this directory was made; name another",
        **{"vocab.txt": how},
    )
    for name, how in [("with-another-word", with_another_word)]
] + [
    Mistake(
        "build-of-a-changed-vocabulary",
        BUILD,
        r"build/examples: the data of vocab_file \(vocab.txt\) has changed since this directory was made",
        files={"build": made(), "vocab.txt": with_another_word},
    )
]

_DAMAGED_CLAIMS: dict[str, Damage] = {
    "empty": write(CLAIM, b""),
    "cut": change(CLAIM, cut),
    "flipped": change(CLAIM, flip),
    "no-json": write(CLAIM, b"random_seed = 12345"),
    "a-list": write(CLAIM, b"[]"),
    "an-empty-object": write(CLAIM, b"{}"),
    "no-utf8": write(CLAIM, b'{"stage": "\xff"}'),
    "too-deep": write(CLAIM, b"[" * 100_000),
    "edited": change(CLAIM, lambda content: content.replace(b'"random_seed": 12345', b'"random_seed": 7')),
    "lost": lose(CLAIM),
}
DAMAGED_CLAIMS = [
    *[
        _refused(
            f"another-seed-where-the-claim-is-{name}",
            f"{EXAMPLES} --random_seed=7",
            r"\(random_seed=12345, now 7\)",
            examples=made(damage),
        )
        for name, damage in _DAMAGED_CLAIMS.items()
    ],
    *[
        _again(
            f"the-same-where-the-claim-is-{name}",
            EXAMPLES,
            r"made again .maskmill/parameters.json: it was (damaged|gone) and was made from manifest.json\n",
            examples=made(damage),
        )
        for name, damage in _DAMAGED_CLAIMS.items()
    ],
    *[
        _again(
            f"an-unfinished-build-where-the-claim-is-{name}",
            EXTRACT,
            r"made again .maskmill/parameters.json: it was (damaged|gone)\n",
            text=made(lose("manifest.json"), damage),
        )
        for name, damage in _DAMAGED_CLAIMS.items()
    ],
    _refused(
        "a-folder-for-a-claim",
        EXAMPLES,
        r"parameters.json: this input cannot be read \(it is a directory, where a file is meant\)",
        examples=made(folder_for_file(CLAIM)),
    ),
    _refused("a-file-for-the-work-directory", EXAMPLES, r"\.maskmill", examples=made(file_for_folder(".maskmill"))),
]

_NO_MANIFESTS: dict[str, Damage] = {
    "empty": write("manifest.json", b""),
    "cut": change("manifest.json", cut),
    "a-list": write("manifest.json", b"[]"),
    "no-utf8": write("manifest.json", b'"\xff"'),
    "too-deep": write("manifest.json", b"[" * 100_000),
    "an-apps": write("manifest.json", b'{"name": "App", "start_url": "/"}'),
    "without-shards": change("manifest.json", lambda content: content.replace(b'"shards"', b'"shard"')),
    "without-sizes": change("manifest.json", lambda content: content.replace(b'"bytes"', b'"size"')),
}
DAMAGED_MANIFESTS = [
    _refused(
        f"examples-of-text-whose-manifest-is-{name}",
        EXAMPLES,
        r"text/manifest.json: this is no manifest of maskmill, or it is damaged; run the command that made",
        text=made(damage),
    )
    for name, damage in _NO_MANIFESTS.items()
] + [
    _refused(
        "examples-of-unfinished-text",
        EXAMPLES,
        "text: (this input is a directory|the run into this directory is not finished)",
        text=made(lose("manifest.json")),
    ),
    _refused("examples-of-a-lost-shard", EXAMPLES, r"part-\S*: this input does not exist", text=made(lose("part-*"))),
]

_TEXT_RECORD, _TEXT_TABLE = ".maskmill/extract/*.json", ".maskmill/extract/*.npy"
REPAIRED = [
    *[
        _again(f"text-whose-{name}", EXTRACT, says, text=made(damage))
        for name, says, damage in [
            ("unit-record-is-empty", r"unit 0 \(dump.xml\): its record was damaged", write(_TEXT_RECORD, b"")),
            ("table-is-empty", r"unit 0 \(dump.xml\): its table was damaged", write(_TEXT_TABLE, b"")),
            ("table-is-lost", r"unit 0 \(dump.xml\): its table was gone", lose(_TEXT_TABLE)),
            ("records-are-swapped", r"its record was damaged", swap(".maskmill/text/*.json")),
            ("shard-is-edited", r"part-00000-of-00001: its content had changed", change("part-*", flip)),
            ("shard-is-lost", r"part-00000-of-00001: it was gone", lose("part-*")),
            ("eval-set-is-edited", r"eval.txt: its content had changed", change("eval.txt", flip)),
            ("state-is-lost", r"parameters.json: it was gone and was made from", lose_folder(".maskmill")),
            ("records-are-lost", r"made +1 unit\n", lose_folder(".maskmill/extract")),
        ]
    ],
    *[
        _again(f"examples-whose-{name}", EXAMPLES, says, examples=made(damage))
        for name, says, damage in [
            ("record-is-empty", r"\.tfrecord: its record was damaged", write(".maskmill/examples/*", b"")),
            ("record-is-flipped", r"\.tfrecord: its record was damaged", change(".maskmill/examples/*", flip)),
            ("records-are-swapped", r"\.tfrecord: its record was damaged", swap(".maskmill/examples/*")),
            ("shard-is-edited", r"\.tfrecord: its content had changed", change("part-*.tfrecord", flip)),
            ("shard-is-lost", r"part-00000-of-00001.tfrecord: it was gone", lose("part-*.tfrecord")),
            (
                "index-is-edited",
                r"the content of part-00000-of-00001.tfrecord.idx had changed",
                change("part-*.idx", flip),
            ),
            ("index-is-lost", r"part-00000-of-00001.tfrecord.idx was gone", lose("part-*.idx")),
        ]
    ],
    _again(
        "text-of-a-changed-dump",
        EXTRACT,
        r"changed +dump.xml: it has other content than in the build before",
        **{"dump.xml": lambda path: path.write_bytes(path.read_bytes().replace(b"fruit", b"berry"))},
    ),
]

MISTAKES = [*OTHER_OPTIONS, *CHANGED_VOCABULARIES, *DAMAGED_CLAIMS, *DAMAGED_MANIFESTS, *REPAIRED]
