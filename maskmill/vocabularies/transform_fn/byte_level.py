"""Byte-level BPE in TensorFlow operations: GPT-2's pre-tokens, then merges in the order of their ranks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from maskmill.tokenization import pre_token_classes as classes
from maskmill.vocabularies.transform_fn import strings

_APOSTROPHE = ord("'")
_SPACE = ord(" ")
_NEVER = tf.int64.max


class ByteLevel:
    """Splits texts into the pipeline's ids for byte-level BPE.

    A text is read line by line; its line ends are part of no piece. Names of special tokens in a text are text. Invalid
    UTF-8 is read as U+FFFD, where the pipeline stops with an error. The time for a word grows with the square of its
    size: one merge at a time, in all distinct words at once.
    """

    def __init__(
        self,
        byte_ids: npt.NDArray[np.int32],
        merges: npt.NDArray[np.int32],
        merged_ids: Sequence[int],
        *,
        add_prefix_space: bool,
    ) -> None:
        """Make the tables.

        Args:
          byte_ids: int32[256], the id of each byte.
          merges: int32[merges, 2], the ids of the left and the right part; the first merge comes first.
          merged_ids: the id of each merge's result.
          add_prefix_space: whether a text is read as if it began with a space.
        """
        keys = merges[:, 0].astype(np.int64) * strings.KEY_FACTOR + merges[:, 1]
        order = np.argsort(keys)
        # Append a key that no pair has, so that the table is never empty.
        self._keys = np.append(keys[order], np.int64(2**62))
        self._ranks = np.append(order, 0).astype(np.int64)
        self._merged_ids = np.append(np.array(merged_ids, np.int32)[order], 0).astype(np.int32)
        self._byte_ids = byte_ids
        self._classes = classes.load()
        self._add_prefix_space = add_prefix_space

    def __call__(self, text: Any) -> Any:
        """Return the ids of texts, string[texts], as a RaggedTensor int64 [texts, ids]."""
        points, rows = strings.code_points(text)
        if self._add_prefix_space:
            points, rows = _with_spaces(points, rows)
        kinds = tf.cast(tf.gather(self._classes, points), tf.int32)
        starts = _starts(points, rows, kinds)
        inside = kinds != classes.LINE_END
        points, rows, starts = (tf.boolean_mask(values, inside) for values in (points, rows, starts))
        distinct, which, _ = strings.distinct_words(points, starts)
        ids, words = self._merge(distinct)
        return strings.of_texts(
            strings.grouped(ids, words, tf.size(distinct, tf.int64)),
            which,
            tf.boolean_mask(rows, starts),
            tf.size(text, tf.int64),
        )

    def _merge(self, distinct: Any) -> tuple[Any, Any]:
        """Return the ids of words, string[words], and the word of each id; the ids of a word are in order."""
        letters = tf.strings.bytes_split(distinct)
        values = tf.cast(tf.reshape(tf.io.decode_raw(letters.flat_values, tf.uint8), [-1]), tf.int32)
        ids, words = tf.gather(self._byte_ids, values), letters.value_rowids()
        axis = tf.TensorShape([None])
        *_, (found_words, found_ids) = tf.while_loop(
            lambda number, ids, words, found: tf.size(ids) > 0,
            lambda number, ids, words, found: (number + 1, *self._step(number, ids, words, found)),
            (1, ids, words, strings.nothing_found()),
            shape_invariants=(tf.TensorShape([]), axis, axis, (tf.TensorShape(None),) * 2),
        )
        return found_ids.concat(), found_words.concat()

    def _step(self, number: Any, ids: Any, words: Any, found: tuple[Any, Any]) -> tuple[Any, Any, Any]:
        """Make the next merge in every word: the leftmost of its pairs of the lowest rank.

        Words without a pair to merge are written to place `number` of `found`; the others continue.
        """
        at, known = strings.find(self._keys, strings.key(ids, strings.following(ids, 0)))
        known &= words == strings.following(words, -1)
        places = tf.range(tf.size(ids, tf.int64))
        score = tf.where(known, tf.gather(self._ranks, at) * strings.KEY_FACTOR + places, _NEVER)
        best = tf.gather(tf.math.unsorted_segment_min(score, words, words[-1] + 1), words)
        chosen = known & (score == best)
        ids = tf.where(chosen, tf.gather(self._merged_ids, at), ids)
        finished = best == _NEVER
        found = (
            found[0].write(number, tf.boolean_mask(words, finished)),
            found[1].write(number, tf.boolean_mask(ids, finished)),
        )
        left = ~finished & ~strings.previous(chosen, False)
        return tf.boolean_mask(ids, left), tf.boolean_mask(words, left), found


def _with_spaces(points: Any, rows: Any) -> tuple[Any, Any]:
    """Put a space before each line that has characters and starts with another one."""
    first = (rows != strings.previous(rows, -1)) | (strings.previous(points, 0) == ord("\n"))
    bare = first & (points != _SPACE) & (points != ord("\n"))
    source = tf.repeat(tf.range(tf.size(points)), 1 + tf.cast(bare, tf.int32))
    added = (source != strings.previous(source, -1)) & tf.gather(bare, source)
    return tf.where(added, _SPACE, tf.gather(points, source)), tf.gather(rows, source)


def _starts(points: Any, rows: Any, kinds: Any) -> Any:
    """Return whether a pre-token starts at each code point.

    The rules are those of GPT-2's regular expression (tokenization/kernels/pre_tokens.py), applied to a character's
    neighbours: nothing further away than a contraction's length matters.
    """
    is_first = rows != strings.previous(rows, -1)
    is_last = rows != strings.following(rows, -1)
    before = tf.where(is_first, classes.LINE_END, strings.previous(kinds, classes.LINE_END))
    after = tf.where(is_last, classes.LINE_END, strings.following(kinds, classes.LINE_END))
    # A space joins the character after it, unless that is white space.
    after_space = ~is_first & (strings.previous(points, 0) == _SPACE)
    is_white = kinds == classes.WHITE

    # An apostrophe after other marks, or joined by a space, starts no contraction.
    apostrophe = (points == _APOSTROPHE) & (before != classes.OTHER) & ~after_space
    second = tf.where(is_last, 0, strings.following(points, 0))
    third = strings.following(second, 0)
    short = apostrophe & _is_any(second, "stmd")
    long = apostrophe & ((_is_any(second, "rv") & (third == ord("e"))) | ((second == ord("l")) & (third == ord("l"))))
    inside = strings.previous(short | long, False)
    past = _shifted(short, 2) | _shifted(long, 3)

    white = (before != classes.WHITE) | ((after != classes.WHITE) & (after != classes.LINE_END))
    other = (before != kinds) & ~after_space & ~inside
    return tf.where(is_white, white, other | (past & ~is_white))


def _is_any(points: Any, letters: str) -> Any:
    return tf.reduce_any([points == ord(letter) for letter in letters], 0)


def _shifted(values: Any, count: int) -> Any:
    """Return the value `count` places before each value."""
    for _ in range(count):
        values = strings.previous(values, False)
    return values
