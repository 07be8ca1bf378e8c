"""`maskmill verify` finds nothing in good data sets: of maskmill's, whatever their options, and of the reference."""

import gzip
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from damaged_copies import serious
from data_sets.gold_examples import CASES, GOLD, VOCABULARY, unpacked
from data_sets.whole_builds import extract_text, make_build, make_examples
from made_up.trained_tokenizers import trained

from maskmill.storage.manifest import MANIFEST
from maskmill.verification.findings import Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.verifying import verify
from pipelines.commands import cli

# The first is in `make test`.
BUILDS: Mapping[str, Mapping[str, Any]] = {
    "pairs": {"picked": 40},
    "pairs_of_the_defaults": {"max_seq_length": 128, "max_predictions_per_seq": 20, "dupe_factor": 10, "picked": 300},
    "long_pairs": {"max_seq_length": 512, "max_predictions_per_seq": 76, "dupe_factor": 3},
    "shortest_pairs": {"max_seq_length": 5, "max_predictions_per_seq": 1, "dupe_factor": 1, "format": "mds"},
    "pairs_that_are_all_short": {"short_seq_prob": 1.0, "format": "parquet"},
    "pairs_that_are_never_short": {"short_seq_prob": 0.0},
    "pairs_with_few_predictions": {"masked_lm_prob": 0.5, "max_predictions_per_seq": 3},
    "pairs_with_many_predictions": {"masked_lm_prob": 1.0, "max_predictions_per_seq": 64},
    "whole_words": {"do_whole_word_mask": True, "format": "parquet"},
    "words": {"mask_unit": "word", "format": "mds"},
    "strict_labels": {"strict_labels": True, "dupe_factor": 4},
    "only_mask_pieces": {"mask_share": 1.0, "random_share": 0.0, "keep_share": 0.0},
    "many_random_pieces": {"mask_share": 0.25, "random_share": 0.5, "keep_share": 0.25, "format": "parquet"},
    "cased": {"do_lower_case": False},
    "another_seed": {"random_seed": 0},
    "names_of_tensorflow_models": {"feature_names": "v2", "special_tokens_mask": True, "picked": 10},
    "gzip": {"packed": True},
    "mlperf": {"compat": "mlperf", "picked": 10},
    "google": {"compat": "google", "do_whole_word_mask": True},
    "sentence_order_with_ngrams": {"objective": "sop", "mask_unit": "ngram", "format": "parquet"},
    "full_sentences": {"objective": "mlm", "dupe_factor": 5},
    "full_sentences_of_a_document": {"objective": "mlm", "cross_documents": False, "format": "mds"},
    "filled_sequences_with_spans": {"objective": "mlm", "full_sentences": False, "mask_unit": "span"},
    "blocks": {"objective": "blocks", "format": "parquet"},
    "blocks_with_separators": {"objective": "blocks", "block_separators": "sep", "block_remainder": "drop"},
    "blocks_of_the_recipe": {"objective": "blocks", "block_separators": "recipe", "format": "mds"},
    "packed_pairs": {"pack": True, "short_seq_prob": 0.5},
    "packed_sequences": {"objective": "mlm", "pack": True, "cross_documents": False, "format": "mds"},
    "packed_order": {"objective": "sop", "pack": True, "short_seq_prob": 0.4, "format": "parquet"},
    "bins": {"objective": "mlm", "cross_documents": False, "bins": 8, "format": "parquet"},
    "bins_of_pairs": {"bins": 4, "short_seq_prob": 0.6},
    "bins_of_mds": {"bins": 3, "short_seq_prob": 0.6, "format": "mds"},
    "drawn_masks": {"objective": "mlm", "dynamic_masking": True},
    "drawn_masks_of_words": {"dynamic_masking": True, "mask_unit": "whole_word", "format": "parquet"},
    "drawn_masks_packed": {"objective": "mlm", "dynamic_masking": True, "pack": True, "format": "mds"},
    "drawn_masks_in_bins": {"objective": "sop", "dynamic_masking": True, "bins": 3, "format": "parquet"},
    "another_tokenizer": {"objective": "mlm", "mask_unit": "word", "tokenizer_file": "", "format": "parquet"},
    "another_tokenizer_with_drawn_masks": {
        "objective": "mlm",
        "mask_unit": "whole_word",
        "dynamic_masking": True,
        "tokenizer_file": "",
    },
}
_QUICK = ("pairs",)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text shards of real pages."""
    return extract_text(tmp_path_factory.mktemp("wiki") / "text", documents=24, eval_articles=4, shard_mb=0.1)


def problems(verification: Verification) -> list[str]:
    """What is more than a note."""
    return [finding.message for finding in serious(verification)]


def options_of(name: str, folder: Path) -> dict[str, Any]:
    """The options of a build; a tokenizer is trained where one is asked for."""
    options = dict(BUILDS[name])
    if "tokenizer_file" in options:
        (folder / "tokenizer.json").write_text(trained("bpe" if "dynamic_masking" in options else "unigram"))
        options["tokenizer_file"] = str(folder / "tokenizer.json")
    return options


@pytest.mark.exhaustive_but(
    *("pairs", "long_pairs", "shortest_pairs", "whole_words", "names_of_tensorflow_models", "gzip", "mlperf", "google"),
    *("sentence_order_with_ngrams", "full_sentences", "filled_sequences_with_spans", "blocks_of_the_recipe"),
    *("packed_sequences", "bins_of_mds", "drawn_masks", "another_tokenizer"),
)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long if n in _QUICK else pytest.mark.builds]) for n in BUILDS]
)
def test_nothing_is_found_in_a_good_build(name: str, text: Path, tmp_path: Path) -> None:
    root = make_build(tmp_path / "build", text, **options_of(name, tmp_path)).root
    whole = verify([str(root)])
    assert problems(whole) == []
    assert {outcome.check for outcome in whole.outcomes.values() if outcome.looked_at} >= {"sha256", "ids", "seed"}
    assert problems(verify([str(root)], VerifyOptions(shards="0-1,3"))) == []
    moved = root.rename(tmp_path / "moved")
    assert problems(verify([str(moved)])) == []
    shutil.rmtree(moved / "text")
    alone = verify([str(moved / "examples")])
    assert problems(alone) == []
    assert alone.outcomes["seed"].skipped


def _villages(place: int) -> str:
    """Pages as bots write them: the same sentences with other names and numbers."""
    names = [f"{start}{end}" for start in ("Dol", "Brod", "Gor", "Lip", "Zabr") for end in ("nica", "je", "ovo", "eg")]
    return "".join(
        f"{names[n % 20]} {n // 20 + 40 * place} is a village in the district of {names[n * 7 % 20]} .\n"
        f"In 20{n % 23:02} it had {n * 37 % 3001} inhabitants .\n"
        f"It lies {n * 13 % 97} km from {names[n * 3 % 20]} , in the historical region of Lower Styria .\n\n"
        for n in range(400)
    )


def _of_eight(sentences: str) -> list[str]:
    """Three shards of 40 documents, each of eight times the same sentences with other numbers."""
    return [
        "".join(
            sentences.format(n=n, k=k, product=n * k, place=place) + "\n" * (k == 7)
            for n in range(40)
            for k in range(8)
        )
        for place in range(3)
    ]


def _with_number(text: str) -> list[str]:
    """Three shards that differ in a number."""
    return [text.replace("#", str(place)) for place in range(3)]


TEXTS: Mapping[str, Sequence[str]] = {
    "a_document_a_shard": [
        "".join(f"Town {n} of {place} lies on a river. It has a bridge.\n" for n in range(30)) + "\n"
        for place in range(3)
    ],
    "the_same_document_again_and_again": _with_number("The town # lies on a river.\nIt has # bridges.\nOld.\n\n" * 50),
    "one_line_a_document": [
        "".join(f"{n} is a number of shard {place} .\n\n" for n in range(400)) for place in range(3)
    ],
    "pages_of_a_bot": [_villages(place) for place in range(3)],
    "shards_of_other_sizes": [
        "The town lies on a river.\nIt has a bridge.\n\n" * 300,
        "It is.\n\n",
        "A road.\nA sea.\n\n",
    ],
    "lines_that_end_alike": _of_eight("Town {n} of {place} has {k} roads and so it is said by all .\n"),
    "lines_that_begin_with_a_file": _of_eight(".bashrc of {n} and {place} names the town {k} .\n"),
    "psalms": _of_eight("He made {product} of {place} ,\nfor his mercy endureth for ever .\n"),
    "one_word": ["river\n\n", "sea\n\n", "road\n\n"],
    "one_line_of_many_words": ["word " * 30_000 + "\n\n", "a b c\nd e f\n\n", "river\nsea\n\n"],
}


@pytest.mark.exhaustive_but(*(f"{name}-nsp" for name in TEXTS), "pages_of_a_bot-mlm", "one_word-mlm")
@pytest.mark.builds
@pytest.mark.parametrize("options", [{}, {"objective": "mlm", "format": "parquet"}], ids=["nsp", "mlm"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_that_repeats_itself_is_no_fault(name: str, options: Mapping[str, Any], tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    shards = {f"part-{n:05}-of-00003": content for n, content in enumerate(TEXTS[name])}
    for shard, content in {**shards, "eval.txt": "Nothing of this is in the text.\nIt is held out.\n\n"}.items():
        (tmp_path / "text" / shard).write_text(content)
    made = make_examples(tmp_path, **options)
    assert problems(verify([str(made.root / "examples")])) == []


@pytest.mark.builds
def test_nothing_is_found_in_what_the_command_builds(tmp_path: Path) -> None:
    settings = tmp_path / "build.yaml"
    settings.write_text((Path(__file__).parents[2] / "examples" / "demo.yaml").read_text())
    output = tmp_path / "demo"
    assert cli.main(["build", str(settings), f"--output={output}", "--report=off", "--quiet"]) == cli.DONE
    assert problems(verify([str(output)])) == []
    for part in ("text", "examples", "eval"):
        assert problems(verify([str(output / part)])) == []
    shards = sorted(str(path) for path in (output / "examples").glob("part-*.tfrecord"))
    assert problems(verify(shards[:2])) == []
    assert problems(verify([str(output / "text" / "eval.txt")])) == []


@pytest.mark.builds
def test_nothing_is_found_in_mlperfs_text(tmp_path: Path) -> None:
    for name in ("part-00000-of-00500", "part-00001-of-00500", "eval.txt"):
        (tmp_path / name).write_bytes(gzip.decompress((GOLD / "cleanup" / f"{name}.gz").read_bytes()))
    shutil.copyfile(GOLD / "cleanup" / "eval.md5", tmp_path / "eval.md5")
    verification = verify([str(tmp_path)])
    assert problems(verification) == []
    # The reference's known faults are named: empty articles can be drawn into its eval set.
    assert any(finding.severity == "note" for finding in verification.findings)


@pytest.mark.builds
@pytest.mark.parametrize("name", ["cased128", "edge128", "torture64", "two_in_three_out", "wwm128", "mlperf512"])
def test_nothing_is_found_in_the_references_records(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    file = {"two_in_three_out": "two_in_three_out-0", "mlperf512": "mlperf512.pick300"}.get(name, name)
    path = unpacked(f"pretraining/{file}.tfrecord", tmp_path)
    flags = {flag: case[flag] for flag in ("max_seq_length", "max_predictions_per_seq", "masked_lm_prob")}
    verification = verify([path], VerifyOptions(vocab_file=VOCABULARY, **flags))
    assert problems(verification) == []
    assert problems(verify([path])) == []
    assert not (Path(path).parent / MANIFEST).exists()
