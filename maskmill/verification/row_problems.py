"""What the problems that kernels/rows.py finds in rows mean, in words."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from maskmill.verification.kernels import rows as kernels
from maskmill.verification.row_faults import AGAIN, Fault, Faults


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Problem:
    """A kind of problem; texts are filled in with {place} (from 0), {expected} and {found}.

    Attributes:
      check: the name of the check.
      kind: its name among the check's kinds.
      expected, found: as in Finding.
      what: what is wrong, as a clause.
    """

    check: str
    kind: str
    expected: str
    found: str
    what: str


_PROBLEMS: Mapping[int, _Problem] = {
    kernels.MASK_GAP: _Problem(
        check="padding",
        kind="gap",
        expected="1 up to the last piece, then 0",
        found="0 at place {place} before a 1",
        what="input_mask is 0 at place {place}, but 1 behind it",
    ),
    kernels.NOT_PADDED: _Problem(
        check="padding",
        kind="behind",
        expected="{expected}",
        found="{found}",
        what="input_ids has {found} at place {place}, behind the last piece, where padding ({expected}) belongs",
    ),
    kernels.PADDING_WITHIN: _Problem(
        check="padding",
        kind="within",
        expected="padding behind the last piece only",
        found="padding at place {place}",
        what="padding ({found}) stands among the pieces, at place {place}",
    ),
    kernels.NO_PIECES: _Problem(
        check="padding",
        kind="empty",
        expected="at least 1 piece",
        found="none",
        what="this record has no piece, only padding",
    ),
    kernels.OTHER_WIDTH: _Problem(
        check="schema",
        kind="width",
        expected="{expected}",
        found="{found}",
        what="input_ids has length {found}, but rows of this file are padded to {expected}",
    ),
    kernels.OUTSIDE_BIN: _Problem(
        check="length_share",
        kind="bin",
        expected="at least {expected} pieces",
        found="{found}",
        what="this record has {found} pieces, but those of this bin have at least {expected}",
    ),
    kernels.NO_START: _Problem(
        check="special_tokens",
        kind="start",
        expected="[CLS] ({expected})",
        found="{found}",
        what="the sequence at place {place} starts with the id {found} instead of [CLS] ({expected})",
    ),
    kernels.NO_END: _Problem(
        check="special_tokens",
        kind="end",
        expected="[SEP] ({expected})",
        found="{found}",
        what="the sequence that ends at place {place} ends with the id {found} instead of [SEP] ({expected})",
    ),
    kernels.NO_MIDDLE: _Problem(
        check="special_tokens",
        kind="middle",
        expected="[SEP] ({expected}) between the two parts",
        found="none",
        what="no [SEP] ({expected}) stands between the two parts of the pair at place {place}",
    ),
    kernels.EMPTY_PART: _Problem(
        check="special_tokens",
        kind="part",
        expected="at least 1 piece in each part of a pair",
        found="none",
        what="a part of the pair that is parted at place {place} has no piece",
    ),
    kernels.SPECIAL_WITHIN: _Problem(
        check="special_tokens",
        kind="within",
        expected="[CLS] and [SEP] at the ends of sequences and parts",
        found="{found} at place {place}",
        what="the special piece {found} stands at place {place}, where none belongs",
    ),
    kernels.SPECIAL_MASK: _Problem(
        check="special_tokens",
        kind="mask",
        expected="{expected}",
        found="{found}",
        what="special_tokens_mask is {found} at place {place}, but must be {expected}",
    ),
    kernels.CONTINUATION: _Problem(
        check="special_tokens",
        kind="continuation",
        expected="0",
        found="1",
        what="continuation_mask is 1 at place {place}, where no word can go on",
    ),
    kernels.SEGMENT: _Problem(
        check="segments",
        kind="segment",
        expected="{expected}",
        found="{found}",
        what="segment_ids is {found} at place {place}, but must be {expected}",
    ),
    kernels.WEIGHTS: _Problem(
        check="masks",
        kind="weights",
        expected="1.0 for each mask, then 0.0",
        found="{found}/1000",
        what="masked_lm_weights has {found}/1000 at place {place}, where 0.0 belongs, or 1.0 in front of it",
    ),
    kernels.NOT_ASCENDING: _Problem(
        check="masks",
        kind="ascending",
        expected="above {expected}",
        found="{found}",
        what="masked_lm_positions has {found} behind {expected}, but positions must ascend",
    ),
    kernels.BEHIND_PIECES: _Problem(
        check="masks",
        kind="outside",
        expected="below {expected}",
        found="{found}",
        what="masked_lm_positions has {found}, but the record has {expected} pieces",
    ),
    kernels.BEHIND_MASKS: _Problem(
        check="masks",
        kind="behind",
        expected="0",
        found="{found}",
        what="masked_lm_positions or masked_lm_ids has {found} at place {place}, behind the last mask, where 0 belongs",
    ),
    kernels.SPECIAL_MASKED: _Problem(
        check="masks",
        kind="special",
        expected="no special piece is masked",
        found="{found} at place {place}",
        what="the special piece at place {place} is masked (id {found})",
    ),
    kernels.MASK_LEFT: _Problem(
        check="masks",
        kind="left",
        expected="[MASK] at masked positions only",
        found="[MASK] at place {place}",
        what="[MASK] ({found}) stands at place {place}, which is none of the masked positions or should be [MASK]",
    ),
    kernels.OTHER_MASKS: _Problem(
        check="masks",
        kind="number",
        expected="{expected}",
        found="{found}",
        what="{found} of {place} pieces are masked, but {expected} must be",
    ),
    kernels.MANY_MASKS: _Problem(
        check="masks",
        kind="number",
        expected="at most {expected}",
        found="{found}",
        what="{found} of {place} pieces are masked, but at most {expected} may be",
    ),
    kernels.HALF_WORD: _Problem(
        check="masks",
        kind="word",
        expected="whole words are masked",
        found="a part of a word",
        what="only a part of the word with the piece at place {place} is masked, but whole words must be",
    ),
    kernels.BROKEN_WORD: _Problem(
        check="words",
        kind="word",
        expected="pieces in the order of a text",
        found="{found} behind {expected}",
        what="the id {found} at place {place} goes on a word, but {expected} in front of it is a word of its own, so "
        "these are not the pieces of a text",
    ),
    kernels.SEQUENCE_ENDS: _Problem(
        check="packing",
        kind="ends",
        expected="{expected}",
        found="{found}",
        what="cu_seqlens has {found} where {expected} or more belongs (0, then where each sequence ends)",
    ),
    kernels.SEQUENCE_ID: _Problem(
        check="packing",
        kind="sequence",
        expected="{expected}",
        found="{found}",
        what="sequence_ids is {found} at place {place}, but must be {expected}",
    ),
    kernels.POSITION_ID: _Problem(
        check="packing",
        kind="position",
        expected="{expected}",
        found="{found}",
        what="position_ids is {found} at place {place}, but must be {expected}",
    ),
    kernels.LABEL_COUNT: _Problem(
        check="packing",
        kind="labels",
        expected="{expected} labels",
        found="{found}",
        what="next_sentence_labels has {found} values for {expected} sequences",
    ),
}


def add_problems(problems: npt.NDArray[np.int64], faults: Faults) -> None:
    """Adds what kernels found to the faults of a file; problems: int64[CODES, LINE]."""
    for code, problem in _PROBLEMS.items():
        count, record, place, expected, found, _ = problems[code].tolist()
        if not count:
            continue
        values = {"place": f"{place:,}", "expected": f"{expected:,}", "found": f"{found:,}"}
        fault = Fault(
            check=problem.check,
            kind=problem.kind,
            record=record,
            expected=problem.expected.format(**values),
            found=problem.found.format(**values),
            what=problem.what.format(**values),
            advice=AGAIN,
        )
        faults.add(fault, count)
