"""Examples against the reference's own records, and byte for byte against the oracle on any input."""

import dataclasses
import gzip
import hashlib
import json
import os
import random
import resource
import string
from pathlib import Path
from typing import Any

import hypothesis
import oracle_pretraining as oracle
import pytest
from hypothesis import strategies as st

from transforms.errors import RunFailedError, UnusableInputError
from transforms.masking import instances
from transforms.masking.instances import MaskingOptions
from transforms.records.examples import write_examples
from transforms.tokenization.vocabulary import load_vocabulary

EXAMPLES = int(os.environ.get("MASKMILL_EXAMPLES", "1500"))
GOLD = oracle.DATA / "gold"
VOCABULARY = oracle.DATA / "vocab.txt"
CASES = json.loads((GOLD / "pretraining" / "cases.json").read_text())
DIGESTS = {
    digest["file"]: digest
    for digest in map(json.loads, (GOLD / "pretraining" / "digests.jsonl").read_text().splitlines())
}
SMALL = {"max_seq_length": 16, "max_predictions_per_seq": 3, "dupe_factor": 2}


def unpacked(name: str, directory: Path) -> str:
    source = GOLD / name
    if source.exists():
        return str(source)
    target = directory / source.name
    target.write_bytes(gzip.decompress((GOLD / f"{name}.gz").read_bytes()))
    return str(target)


@pytest.mark.parametrize("name", CASES)
def test_the_reference_records(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    fields = {field.name for field in dataclasses.fields(MaskingOptions)}
    google = case["script"] == "google-research/bert"
    options = MaskingOptions(
        **{k: v for k, v in case.items() if k in fields}, duplicate_pieces="last" if google else "first"
    )
    inputs = [unpacked(path, tmp_path) for path in case["input"]]
    outputs = [str(tmp_path / path) for path in case["outputs"]]
    vocabulary = load_vocabulary(str(VOCABULARY), options.duplicate_pieces)
    _, counts = write_examples(inputs, outputs, vocabulary, options)
    total = 0
    for output in outputs:
        digest = DIGESTS[Path(output).name]
        records = oracle.read_examples(Path(output))
        total += len(records)
        assert (len(records), Path(output).stat().st_size) == (digest["records"], digest["bytes"])
        assert oracle.digest(records) == digest["sha256"]
        gold = GOLD / "pretraining" / f"{Path(output).name}.gz"
        if gold.exists():
            assert records == oracle.read_examples(gold)
    assert counts.examples == total


WORDS = ["the", "The", "fox", "foxes", "unaffable", "x" * 201, "é", "ΣΑΣ", "漢字", "don't", "3.5", "\u302e\u1b44", "—"]


def text_of(rng: random.Random, lines: int) -> bytes:
    """A text of some documents, with white space, awkward characters and odd line ends in it."""
    output = []
    for _ in range(lines):
        kind = rng.random()
        if kind < 0.2:
            output.append(rng.choice(["", "", " ", "\u2028", "\x85"]))
        elif kind < 0.25:
            output.append(
                "".join(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])) for _ in "abcd")
            )
        else:
            words = [rng.choice(WORDS) for _ in range(rng.choice([1, 3, 8, 40]))]
            output.append(rng.choice(["", " "]) + rng.choice([" ", " ", "", "\t"]).join(words))
    ends = [rng.choice(["\n", "\n", "\n", "\r\n", "\n\r"]) for _ in output]
    return (
        "".join(map("".join, zip(output, ends, strict=True))).removesuffix("\n" if rng.random() < 0.3 else "?").encode()
    )


def vocabulary_of(rng: random.Random) -> bytes:
    """Special pieces, single characters, parts of words, pieces on several lines, at random places."""
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for char in {c for word in WORDS for c in word.lower() if rng.random() < 0.9} | set(string.ascii_lowercase):
        pieces += [char, "##" + char]
    for _ in range(rng.randrange(12)):
        word = rng.choice(WORDS)
        start = rng.randrange(len(word))
        pieces.append(rng.choice(["", "##"]) + word[start : start + rng.randint(1, 4)])
    pieces += rng.choices(["", "##", "the", " fox", "##s"], k=rng.randrange(4))
    pieces += [f"filler{n}" for n in range(rng.choice([0, 0, 200, 20_000]) if rng.random() < 0.1 else 0)]
    rng.shuffle(pieces)
    return "\n".join(pieces).encode()


@dataclasses.dataclass(frozen=True)
class Case:
    """All that decides what is written."""

    inputs: list[bytes]
    vocabulary: bytes
    settings: oracle.Settings
    outputs: int


