"""Rows of tokenizers that lose nothing are the text of their documents, whatever the objective."""

import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from data_sets.example_sets import setup_of, write_set
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from oracles.line_joints import joined
from properties import tries
from tokenizers import decoders, models, pre_tokenizers, trainers

from maskmill.inspection.decoding import running_text
from maskmill.inspection.opened_examples import open_examples

ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
OBJECTIVES: dict[str, dict[str, Any]] = {
    "nsp": {"objective": "nsp"},
    "strict nsp": {"objective": "nsp", "strict_labels": True},
    "packed nsp": {"objective": "nsp", "pack": True},
    "sop": {"objective": "sop"},
    "full sentences": {"objective": "mlm"},
    "within documents": {"objective": "mlm", "cross_documents": False, "pack": True},
    "cut": {"objective": "mlm", "full_sentences": False},
    "drawn masks": {"objective": "mlm", "dynamic_masking": True, "mask_unit": "whole_word"},
    "blocks": {"objective": "blocks", "block_separators": "sep"},
    "spans": {"objective": "blocks", "block_separators": "sep", "dynamic_masking": True, "format": "spans"},
}
ALL_TEXT = ("full sentences", "within documents", "cut", "drawn masks", "blocks", "spans")  # no piece is lost
SENTENCES = (
    "Virhe on täällä.", "REPLY", "SERIAL-kenttä puuttuu", "Tapahtui 3 virhettä!", "“Zitat,” sagte er.", "Ωραία μέρα;",
    "Съешь ещё булок.", "שלום עולם.", "हिन्दी वाक्य।", "한국어 문장이다.", "色は匂へど。", "「引用」と言った。",
    "2020年です", "他说“你好！”", "ABC公司", "ภาษาไทย", "ភាសាខ្មែរ។", "- a  list:", "'s Gravenhage", "🙂", "it's\there",
)  # fmt: skip
DOCUMENTS = st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=9), min_size=2, max_size=6)
SHARD = "part-00000-of-00001"
_CUT = re.compile(r"^(?:\\x[0-9a-f]{2})+|(?:\\x[0-9a-f]{2})+$")  # the bytes of a character that a row has in part


@functools.cache
def tokenizer_of(kind: str) -> str:
    """A tokenizer.json: byte-level BPE, with a space before each text or none, or SentencePiece's kind."""
    if kind == "unigram":
        made = tokenizers.Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer: Any = trainers.UnigramTrainer(
            vocab_size=400, special_tokens=ROBERTA, unk_token="<unk>", show_progress=False
        )
    else:
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=kind == "prefixed bpe")
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=420,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=ROBERTA,
            show_progress=False,
        )
    made.train_from_iterator((*SENTENCES, "。", ".", "一") * 3, trainer)
    return str(made.to_str())


def decoded(path: str) -> Iterator[str]:
    """The text of each part of all rows, between special pieces."""
    with open_examples(path) as opened:
        for example in opened.all():
            for is_special, part in itertools.groupby(example.pieces, key=lambda piece: piece.role == "special"):
                if not is_special and (text := _CUT.sub("", running_text(part)).strip()):
                    yield text


@pytest.mark.parametrize("kind", ["bpe", "prefixed bpe", "unigram"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@tries(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=DOCUMENTS, number=st.integers(0, 2**60))
def test_a_row_decoded_is_text_of_a_document(
    kind: str, objective: str, documents: list[list[str]], number: int, tmp_path: Path
) -> None:
    folder = tmp_path / str(number)
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer_of(kind))
    options = {"max_seq_length": 40, "max_predictions_per_seq": 8, "dupe_factor": 1, "random_seed": number % 1000}
    setup = setup_of(f"{folder}/tokenizer.json", **options | OBJECTIVES[objective])
    content = "\n\n".join("\n".join(lines) for lines in documents) + "\n"
    path = write_set(folder, setup, texts={SHARD: content})
    texts = [joined(lines) for lines in documents]
    found = list(decoded(path))
    assert [text for text in found if not any(text in one for one in texts)] == []
    if objective in ALL_TEXT and "\ufffd" not in "".join(found):
        sizes = [len("".join(text.split())) for text in ("".join(found), "".join(texts))]
        # A character that is cut between two rows is in none of them.
        assert sizes[0] <= sizes[1] <= sizes[0] + len(found)
