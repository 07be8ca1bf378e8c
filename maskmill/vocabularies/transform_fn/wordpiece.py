"""BERT's tokenization in TensorFlow operations, with the tables of tokenization/unicode_tables.py.

TensorFlow Text has tokenizers of its own (BertTokenizer, FastBertTokenizer). They normalise characters by Unicode's
compatibility case folding ("²" becomes "2", "…" three full stops, every "ς" a "σ"), where BERT's own code lower-cases
and decomposes. So the ids of version 2.21 differ for 7,447 code points, and in one line of 120 of an English
Wikipedia. They also limit words by bytes, and a model with them loads only where their package is. The operations here
are TensorFlow's own, and the ids are the pipeline's for all text. They take about as long as BertTokenizer;
FastBertTokenizer is six times as fast.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from maskmill.tokenization import unicode_tables as tables
from maskmill.tokenization.kernels.wordpiece import MAX_WORD
from maskmill.vocabularies.transform_fn import strings

# Values of a code point's outputs that are not code points.
_ITSELF = -1
_SIGMA = -2
_NOTHING = -3  # no output, but it separates the marks before it from those after it when they are ordered

_FINAL_SIGMA = ord("ς")
_INNER_SIGMA = ord("σ")

# Nodes of the trie.
_WORD_START = 0
_WORD_REST = 1

_NO_PIECE = -1


@dataclasses.dataclass(frozen=True)
class _CodePoints:
    """The outputs of each code point c: counts[i] of them from firsts[i] on, where i is the place of c in `blocks`.

    pages: int32[pages]. kinds, cases: int32[blocks], as in unicode_tables.py. firsts, counts: int32[blocks]. outputs:
    int32[n], a code point, or one of the values above. combining: int32[n], the class of each output.
    """

    pages: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.int32]
    cases: npt.NDArray[np.int32]
    firsts: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    outputs: npt.NDArray[np.int32]
    combining: npt.NDArray[np.int32]


def _code_points(unicode: str, do_lower_case: bool) -> _CodePoints:
    table = tables.load(unicode, do_lower_case)
    distinct, which = np.unique(table.blocks, return_inverse=True)
    becomes = [_outputs(int(entry), table.pool.tobytes()) for entry in distinct]
    counts = np.array([len(outputs) for outputs in becomes], np.int32)
    flat = np.array([output for outputs in becomes for output in outputs], np.int32).reshape(-1, 2)
    kinds = (distinct & tables.KIND_MASK).astype(np.int32)
    cases = (distinct >> tables.CASE_SHIFT & tables.CASE_MASK).astype(np.int32)
    # The search for a capital sigma's neighbours ends at these.
    cases[np.isin(kinds, (tables.SPACE, tables.IDEOGRAPH))] = 0
    return _CodePoints(
        pages=table.pages.astype(np.int32),
        kinds=kinds[which],
        cases=cases[which],
        firsts=(np.cumsum(counts) - counts).astype(np.int32)[which],
        counts=counts[which],
        outputs=flat[:, 0],
        combining=flat[:, 1],
    )


def _outputs(entry: int, pool: bytes) -> list[tuple[int, int]]:
    """Return the outputs of a code point with this entry, each with its combining class."""
    kind = entry & tables.KIND_MASK
    start = entry >> tables.POOL_SHIFT
    size = entry >> tables.BYTES_SHIFT & tables.BYTES_MASK
    if kind in (tables.DELETE, tables.ACCENT):
        return []
    if kind == tables.STARTER:
        return [(_NOTHING, 0)]
    if kind == tables.SIGMA:
        return [(_SIGMA, 0)]
    if kind == tables.COMPLEX:
        count = entry >> tables.COUNT_SHIFT & tables.COUNT_MASK
        records = [
            pool[at : at + tables.COMPLEX_BYTES]
            for at in range(start, start + tables.COMPLEX_BYTES * count, tables.COMPLEX_BYTES)
        ]
        return [(ord(r[2 : 2 + r[1]].decode()) if r[1] else _NOTHING, r[0]) for r in records]
    if kind in (tables.KEEP, tables.SPACE) or size == 0:
        return [(_ITSELF, 0)]
    return [(ord(character), 0) for character in pool[start : start + size].decode("utf-8", "surrogatepass")]


@dataclasses.dataclass(frozen=True)
class _Trie:
    """The pieces, letter by letter.

    keys: int64[edges], sorted: a node and a code point (strings.key). nodes: int32[edges], the node that each edge
    leads to. pieces: int32[nodes], the piece that ends at the node, or _NO_PIECE.
    """

    keys: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    pieces: npt.NDArray[np.int32]


def _trie_of(pieces: Sequence[str]) -> _Trie:
    edges: dict[tuple[int, int], int] = {}
    ends = {_WORD_START: _NO_PIECE, _WORD_REST: _NO_PIECE}
    for number, piece in enumerate(pieces):
        node, text = (_WORD_REST, piece[2:]) if piece.startswith("##") else (_WORD_START, piece)
        if not text:
            continue
        for character in text:
            node = edges.setdefault((node, ord(character)), len(edges) + 2)
            ends.setdefault(node, _NO_PIECE)
        ends[node] = number
    ordered = sorted(edges)
    return _Trie(
        keys=np.array([node * strings.KEY_FACTOR + point for node, point in ordered], np.int64),
        nodes=np.array([edges[edge] for edge in ordered], np.int32),
        pieces=np.array([ends[node] for node in range(len(ends))], np.int32),
    )


class WordPiece:
    """Splits texts into pieces like tokenization/wordpiece.py: the same ids for all valid UTF-8.

    A newline or a carriage return separates words like a space, and a word of more than 200 characters is [UNK].
    Invalid UTF-8 is dropped, where the pipeline stops with an error.
    """

    def __init__(self, pieces: Sequence[str], *, do_lower_case: bool, unicode: str) -> None:
        """Make the tables.

        Args:
          pieces: the distinct pieces in the order of their ids, [UNK] among them.
          do_lower_case: whether the text is lower-cased and stripped of accents.
          unicode: the version of the Unicode tables.
        """
        self._points = _code_points(unicode, do_lower_case)
        self._trie = _trie_of(pieces)
        self._unknown_id = list(pieces).index("[UNK]")

    def __call__(self, text: Any) -> Any:
        """Return the ids of texts, string[texts], as a RaggedTensor int64 [texts, pieces]."""
        points, rows, starts = self._words(*strings.code_points(text))
        distinct, which, splits = strings.distinct_words(points, starts)
        count = tf.size(distinct, tf.int64)
        numbers = tf.range(tf.size(which, tf.int64))
        first = tf.math.unsorted_segment_min(numbers, which, count)
        pieces, words = self._split(points, tf.gather(splits, first), tf.gather(splits, first + 1))
        return strings.of_texts(
            strings.grouped(pieces, words, count), which, tf.boolean_mask(rows, starts), tf.size(text, tf.int64)
        )

    def _words(self, points: Any, rows: Any) -> tuple[Any, Any, Any]:
        """Return the normalised code points of all words, the text of each, and whether a word starts there."""
        table = self._points
        page = tf.gather(table.pages, tf.bitwise.right_shift(points, tables.PAGE_BITS))
        at = page * (1 << tables.PAGE_BITS) + points % (1 << tables.PAGE_BITS)
        kinds = tf.gather(table.kinds, at)
        is_present = kinds != tables.DELETE
        points, rows, at, kinds = (tf.boolean_mask(values, is_present) for values in (points, rows, at, kinds))
        final = _is_final(tf.gather(table.cases, at), rows)

        counts = tf.gather(table.counts, at)
        source = tf.repeat(tf.range(tf.size(points)), counts)
        place = tf.range(tf.size(source)) - tf.gather(tf.cumsum(counts, exclusive=True), source)
        place += tf.gather(tf.gather(table.firsts, at), source)
        outputs = tf.gather(table.outputs, place)
        outputs = tf.where(outputs == _ITSELF, tf.gather(points, source), outputs)
        sigma = tf.where(tf.gather(final, source), _FINAL_SIGMA, _INNER_SIGMA)
        outputs = tf.where(outputs == _SIGMA, sigma, outputs)
        order = _order(tf.gather(table.combining, place), tf.gather(rows, source))
        outputs, source = tf.gather(outputs, order), tf.gather(source, order)

        kept = outputs != _NOTHING
        outputs, source = tf.boolean_mask(outputs, kept), tf.boolean_mask(source, kept)
        rows, kinds = tf.gather(rows, source), tf.gather(kinds, source)
        alone = (kinds == tables.SPACE) | (kinds == tables.PUNCTUATION) | (kinds == tables.IDEOGRAPH)
        starts = alone | strings.previous(alone, True) | (rows != strings.previous(rows, -1))
        kept = kinds != tables.SPACE
        return tf.boolean_mask(outputs, kept), tf.boolean_mask(rows, kept), tf.boolean_mask(starts, kept)

    def _split(self, points: Any, starts: Any, ends: Any) -> tuple[Any, Any]:
        """Return the pieces of words, longest match first, and the word of each; the pieces of a word are in order.

        All words advance by a code point at a time. A word that cannot advance takes the longest piece that it has
        passed, and starts again after that piece.

        Args:
          points: int32[n], the code points of all words. starts, ends: int64[words], the place of each word in them.
        """
        is_long = ends - starts > MAX_WORD
        words = tf.range(tf.size(starts, tf.int64))
        long_words = tf.boolean_mask(words, is_long)
        found_words, found_pieces = strings.nothing_found()
        found = (found_words.write(1, long_words), found_pieces.write(1, tf.fill(tf.shape(long_words), _NO_PIECE)))
        nodes, best = (tf.fill(tf.shape(words), value) for value in (_WORD_START, _NO_PIECE))
        walks = _select(_Walks(words, starts, ends, nodes, best, starts), ~is_long)
        axis = tf.TensorShape([None])
        *_, (found_words, found_pieces) = tf.while_loop(
            lambda number, walks, found: tf.size(walks.words) > 0,
            lambda number, walks, found: (number + 1, *self._step(number, points, walks, found)),
            (2, walks, found),
            shape_invariants=(tf.TensorShape([]), _Walks(*[axis] * len(walks)), (tf.TensorShape(None),) * 2),
        )
        words, pieces = found_words.concat(), found_pieces.concat()
        # An unknown word's last piece is _NO_PIECE; its pieces before that do not count.
        unknown = tf.gather(tf.math.unsorted_segment_min(pieces, words, tf.size(starts)) == _NO_PIECE, words)
        kept = ~unknown | (pieces == _NO_PIECE)
        pieces = tf.where(unknown, self._unknown_id, pieces)
        return tf.boolean_mask(pieces, kept), tf.boolean_mask(words, kept)

    def _step(self, number: Any, points: Any, walks: "_Walks", found: tuple[Any, Any]) -> tuple["_Walks", Any]:
        """Advance every word by a code point; write the pieces that end to place `number` of `found`."""
        point = tf.gather(points, tf.minimum(walks.at, tf.size(points, tf.int64) - 1))
        edge, known = strings.find(self._trie.keys, strings.key(walks.nodes, point))
        goes_on = known & (walks.at < walks.ends)
        nodes = tf.where(goes_on, tf.gather(self._trie.nodes, edge), _WORD_REST)
        piece = tf.where(goes_on, tf.gather(self._trie.pieces, nodes), _NO_PIECE)
        at = walks.at + 1
        best_end = tf.where(piece == _NO_PIECE, walks.best_end, at)
        best = tf.where(piece == _NO_PIECE, walks.best, piece)
        found = (
            found[0].write(number, tf.boolean_mask(walks.words, ~goes_on)),
            found[1].write(number, tf.boolean_mask(best, ~goes_on)),
        )
        left = goes_on | ((best != _NO_PIECE) & (best_end < walks.ends))
        at = tf.where(goes_on, at, best_end)
        best = tf.where(goes_on, best, _NO_PIECE)
        return _select(_Walks(walks.words, at, walks.ends, nodes, best, best_end), left), found


class _Walks(NamedTuple):
    """Words during their walk through the trie.

    words: int64[n], the number of each word. at: int64[n], its next code point. ends: int64[n], its end. nodes:
    int32[n], its node in the trie. best: int32[n], the longest piece since the start of the walk, or _NO_PIECE.
    best_end: int64[n], the end of that piece.
    """

    words: Any
    at: Any
    ends: Any
    nodes: Any
    best: Any
    best_end: Any


def _select(walks: _Walks, is_kept: Any) -> _Walks:
    return _Walks(*(tf.boolean_mask(values, is_kept) for values in walks))


def _is_final(cases: Any, rows: Any) -> Any:
    """Return whether a sigma at each place would be the last letter of its token, as in `str.lower`.

    The nearest characters before and after it that are not case-ignorable decide (Unicode Standard, Final_Sigma).
    """
    counting = cases != tables.IGNORED
    places = tf.where(counting)[:, 0]
    passed = tf.cumsum(tf.cast(counting, tf.int64))

    def is_cased(number: Any) -> Any:
        inside = (number >= 0) & (number < tf.size(places, tf.int64))
        place = tf.gather(tf.pad(places, [[0, 1]]), tf.where(inside, number, tf.size(places, tf.int64)))
        return inside & (tf.gather(cases, place) == tables.CASED) & (tf.gather(rows, place) == rows)

    # A sigma itself counts.
    return is_cased(passed - 2) & ~is_cased(passed)


def _order(combining: Any, rows: Any) -> Any:
    """Return the canonical order of marks (Unicode Standard, section 3.11), as int32 places; marks are rare."""
    run = tf.cumsum(tf.cast((combining == 0) | (rows != strings.previous(rows, -1)), tf.int64))
    return tf.cond(
        tf.reduce_any(combining != 0),
        lambda: tf.argsort(run * 256 + tf.cast(combining, tf.int64), stable=True),
        lambda: tf.range(tf.size(combining)),
    )