def case_of(seed: int) -> Case:
    rng = random.Random(seed)
    length = rng.choice([5, 6, 7, 8, 11, 16, 20, 33, 64, 128, 200, rng.randint(5, 300)])
    settings = oracle.Settings(
        max_seq_length=length,
        max_predictions_per_seq=rng.choice([1, 2, 5, 20, 300]),
        masked_lm_prob=rng.choice([0.15, 0.15, 0.01, 0.5, 1.0, rng.random() or 1.0]),
        short_seq_prob=rng.choice([0.1, 0.0, 1.0, 0.5]),
        dupe_factor=rng.choice([1, 2, 3]),
        random_seed=rng.choice([12345, 0, -1, 2**40, -(2**70), rng.randrange(2**64)]),
        do_lower_case=rng.random() < 0.8,
        do_whole_word_mask=rng.random() < 0.4,
        unicode=rng.choice(["11.0.0", "15.1.0"]),
        duplicate_pieces=rng.choice(["first", "last"]),
    )
    inputs = [text_of(rng, rng.choice([0, 1, 2, 5, 20, 40])) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    return Case(inputs, vocabulary_of(rng), settings, rng.choice([1, 1, 1, 2, 3]))


def check(case: Case, directory: Path) -> None:
    (directory / "vocab.txt").write_bytes(case.vocabulary)
    for number, content in enumerate(case.inputs):
        (directory / f"text{number}").write_bytes(content)
    inputs = [str(directory / f"text{number}") for number in range(len(case.inputs))]
    outputs = [str(directory / f"out{number}") for number in range(case.outputs)]
    options = MaskingOptions(**dataclasses.asdict(case.settings))  # type: ignore[arg-type]
    vocabulary = load_vocabulary(str(directory / "vocab.txt"), options.duplicate_pieces)
    expected = oracle.make_files(case.inputs, case.vocabulary, case.settings, case.outputs)
    if not any(expected):
        with pytest.raises(UnusableInputError, match="there is no sentence in this text"):
            write_examples(inputs, outputs, vocabulary, options)
        return
    written, counts = write_examples(inputs, outputs, vocabulary, options)
    assert [file.path for file in written] == [path for o in outputs for path in (o, f"{o}.idx")]
    for file in written:
        content = Path(file.path).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    for output, features in zip(outputs, expected, strict=True):
        records = [oracle.encode_tfrecord(oracle.encode_example(record)) for record in features]
        content = Path(output).read_bytes()
        if content != b"".join(records):
            # The first record that differs says more than bytes do.
            assert [oracle.decode_example(r) for r in oracle.split_tfrecord(content)] == features
            raise AssertionError("the same features in other bytes")
        offsets = [sum(map(len, records[:k])) for k in range(len(records))] if len(records) < 50 else None
        lines = [line.split() for line in Path(f"{output}.idx").read_text().splitlines()]
        assert [int(size) for _, size in lines] == [len(record) for record in records]
        if offsets is not None:
            assert [int(offset) for offset, _ in lines] == offsets
    everything = [record for features in expected for record in features]
    assert counts.examples == len(everything)
    assert counts.random_next == sum(record["next_sentence_labels"][0] for record in everything)
    assert counts.masked_positions == sum(map(sum, (record["masked_lm_weights"] for record in everything)))
    assert counts.documents <= counts.sentences <= counts.tokens


@hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="MASKMILL_EXAMPLES" not in os.environ,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # a seed does not shrink
)
@hypothesis.given(seed=st.integers(0, 2**62))
def test_any_text_vocabulary_seed_and_options(seed: int, tmp_path: Path) -> None:
    check(case_of(seed), tmp_path)


