"""Fragments of several sources → one plan of text shards, in which each source has its share of the text.

What is decided, and in this order: which documents are held out for evaluation (once each, never trained on); how often
each source is taken (its epochs); which documents a last, partial epoch takes; in which shard each of them stands.
Weights are shares of the training text in bytes. The mix is as large as the sources allow: it takes
T = min over the sources of max_epochs * size * (sum of weights) / weight bytes, and of each source its share of T.
With a temperature a weight is size ** temperature, times the source's own weight if it has one. So mBERT takes more of
small languages than their share of all text (0.7: google-research/bert, multilingual.md), and XLM-R more still (0.3:
Conneau et al. 2020, section 3.1).
Repeating a source is how the training mixes of GPT-3 (Brown et al. 2020, table 2.2) and of Llama (Touvron et al. 2023,
table 1) are given, with weights and epochs.

All of it depends on the documents alone: a document is chosen by its hash, fragments are put in order by the names of
their sources, and the sizes are divided as fractions, so neither workers, containers nor the order of the sources in
the build's file change a byte.
"""

import decimal
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.inputs.units import Digest
from maskmill.masking.seeds import hash_of
from maskmill.storage import completions
from maskmill.text_shards.eval_membership import choose_eval
from maskmill.text_shards.fragments import Fragment, in_order
from maskmill.text_shards.options import Source, SplitOptions
from maskmill.text_shards.planning import (
    Documents,
    Run,
    ShardPlan,
    no_article,
    plan_runs,
    read_documents,
    refuse_many_rejected,
)

Hashes = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# The record of what became of each source, which the closing step reads (`mix_counts`).
KIND = "mix"

_EPOCH_DIGITS = 4
_POWER_DIGITS = 20
_SHARE_DIGITS = 6


def decide_epochs(sizes: Sequence[int], sources: Sequence[Source]) -> list[Fraction]:
    """Return how often each source is taken: as often as its weight and the `max_epochs` of all sources allow.

    sizes: bytes of each source's training text; more than 0 if the source has a weight above 0, or none. Either all
    sources have weights, or none, unless they have a temperature.
    """
    temperature = sources[0].temperature
    if temperature is not None:
        weights = [
            Fraction(1 if source.weight is None else source.weight) * _power(size, temperature)
            for source, size in zip(sources, sizes, strict=True)
        ]
    elif sources[0].weight is None:
        return [Fraction(source.max_epochs) for source in sources]
    else:
        weights = [Fraction(source.weight or 0) for source in sources]
    # The bytes of the mix for each unit of weight.
    unit = min(
        Fraction(source.max_epochs) * size / weight
        for source, size, weight in zip(sources, sizes, weights, strict=True)
        if weight
    )
    return [unit * weight / size if weight else Fraction(0) for size, weight in zip(sizes, weights, strict=True)]


def _power(size: int, exponent: float) -> Fraction:
    """Return a size to a power, in so many digits that every machine computes the same."""
    with decimal.localcontext(prec=_POWER_DIGITS):
        return Fraction(decimal.Decimal(size) ** decimal.Decimal(str(exponent)))


def choose_passes(hashes: Hashes, sizes: Integers, epochs: Fraction, seed: int) -> list[Flags]:
    """Return which documents of a source are taken, for each pass over them, [documents].

    The last, partial pass takes documents by a hash of the seed and of their own hash, as many as come nearest to its
    bytes. A document that the pass repeats never stands next to itself, unless it is the source's only one.

    hashes, sizes: `eval_hash` and bytes of each document, [documents]. epochs: how often the source is taken.
    """
    whole, part = divmod(epochs, 1)
    passes = [np.ones(len(sizes), bool)] * whole
    order = np.lexsort((sizes, _choice_hash(hashes, seed)))
    taken = np.concatenate([[0], np.cumsum(sizes[order])])
    wanted = float(part * int(taken[-1]))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[: int(np.argmin(np.abs(taken - wanted)))]] = True
    if not chosen.any():
        return passes
    # Only the last document alone would stand after itself.
    return [chosen, *passes] if np.argmax(chosen) == len(sizes) - 1 else [*passes, chosen]


def _choice_hash(hashes: Hashes, seed: int) -> Hashes:
    """Return the order in which a partial epoch takes documents: their hashes, spread anew (splitmix64's finalizer).

    The hashes themselves will not do: those of the eval set are the smallest of them.
    """
    mixed = hashes ^ np.uint64(hash_of(f"{seed}:mix"))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    spread: Hashes = mixed ^ (mixed >> np.uint64(31))
    return spread


