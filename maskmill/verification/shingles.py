"""Hash shingles, 13 words in a row, to find text again in other case, with other marks, or in part.

Brown et al. 2020 (GPT-3, appendix C) search test sets in training data in this way. A word is a run of ASCII letters,
digits and characters beyond ASCII, without marks; each ideograph or kana is a word.
"""

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

WORDS = 13

_BASE, _FACTOR = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # odd
_IS_IN_WORD = np.array([code >= 128 or chr(code).isalnum() for code in range(256)])
_CONTINUING = 0x80  # the first bytes of characters beyond ASCII are above these: 0x80 to 0xBF
_MARKS_OF_TWO, _MARKS_OF_THREE = (0xC2,), (0xE2, 0xEF)  # first bytes of « and °; of “, – and …; of full width marks
_CJK, _CJK_MARKS = 0xE3, (0xE3, 0x80)  # first byte of kana; the first two of 、 and 。
_LAST_IDEOGRAPHS = 0xE9

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


def hash_shingles(articles: Sequence[bytes]) -> tuple[Hashes, Numbers]:
    """Return the hash of each shingle of some articles in UTF-8, in order, and the number of its article."""
    lowered = [article.decode("utf-8", "replace").lower().encode() for article in articles]
    data = np.frombuffer(b"\n".join([*lowered, b""]), np.uint8)
    starts, ends = _words(data)
    owners = np.searchsorted(np.cumsum([len(text) + 1 for text in lowered]), starts, side="right")
    # A word's hash is the sum of its bytes times powers of a base, divided by that of its first place.
    powers, inverses = _powers(1 << len(data).bit_length())
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(data * powers[: len(data)], dtype=np.uint64)])
    words = (sums[ends] - sums[starts]) * inverses[starts]
    words ^= words >> np.uint64(32)
    count = max(0, len(words) - WORDS + 1)
    hashes = np.zeros(count, np.uint64)
    for place in range(WORDS):
        hashes = hashes * np.uint64(_FACTOR) + words[place : place + count]
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(_FACTOR)
    is_within = owners[:count] == owners[WORDS - 1 :][:count]
    return hashes[is_within], owners[:count][is_within]


@functools.lru_cache(maxsize=2)
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Return the first powers of the base, and of its inverse, modulo 2**64."""
    of_base, of_inverse = (np.full(count, base, np.uint64) for base in (_BASE, pow(_BASE, -1, 1 << 64)))
    of_base[0] = of_inverse[0] = 1
    return np.multiply.accumulate(of_base), np.multiply.accumulate(of_inverse)


def _words(data: npt.NDArray[np.uint8]) -> tuple[Numbers, Numbers]:
    """Return int64[words] each: the starts and the ends of words."""
    is_in_word, is_alone = _IS_IN_WORD[data], np.zeros(len(data) + 3, np.bool_)
    if data.max(initial=0) >= _CONTINUING:
        is_mark = np.isin(data, _MARKS_OF_THREE)
        is_mark[:-1] |= (data[:-1] == _CJK_MARKS[0]) & (data[1:] == _CJK_MARKS[1])
        for size, firsts in ((2, np.isin(data, _MARKS_OF_TWO)), (3, is_mark)):
            for byte in range(size):
                is_in_word[byte:][firsts[: len(data) - byte]] = False
        is_alone[: len(data)] = (data >= _CJK) & (data <= _LAST_IDEOGRAPHS) & is_in_word
    before = np.concatenate([[False], is_in_word[:-1]])
    is_cut = is_alone[: len(data)] | np.concatenate([np.zeros(3, np.bool_), is_alone])[: len(data)]
    starts = np.flatnonzero(is_in_word & (~before | is_cut))
    after = np.concatenate([is_in_word[1:], [False]])
    cut_after = np.concatenate([is_cut[1:], [True]])
    return starts, np.flatnonzero(is_in_word & (~after | cut_after)) + 1
