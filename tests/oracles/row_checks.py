"""What is wrong with a row of examples, in plain Python: one row at a time, one place after the other."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# A row: its values by feature, as many as are stored.
Row = Mapping[str, Sequence[Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """What is held against rows.

    frame: "pair", "none", "sep", "recipe" or "unknown". alone: the names of the special ids that no text has. width: of
    padded rows, 0: any. most_masks: by the number of pieces, how many are masked; None: any number. continues: the ids
    of pieces that go on a word; None: words do not matter.
    """

    cls_id: int
    sep_id: int
    mask_id: int
    pad_id: int
    alone: frozenset[str]
    frame: str
    packed: bool
    width: int
    least: int
    is_exact: bool
    to_predict: Sequence[int] | None
    continues: frozenset[int] | None

    def specials(self) -> set[int]:
        """The ids that no text has."""
        return {getattr(self, name) for name in self.alone}

    def is_alone(self, name: str) -> bool:
        return name in self.alone


def problems(row: Row, rules: Rules) -> set[str]:
    """The kinds of what is wrong, as "check kind"."""
    found: set[str] = set()
    ids = row["input_ids"]
    n = _length(row, rules, found)
    original, masked = _undone(row, n, rules, found)
    if rules.is_alone("mask_id") and rules.mask_id in original:
        found.add("masks left")
    if rules.is_alone("pad_id") and rules.pad_id in original:
        found.add("padding within")
    special = 0
    for start, end, number in _sequences(row, n, rules, found):
        special += _check_sequence(row, original, start, end, rules, found)
        if rules.packed:
            _check_numbers(row, start, end, number, found)
    if "masked_lm_positions" in row and rules.to_predict is not None:
        wanted = rules.to_predict[n]
        if masked > wanted or (rules.is_exact and masked < min(wanted, n - special)):
            found.add("masks number")
    _check_marks(row, original, n, rules, found)
    assert len(original) == n <= len(ids)
    return found


def _length(row: Row, rules: Rules, found: set[str]) -> int:
    ids = row["input_ids"]
    n = len(ids)
    if "input_mask" in row:
        mask = list(row["input_mask"])
        n = max((place + 1 for place, value in enumerate(mask) if value), default=0)
        if 0 in mask[:n]:
            found.add("padding gap")
    elif rules.width:
        while n and ids[n - 1] == rules.pad_id:
            n -= 1
    if rules.width and len(ids) != rules.width:
        found.add("schema width")
    if n == 0:
        found.add("padding empty")
    elif n < rules.least:
        found.add("length_share bin")
    if any(piece != rules.pad_id for piece in ids[n:]):
        found.add("padding behind")
    return n


def _undone(row: Row, n: int, rules: Rules, found: set[str]) -> tuple[list[int], int]:
    """The pieces with the masks undone, and how many masks there are."""
    original = list(row["input_ids"][:n])
    if "masked_lm_positions" not in row:
        return original, 0
    positions, labels, weights = (list(row[f"masked_lm_{name}"]) for name in ("positions", "ids", "weights"))
    m = next((k for k, weight in enumerate(weights) if weight != 1.0), len(weights))
    if any(weights[m:]):
        found.add("masks weights")
    if any(not weights[k] and (positions[k] or labels[k]) for k in range(m, len(weights))):
        found.add("masks behind")
    if any(a >= b for a, b in itertools.pairwise(positions[:m])):
        found.add("masks ascending")
    for place, label in zip(positions[:m], labels[:m], strict=True):
        if place >= n:
            found.add("masks outside")
            continue
        original[place] = label
        if label in rules.specials():
            found.add("masks special")
    if rules.continues is not None:
        _check_words(original, positions[:m], rules, found)
    return original, m


def _check_words(original: Sequence[int], positions: Sequence[int], rules: Rules, found: set[str]) -> None:
    ends = (rules.cls_id, rules.sep_id)
    for place in range(1, len(original)):
        before, piece = original[place - 1], original[place]
        goes_on = rules.continues is not None and piece in rules.continues
        if goes_on and (place in positions) != (place - 1 in positions):
            # The pieces are parts of one word, unless a special piece is between: a masked one counts as text there.
            if before in ends and place - 1 not in positions:
                continue
            found.add("masks word")


def _sequences(row: Row, n: int, rules: Rules, found: set[str]) -> Iterator[tuple[int, int, int]]:
    if n == 0:
        return
    if not rules.packed:
        yield 0, n, 1
        return
    ends = list(row["cu_seqlens"])
    if len(ends) < 2 or ends[0] != 0 or ends[-1] != n or any(a >= b for a, b in itertools.pairwise(ends)):
        found.add("packing ends")
        return
    if "next_sentence_labels" in row and len(row["next_sentence_labels"]) != len(ends) - 1:
        found.add("packing labels")
    yield from zip(ends, ends[1:], range(1, len(ends)), strict=False)
    _check_numbers(row, n, len(row["input_ids"]), 0, found)


def _check_numbers(row: Row, start: int, end: int, number: int, found: set[str]) -> None:
    if "sequence_ids" in row and any(value != number for value in row["sequence_ids"][start:end]):
        found.add("packing sequence")
    expected = [place - start if number else 0 for place in range(start, end)]
    if "position_ids" in row and list(row["position_ids"][start:end]) != expected:
        found.add("packing position")


def _check_sequence(row: Row, original: Sequence[int], start: int, end: int, rules: Rules, found: set[str]) -> int:
    """Looks at a sequence; returns how many of its pieces cannot be masked."""
    if rules.frame == "unknown":
        return 0
    if rules.frame == "recipe":
        return _check_cut(original, start, end, rules, found)
    middle = _middle(row, original, start, end, rules, found) if rules.frame == "pair" else None
    ids = row["input_ids"]
    places = [(start, rules.cls_id, "start"), (end - 1, rules.sep_id, "end")]
    if middle is not None:
        places.append((middle, rules.sep_id, "middle"))
        if middle == start + 1 or middle == end - 2:
            found.add("special_tokens part")
    for place, special, kind in places:
        if original[place] != special or (kind == "end" and end - start < 2):
            found.add(f"special_tokens {kind}")
        elif ids[place] != special:
            found.add("masks special")
    within = original[start + 1 : end - 1]
    starts = within.count(rules.cls_id) if rules.is_alone("cls_id") else 0
    ends = within.count(rules.sep_id) if rules.is_alone("sep_id") else int(middle is not None)
    if starts or (rules.frame != "sep" and ends > (middle is not None)):
        found.add("special_tokens within")
    return starts + ends + 2


def _middle(row: Row, original: Sequence[int], start: int, end: int, rules: Rules, found: set[str]) -> int | None:
    """Where the [SEP] between two parts stands: where the segments say, or the first."""
    segments = list(row["segment_ids"][start:end])
    said = end - 1 - sum(segments)
    if start < said < end - 1 and original[said] == rules.sep_id and segments == sorted(segments):
        return said
    places = range(start + 1, end - 1)
    middle = next((place for place in places if original[place] == rules.sep_id), None)
    if middle is None:
        found.add("special_tokens middle")
    elif segments != [int(place > middle) for place in range(start, end)]:
        found.add("segments segment")
    return middle


def _check_cut(original: Sequence[int], start: int, end: int, rules: Rules, found: set[str]) -> int:
    pieces = original[start:end]
    if rules.is_alone("cls_id") and rules.is_alone("sep_id"):
        for before, piece in itertools.pairwise(pieces):
            if (before == rules.sep_id) != (piece == rules.cls_id):
                found.add("special_tokens within")
    return sum(piece in (rules.cls_id, rules.sep_id) for piece in pieces)


def _check_marks(row: Row, original: Sequence[int], n: int, rules: Rules, found: set[str]) -> None:
    if any(row.get("segment_ids", ())[n:]):
        found.add("segments segment")
    if "special_tokens_mask" in row:
        expected = [int(piece in (rules.cls_id, rules.sep_id)) for piece in original]
        expected += [1] * (len(row["input_ids"]) - n)
        if list(row["special_tokens_mask"]) != expected:
            found.add("special_tokens mask")
    marks = row.get("continuation_mask", ())
    is_framed = rules.frame not in ("recipe", "unknown")
    if any(marks[n:]) or (is_framed and any(marks[:1])):
        found.add("special_tokens continuation")