def plan_mix(
    elements: Iterable[Fragment | Digest],
    split: SplitOptions,
    sources: Sequence[Source],
    output: str,
) -> list[ShardPlan]:
    """Plan all shards of a mix from its fragments' tables, in whatever order they come: training text, then eval.

    elements: the fragments, and the checksums of inputs that they lack. sources: in the order of their names. output:
    the directory of the shards; the record of the mix is written there.

    Raises:
      UnusableInputError: a source gives no document, or none for training although it has a weight; two sources have an
        input of the same content; the eval set needs more documents than there are.
    """
    elements = list(elements)
    ordered = in_order(element for element in elements if isinstance(element, Fragment))
    _refuse_equal_inputs(ordered, {one.path: one.sha256 for one in elements if isinstance(one, Digest)})
    of_source = {source.name: [f for f in ordered if f.batch.source == source.name] for source in sources}
    documents = []
    for source in sources:
        of_one = of_source[source.name]
        refuse_many_rejected(of_one, source.extraction.max_rejected_share, output)
        documents.append(read_documents(of_one, source.max_documents, source.extraction, output))
        if not len(documents[-1].table):
            raise UnusableInputError(f"sources.{source.name}: {no_article(of_one, output)}")
    is_eval = choose_eval(np.concatenate([one.table["hash"] for one in documents]), split)
    held_out = np.split(is_eval, np.cumsum([len(one.table) for one in documents])[:-1])
    train = _choose_documents(sources, documents, held_out)
    evaluation = [Run(one, [is_out]) for one, is_out in zip(documents, held_out, strict=True)]
    completions.store(output, KIND, KIND, _describe(sources, documents, held_out, train))
    return plan_runs(train, evaluation, split, output)


def _refuse_equal_inputs(fragments: Sequence[Fragment], digests: Mapping[str, str]) -> None:
    """Raise UnusableInputError if two sources have an input of the same content: an article that is held out in one
    of them would be trained on in the other."""
    seen: dict[str, tuple[str, str]] = {}
    for fragment in fragments:
        source = fragment.batch.source
        for file in fragment.batch.files:
            other, path = seen.setdefault(digests.get(file.path, file.sha256), (source, file.path))
            if other != source:
                raise UnusableInputError(
                    f"{file.path} of sources.{source} has the content of {path} of sources.{other}, so articles that "
                    "one of them holds out would be trained on in the other; leave one of the two files out."
                )


def _choose_documents(
    sources: Sequence[Source], documents: Sequence[Documents], held_out: Sequence[Flags]
) -> list[Run]:
    """Return the training text of each source: what is not held out, as often as the mix takes it."""
    for source, is_out in zip(sources, held_out, strict=True):
        if is_out.all() and source.weight != 0:
            raise UnusableInputError(
                f"sources.{source.name}: all {len(is_out):,} articles fall into the eval set, so none is left for "
                "training; hold out fewer, or take the source out."
            )
    left = [Run(one, [~is_out]) for one, is_out in zip(documents, held_out, strict=True)]
    epochs = decide_epochs([run.size for run in left], sources)
    return [
        Run(run.documents, _taken(run, of_source, source.extraction.random_seed))
        for run, of_source, source in zip(left, epochs, sources, strict=True)
    ]


def _taken(left: Run, epochs: Fraction, seed: int) -> list[Flags]:
    """Return which documents are taken of those that are left for training, for each pass, [documents]."""
    (is_left,) = left.passes
    rows = left.documents.table[is_left]
    passes = []
    for chosen in choose_passes(rows["hash"], rows["size"].astype(np.int64), epochs, seed):
        passes.append(is_left.copy())
        passes[-1][is_left] = chosen
    return passes


def _describe(
    sources: Sequence[Source], documents: Sequence[Documents], held_out: Sequence[Flags], train: Sequence[Run]
) -> dict[str, dict[str, Any]]:
    """Return what becomes of each source, by name."""
    used = [run.size for run in train]
    described = {}
    for place, source in enumerate(sources):
        available = int(documents[place].table["size"][~held_out[place]].sum())
        described[source.name] = {
            "documents": len(held_out[place]),
            "held_out": int(held_out[place].sum()),
            "used": train[place].count,
            "bytes": used[place],
            "epochs": round(used[place] / max(1, available), _EPOCH_DIGITS),
            "share": round(used[place] / max(1, sum(used)), _SHARE_DIGITS),
        }
    return described


def mix_counts(output: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what became of each source, by name, once `plan_mix` has decided.

    documents: those that could be used, without what filters, duplicates and limits took. held_out: how many of them
    are the eval set's. used: how many documents the training text has of the source, each counted as often as it
    stands there, and `bytes`, their size. epochs: how often the source's training text is taken. share: of the mix's
    bytes.
    """
    return completions.finished(output, KIND, KIND)
