"""Small made-up rows of examples of every kind, right ones and damaged ones, with the rules that they follow."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from oracles import row_checks as oracle

from maskmill.reading.data_set import DataFile, DataSet, ReadColumn
from maskmill.verification.kernels.row_checking import CONTINUES
from maskmill.verification.row_reading import checked_columns
from maskmill.verification.row_rules import RowRules

PAD, CLS, SEP, MASK = range(4)
FIRST_WORD, FIRST_CONTINUATION, VOCABULARY = 4, 9, 13
WIDTH = 24
PREDICTIONS = 5
PROBABILITY = 0.15
_BINS = {1: None, 13: 2}  # how many bins there are, by the fewest pieces of a row of the widest
IDS = {"cls_id": CLS, "sep_id": SEP, "mask_id": MASK, "pad_id": PAD}

Row = dict[str, list[Any]]


@dataclasses.dataclass(frozen=True)
class MadeUp:
    """Rows, damaged or not, and their rules: as the code takes them and as the oracle does."""

    rows: Sequence[Row]
    data_set: DataSet
    rules: RowRules
    oracle_rules: oracle.Rules


def made_up_examples(seed: int, *, damaged: bool) -> MadeUp:
    """Up to six rows of some kind. damaged: values of some of them are changed."""
    rng = random.Random(seed)
    rules = _rules(rng)
    features = _features(rng, rules)
    rows = [_row(rng, rules, features) for _ in range(rng.randint(1, 6))]
    if damaged:
        for row in rows:
            for _ in range(rng.choice([0, 1, 1, 2, 4])):
                _damage(rng, row)
    data_set = _data_set(features, rules)
    return MadeUp(rows, data_set, _row_rules(rules, data_set, is_dynamic="masked_lm_ids" not in features), rules)


def _rules(rng: random.Random) -> oracle.Rules:
    whole = rng.random() < 0.4
    width = rng.choice([WIDTH, WIDTH, 0])
    return oracle.Rules(
        cls_id=CLS,
        sep_id=SEP,
        mask_id=MASK,
        pad_id=PAD,
        alone=frozenset(name for name in IDS if rng.random() < 0.8),
        frame=rng.choice(["pair", "pair", "none", "sep", "recipe", "unknown"]),
        packed=rng.random() < 0.4,
        width=width,
        least=rng.choice(list(_BINS)),
        is_exact=not whole,
        to_predict=[min(PREDICTIONS, max(1, round(n * PROBABILITY))) for n in range(WIDTH + 1)],
        continues=frozenset(range(FIRST_CONTINUATION, VOCABULARY)) if whole else None,
    )


def _features(rng: random.Random, rules: oracle.Rules) -> list[str]:
    features = ["input_ids"]
    if rules.width:
        features.append("input_mask")
    if rules.frame == "pair":
        features += ["segment_ids", "next_sentence_labels"]
    if rules.packed:
        features += ["sequence_ids", "position_ids", "cu_seqlens"]
    if rng.random() < 0.7:
        features += ["masked_lm_positions", "masked_lm_ids", "masked_lm_weights"]
    features += [name for name in ("special_tokens_mask", "continuation_mask") if rng.random() < 0.4]
    return features


def _words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(FIRST_WORD, VOCABULARY) for _ in range(count)]


def _sequence(rng: random.Random, rules: oracle.Rules, size: int) -> tuple[list[int], int]:
    """Pieces of a sequence of up to `size` (5 or more), and how many of them are of the second part."""
    room = rng.randint(2, size - 3)
    first = rng.randint(1, room - 1)
    if rules.frame == "pair":
        return [CLS, *_words(rng, first), SEP, *_words(rng, room - first), SEP], room - first + 1
    if rules.frame == "recipe":
        pieces = [*_words(rng, first), SEP, CLS, *_words(rng, room - first)]
        return [*pieces, SEP][: rng.choice([2, len(pieces), len(pieces) + 1])], 0
    middle = [SEP] if rules.frame == "sep" and rng.random() < 0.5 else []
    return [CLS, *_words(rng, first), *middle, *_words(rng, room - first), SEP], 0


def _row(rng: random.Random, rules: oracle.Rules, features: Sequence[str]) -> Row:
    sequences = [_sequence(rng, rules, 12 if rules.packed else rng.choice([8, 12, WIDTH]))]
    if rules.packed and rng.random() < 0.7:
        sequences.append(_sequence(rng, rules, 12))
    ids = [piece for pieces, _ in sequences for piece in pieces]
    n, stored = len(ids), rules.width or len(ids)
    rest = [0] * (stored - n)
    row: Row = {
        "input_ids": ids + [PAD] * (stored - n),
        "input_mask": [1] * n + rest,
        "segment_ids": [int(k >= len(p) - second) for p, second in sequences for k in range(len(p))] + rest,
        "next_sentence_labels": [rng.randint(0, 1) for _ in sequences],
        "sequence_ids": [number for number, (p, _) in enumerate(sequences, 1) for _ in p] + rest,
        "position_ids": [k for p, _ in sequences for k in range(len(p))] + rest,
        "cu_seqlens": np.cumsum([0, *(len(p) for p, _ in sequences)]).tolist(),
        "special_tokens_mask": [int(piece in (CLS, SEP)) for piece in ids] + [1] * (stored - n),
        "continuation_mask": [int(piece >= FIRST_CONTINUATION) for piece in ids] + rest,
    }
    if "masked_lm_ids" in features:
        _mask(rng, row, n, rules)
    return {feature: row[feature] for feature in features}


def _mask(rng: random.Random, row: Row, n: int, rules: oracle.Rules) -> None:
    ids = row["input_ids"]
    words = [[place] for place in range(n) if ids[place] not in (CLS, SEP)]
    if rules.continues is not None:
        whole: list[list[int]] = []
        for (place,) in words:
            is_part = ids[place] in rules.continues and whole and whole[-1][-1] == place - 1
            whole[-1].append(place) if is_part else whole.append([place])
        words = whole
    rng.shuffle(words)
    assert rules.to_predict is not None
    chosen: list[int] = []
    for word in words:
        if len(chosen) + len(word) <= rules.to_predict[n]:
            chosen += word
    chosen.sort()
    rest = [0] * (PREDICTIONS - len(chosen))
    row["masked_lm_positions"] = chosen + rest
    row["masked_lm_ids"] = [ids[place] for place in chosen] + rest
    row["masked_lm_weights"] = [1.0] * len(chosen) + [0.0] * len(rest)
    for place in chosen:
        ids[place] = rng.choice([MASK, MASK, ids[place], rng.randrange(VOCABULARY)])


_HIGHEST: Mapping[str, int] = {
    "input_ids": VOCABULARY - 1,
    "masked_lm_ids": VOCABULARY - 1,
    "masked_lm_positions": WIDTH - 1,
    "position_ids": WIDTH - 1,
    "sequence_ids": 3,
    "cu_seqlens": WIDTH,
}


def _damage(rng: random.Random, row: Row) -> None:
    """Changes a value of a row, swaps two, or leaves one out; it stays what the columns allow."""
    feature = rng.choice(list(row))
    values = row[feature]
    place = rng.randrange(len(values))
    kind = rng.randrange(4)
    if kind == 0 and feature in ("cu_seqlens", "next_sentence_labels") and len(values) > 1:
        del values[place]
    elif kind == 1:
        other = rng.randrange(len(values))
        values[place], values[other] = values[other], values[place]
    elif feature == "masked_lm_weights":
        values[place] = rng.choice([0.0, 1.0, 0.5])
    else:
        values[place] = rng.randint(0, _HIGHEST.get(feature, 1))


def _data_set(features: Sequence[str], rules: oracle.Rules) -> DataSet:
    columns = tuple(_column(feature, rules) for feature in sorted(features))
    file = DataFile(path="made/up", samples=0, size=None, sha256=None, index=None, width=WIDTH)
    return DataSet(
        path="made/up",
        format="tfrecord",
        files=(file,),
        columns=checked_columns(columns),
        width=WIDTH,
        fingerprint="",
        vocabulary_size=VOCABULARY,
        special_ids=dict(IDS),
        packed=rules.packed,
        mask_rules=None,
        predictions=PREDICTIONS,
    )


def _column(feature: str, rules: oracle.Rules) -> ReadColumn:
    is_mask = feature.startswith("masked_lm")
    widths = {"cu_seqlens": WIDTH // 2 + 1, "next_sentence_labels": WIDTH // 2 if rules.packed else 1}
    fills = {"input_ids": PAD, "special_tokens_mask": 1, "cu_seqlens": None}
    is_list = feature in ("cu_seqlens", "next_sentence_labels") and rules.packed
    return ReadColumn(
        name=feature,
        feature=feature,
        width=PREDICTIONS if is_mask else widths.get(feature, WIDTH),
        varies=is_list or (not is_mask and not rules.width and feature != "next_sentence_labels"),
        dtype=np.dtype(np.float32 if feature == "masked_lm_weights" else np.int32),
        fill=fills.get(feature, 0),
    )


def _row_rules(rules: oracle.Rules, data_set: DataSet, *, is_dynamic: bool) -> RowRules:
    is_pair = rules.frame == "pair"
    return RowRules(
        data_set=data_set,
        objective="nsp" if is_pair else None if rules.frame == "unknown" else "blocks",
        is_packed=rules.packed,
        is_dynamic=is_dynamic,
        mask_unit="piece" if rules.continues is None else "whole_word",
        masked_lm_prob=PROBABILITY,
        max_seq_length=WIDTH,
        max_predictions_per_seq=PREDICTIONS,
        continues_word=rules.continues is not None,
        piece_kinds=(np.arange(VOCABULARY) >= FIRST_CONTINUATION).astype(np.uint8) * CONTINUES,
        is_exact=rules.is_exact,
        separators=rules.frame if rules.frame in ("none", "sep", "recipe") else None,
        bins=_BINS[rules.least],
        never_in_text=tuple(sorted(rules.alone)),
    )
