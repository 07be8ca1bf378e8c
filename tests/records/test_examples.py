"""Examples against the reference's own records, and byte for byte against the oracle on any input."""

import hashlib
import itertools
import random
from pathlib import Path

import pytest
from data_sets.full_disk import full_disk
from data_sets.gold_examples import CASES, DIGESTS, GOLD, VOCABULARY, options_of_case, unpacked
from hypothesis import given
from hypothesis import strategies as st
from made_up.texts import Case, case_of, options_of, vocabulary_of
from oracles import pretraining as oracle
from properties import SEEDED, tries

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.masking.options import MaskingOptions
from maskmill.records.examples import write_examples
from maskmill.tokenization.vocabulary import load_vocabulary

SMALL = {"max_seq_length": 16, "max_predictions_per_seq": 3, "dupe_factor": 2}


@pytest.mark.parametrize("name", CASES)
def test_the_reference_records(name: str, tmp_path: Path) -> None:
    options = options_of_case(name)
    inputs = [unpacked(path, tmp_path) for path in CASES[name]["input"]]
    outputs = [str(tmp_path / path) for path in CASES[name]["outputs"]]
    vocabulary = load_vocabulary(VOCABULARY, options.duplicate_pieces)
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


def check_file(path: str, features: list[oracle.Features]) -> None:
    """A TFRecord and its index hold these examples, byte for byte as the oracle writes them."""
    records = [oracle.encode_tfrecord(oracle.encode_example(example)) for example in features]
    content = Path(path).read_bytes()
    if content != b"".join(records):
        # The first record that differs says more than bytes do.
        assert [oracle.decode_example(r) for r in oracle.split_tfrecord(content)] == features
        raise AssertionError("the same features in other bytes")
    sizes = [len(record) for record in records]
    offsets = itertools.accumulate(sizes, initial=0)
    expected = "".join(f"{offset} {size}\n" for offset, size in zip(offsets, sizes, strict=False))
    assert Path(f"{path}.idx").read_text() == expected


def check(case: Case, directory: Path) -> None:
    """Writes a case's examples and holds files and counts against the oracle."""
    (directory / "vocab.txt").write_bytes(case.vocabulary)
    for number, content in enumerate(case.inputs):
        (directory / f"text{number}").write_bytes(content)
    inputs = [str(directory / f"text{number}") for number in range(len(case.inputs))]
    outputs = [str(directory / f"out{number}") for number in range(case.outputs)]
    options = options_of(case.settings)
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
        check_file(output, features)
    everything = [record for features in expected for record in features]
    assert counts.examples == len(everything)
    assert counts.random_next == sum(record["next_sentence_labels"][0] for record in everything)
    assert counts.masked_positions == sum(map(sum, (record["masked_lm_weights"] for record in everything)))
    assert counts.documents <= counts.sentences <= counts.tokens


@tries(60, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_any_text_vocabulary_seed_and_options(seed: int, tmp_path: Path) -> None:
    check(case_of(seed), tmp_path)


@pytest.mark.builds
@pytest.mark.long
@tries(1000, **SEEDED)
@given(seed=st.integers(0, 2**62))
def test_many_texts_vocabularies_seeds_and_options(seed: int, tmp_path: Path) -> None:
    check(case_of(seed), tmp_path)


@pytest.mark.builds
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
    # Ids of four bytes: "last" numbers lines, blank ones too, and gives the special pieces the largest numbers.
    filler = "\n".join(f"{n:x}" for n in range(2**12)).encode() + b"\n" * 2**21
    vocabulary = filler + b"\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##fox\nfox"
    settings = oracle.Settings(**SMALL, masked_lm_prob=0.5, short_seq_prob=0.1, random_seed=3, duplicate_pieces="last")
    check(Case([b"the fox thefox\nfox 3f ff ffff\n\nthe the\n" * 9], vocabulary, settings, 1), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n\n \n", b"\x00\n\x0b", "\u200b\n".encode()])
def test_a_text_without_a_sentence_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(UnusableInputError, match=r"text: there is no sentence in this text, so no example can be made"):
        write_examples([str(tmp_path / "text")], [str(tmp_path / "out")], load_vocabulary(VOCABULARY), MaskingOptions())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("outputs", [[], ["a", "a"]])
def test_outputs_must_be_distinct(outputs: list[str], tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="The outputs must be one or more files, each named once"):
        write_examples([VOCABULARY], outputs, load_vocabulary(VOCABULARY), MaskingOptions())


def test_a_vocabulary_that_was_read_by_another_rule_is_refused(tmp_path: Path) -> None:
    vocabulary = load_vocabulary(VOCABULARY, "first")
    with pytest.raises(ValueError, match="another rule for duplicate pieces"):
        write_examples([VOCABULARY], [str(tmp_path / "out")], vocabulary, MaskingOptions())


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"the fox\nthe foxes\n\n" * 200)
    with full_disk(100_000), pytest.raises(RunFailedError, match="out: this file cannot be written"):
        write_examples([str(tmp_path / "text")], [str(tmp_path / "out")], load_vocabulary(VOCABULARY), MaskingOptions())
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
