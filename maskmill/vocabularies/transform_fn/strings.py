"""Texts as code points, and words as strings, in TensorFlow operations. Tensors have one axis unless stated."""

from typing import Any

import tensorflow as tf

KEY_FACTOR = 1 << 32  # two numbers of 32 bits make one of 64


def code_points(text: Any) -> tuple[Any, Any]:
    """Return the code points of texts, and the text of each.

    Carriage returns at the end of a line are dropped, and any other becomes a space, as in `without_returns`.

    Args:
      text: string[texts]. Invalid UTF-8 becomes U+FFFD.

    Returns:
      int32[code points], int64[code points].
    """
    text = tf.strings.regex_replace(tf.strings.regex_replace(text, r"\r+(\n|\z)", r"\1"), r"\r", " ")
    points = tf.strings.unicode_decode(text, "UTF-8", errors="replace")
    return points.flat_values, points.value_rowids()


def previous(values: Any, first: Any) -> Any:
    """Return the value before each value; `first` for the first one."""
    return tf.concat([tf.fill([tf.minimum(1, tf.size(values))], tf.cast(first, values.dtype)), values[:-1]], 0)


def following(values: Any, last: Any) -> Any:
    """Return the value after each value; `last` for the last one."""
    return tf.concat([values[1:], tf.fill([tf.minimum(1, tf.size(values))], tf.cast(last, values.dtype))], 0)


def distinct_words(points: Any, starts: Any) -> tuple[Any, Any, Any]:
    """Divide code points into words and find the distinct ones.

    Args:
      points: int32[code points]. starts: bool[code points], whether a word starts there.

    Returns:
      The distinct words, string[distinct]; the distinct word of each word, int64[words]; the place in `points` where
      each word starts, int64[words + 1], with the number of code points at the end.
    """
    splits = tf.concat([tf.where(starts)[:, 0], [tf.size(points, tf.int64)]], 0)
    words = tf.strings.unicode_encode(tf.RaggedTensor.from_row_splits(points, splits), "UTF-8")
    distinct, which = tf.unique(words, tf.int64)
    return distinct, which, splits


def key(first: Any, second: Any) -> Any:
    """Return one number for two non-negative numbers, for `find`. int64[n]."""
    return tf.cast(first, tf.int64) * KEY_FACTOR + tf.cast(second, tf.int64)


def find(keys: Any, numbers: Any) -> tuple[Any, Any]:
    """Return the place of each number in the sorted `keys`, and whether it is one of them. int32[n], bool[n]."""
    at = tf.minimum(tf.searchsorted(keys, numbers), tf.size(keys) - 1)
    return at, tf.gather(keys, at) == numbers


def grouped(pieces: Any, words: Any, count: Any) -> Any:
    """Return the pieces of each of `count` words, in their order, as a RaggedTensor [count, pieces]."""
    order = tf.argsort(words, stable=True)
    return tf.RaggedTensor.from_value_rowids(tf.gather(pieces, order), tf.gather(words, order), nrows=count)


def of_texts(pieces: Any, which: Any, rows: Any, texts: Any) -> Any:
    """Return the pieces of texts, from those of distinct words.

    Args:
      pieces: RaggedTensor [distinct words, pieces].
      which: int64[words], the distinct word of each word. rows: int64[words], the text of each.
      texts: the number of texts.

    Returns:
      RaggedTensor int64 [texts, pieces].
    """
    by_word = tf.gather(pieces, which)
    of_text = tf.gather(rows, by_word.value_rowids())
    return tf.RaggedTensor.from_value_rowids(tf.cast(by_word.flat_values, tf.int64), of_text, nrows=texts)


def nothing_found() -> tuple[Any, Any]:
    """Return arrays for a loop's results: words (int64) and a piece of each (int32), empty at place 0."""
    words, pieces = (
        tf.TensorArray(kind, size=1, dynamic_size=True, infer_shape=False, element_shape=[None]).write(
            0, tf.zeros([0], kind)
        )
        for kind in (tf.int64, tf.int32)
    )
    return words, pieces
