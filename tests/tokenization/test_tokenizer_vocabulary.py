"""Which tokens of a tokenizer.json are the special ones: by its neighbours, and by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from maskmill.errors import UnusableInputError
from maskmill.tokenization.vocabulary import Vocabulary, tokenizer_vocabulary

ROBERTA = {"<s>": 0, "<pad>": 1, "</s>": 2, "the": 5, "<unk>": 3, "<mask>": 9, "<m>": 7, "Ġcat": 6}
BERT = {"cat": 9, "[MASK]": 4, "[SEP]": 3, "[CLS]": 2, "[UNK]": 1, "[PAD]": 0}


def read(folder: Path, ids: dict[str, int], **beside: Any) -> Vocabulary:
    """The vocabulary of a tokenizer.json with these tokens and these files beside it."""
    for name, content in beside.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return tokenizer_vocabulary(f"{folder}/tokenizer.json", b"{}", ids)


def special(vocabulary: Vocabulary) -> list[int | None]:
    return list(vocabulary.special_ids.values())


def test_tokens_are_known_by_name(tmp_path: Path) -> None:
    roberta, bert = read(tmp_path, ROBERTA), read(tmp_path, BERT)
    assert special(roberta) == [0, 2, 9, 1, 3]
    assert special(bert) == [2, 3, 4, 0, 1]
    assert special(read(tmp_path, {name: n for name, n in ROBERTA.items() if name != "<unk>"})) == [0, 2, 9, 1, None]
    assert roberta.pieces == ("<s>", "<pad>", "</s>", "<unk>", "the", "Ġcat", "<m>", "<mask>")
    assert roberta.ids.tolist() == [0, 1, 2, 3, 5, 6, 7, 9]
    assert roberta.size == 10
    assert not roberta.marks_words


@pytest.mark.parametrize("name", ["tokenizer_config", "special_tokens_map"])
@pytest.mark.parametrize("token", ["<m>", {"content": "<m>", "lstrip": True}], ids=["text", "added token"])
def test_a_file_beside_it_names_them(name: str, token: object, tmp_path: Path) -> None:
    named = {"mask_token": token, "unk_token": None, "model_max_length": 512}
    assert special(read(tmp_path, ROBERTA, **{name: named})) == [0, 2, 7, 1, 3]


def test_the_configuration_counts_before_the_map(tmp_path: Path) -> None:
    found = read(tmp_path, ROBERTA, tokenizer_config={"mask_token": "<m>"}, special_tokens_map={"mask_token": "<mask>"})
    assert found.mask_id == 7


@pytest.mark.parametrize(
    ("ids", "beside", "says"),
    [
        ({"[CLS]": 0, "[SEP]": 1, "[PAD]": 2}, {}, r"no mask_token \(\[MASK\] or <mask>\), which masking needs"),
        ({"<mask>": 0, "<pad>": 1}, {}, r"no cls_token .*, sep_token .*, which"),
        ({"[CLS]": 0, "[SEP]": 1, "[MASK]": 2}, {}, r"no pad_token"),
        (BERT, {"tokenizer_config": {"mask_token": "<m>"}}, r"tokenizer_config\.json: its mask_token is '<m>', which"),
        (BERT, {"tokenizer_config": "{"}, r"tokenizer_config\.json: this is no JSON object"),
        (BERT, {"special_tokens_map": []}, r"special_tokens_map\.json: this is no JSON object"),
    ],
    ids=["no mask", "no frame", "no padding", "unknown name", "broken file", "a list"],
)
def test_what_is_refused(ids: dict[str, int], beside: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match=says):
        read(tmp_path, ids, **beside)