@pytest.mark.parametrize(("length", "predictions"), [(8192, 1300), (8191, 20), (16_384, 20), (16_384, 2500)])
def test_long_sequences(length: int, predictions: int, tmp_path: Path) -> None:
    rng = random.Random(length)
    settings = oracle.Settings(
        max_seq_length=length,
        max_predictions_per_seq=predictions,
        masked_lm_prob=0.15,
        short_seq_prob=0.1,
        dupe_factor=1,
        random_seed=1,
    )
    sentence = b"the fox , unaffable don't \xe2\x80\x94 x " * (length // 40) + b"\n"
    check(Case([(sentence * 5 + b"\n") * 3], vocabulary_of(rng), settings, 1), tmp_path)


def test_a_vocabulary_of_more_than_two_million_pieces(tmp_path: Path) -> None:
    # Ids of four bytes; "last" gives the special pieces the largest ones.
    filler = "\n".join(f"{n:x}" for n in range(2**21)).encode()
    vocabulary = filler + b"\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##fox\nfox"
    settings = oracle.Settings(**SMALL, masked_lm_prob=0.5, short_seq_prob=0.1, random_seed=3, duplicate_pieces="last")
    check(Case([b"the fox thefox\nfox 3f ff ffff\n\nthe the\n" * 9], vocabulary, settings, 1), tmp_path)


@pytest.mark.parametrize("whole_words", [False, True])
def test_arrays_that_are_guessed_too_small_grow(
    whole_words: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = []

    def barely_more(size: int) -> int:
        grown.append(size)
        return size + 1

    monkeypatch.setattr(instances, "_more", barely_more)
    monkeypatch.setattr(instances, "_guess", lambda *_: (1, SMALL["max_predictions_per_seq"]))
    settings = oracle.Settings(
        **SMALL, masked_lm_prob=0.15, short_seq_prob=0.5, random_seed=3, do_whole_word_mask=whole_words
    )
    rng = random.Random(1)
    check(Case([text_of(rng, 60)], vocabulary_of(rng), settings, 2), tmp_path)
    assert len(grown) > 10


def test_a_second_write_gives_the_same_bytes(tmp_path: Path) -> None:
    inputs = [unpacked("cleanup/eval.txt", tmp_path)]
    vocabulary = load_vocabulary(str(VOCABULARY))
    hashes = []
    for name in ("a", "b"):
        written, _ = write_examples(inputs, [str(tmp_path / name)], vocabulary, MaskingOptions(dupe_factor=1))
        hashes.append([file.sha256 for file in written])
    assert hashes[0] == hashes[1]


def test_packed_outputs_hold_the_same_records(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(str(VOCABULARY))
    inputs = [unpacked("pretraining/edge.txt", tmp_path)]
    options = MaskingOptions(dupe_factor=1)
    write_examples(inputs, [str(tmp_path / "plain")], vocabulary, options)
    (packed, index), _ = write_examples(inputs, [str(tmp_path / "x.gz")], vocabulary, options, packed=True)
    content = (tmp_path / "x.gz").read_bytes()
    assert gzip.decompress(content) == (tmp_path / "plain").read_bytes()
    assert (packed.size, packed.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert Path(index.path).read_bytes() == (tmp_path / "plain.idx").read_bytes()


def test_indexes_and_checksums_are_made_where_they_are_wanted(tmp_path: Path) -> None:
    inputs = [unpacked("pretraining/edge.txt", tmp_path)]
    written, _ = write_examples(
        inputs,
        [str(tmp_path / "a"), str(tmp_path / "b")],
        load_vocabulary(str(VOCABULARY)),
        MaskingOptions(dupe_factor=1),
        indexes=False,
        checksum=False,
    )
    assert [(file.path, file.sha256) for file in written] == [(str(tmp_path / n), None) for n in "ab"]
    assert not list(tmp_path.glob("*.idx"))


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"max_seq_length": 4}, "max_seq_length 4: an example has 5 to 16,384 pieces "),
    ({"max_seq_length": 16_385}, "max_seq_length 16385: an example has 5 to 16,384 pieces "),
    ({"max_predictions_per_seq": 0}, "max_predictions_per_seq 0: without a masked position "),
    ({"masked_lm_prob": 0.0}, "masked_lm_prob 0.0: this share must be above 0 and at most 1."),
    ({"masked_lm_prob": 1.01}, "masked_lm_prob 1.01: this share"),
    ({"masked_lm_prob": float("nan")}, "masked_lm_prob nan: this share"),
    ({"short_seq_prob": -0.1}, "short_seq_prob -0.1: this share must be from 0 to 1."),
    ({"short_seq_prob": 2}, "short_seq_prob 2: this share"),
    ({"dupe_factor": 0}, "dupe_factor 0: each document must be used at least once"),
    ({"unicode": "12.0.0"}, "unicode 12.0.0: there are no such tables; there are 11.0.0 and 15.1.0."),
    ({"duplicate_pieces": "both"}, "duplicate_pieces both: this is first or last."),
]


@pytest.mark.parametrize(("options", "sentence"), BAD_OPTIONS)
def test_unusable_options_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UnusableInputError) as raised:
        MaskingOptions(**options)
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize("content", [b"", b"\n\n \n", b"\x00\n\x0b", "\u200b\n".encode()])
def test_a_text_without_a_sentence_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(UnusableInputError, match=r"text: there is no sentence in this text, so no example can be made"):
        write_examples(
            [str(tmp_path / "text")], [str(tmp_path / "out")], load_vocabulary(str(VOCABULARY)), MaskingOptions()
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("outputs", [[], ["a", "a"]])
def test_outputs_must_be_distinct(outputs: list[str], tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="The outputs must be one or more files, each named once"):
        write_examples([str(VOCABULARY)], outputs, load_vocabulary(str(VOCABULARY)), MaskingOptions())


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"the fox\nthe foxes\n\n" * 200)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(RunFailedError, match="out: this file cannot be written"):
            write_examples(
                [str(tmp_path / "text")], [str(tmp_path / "out")], load_vocabulary(str(VOCABULARY)), MaskingOptions()
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
