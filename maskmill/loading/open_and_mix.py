"""Opens data sets to read them: `maskmill.open` and `maskmill.mix`."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.kernels import compiler
from maskmill.loading.batches import alike
from maskmill.loading.loader import Loader
from maskmill.loading.mixing import mix_of
from maskmill.loading.opened_sources import OpeningOptions, Split, source_of
from maskmill.loading.options import Features, LoaderOptions, Tail
from maskmill.masking.objective_options import Objective

# What reading calls. It is compiled, or loaded, when a data set is opened: otherwise each worker would compile it.
KERNELS = ("kernels.crc32c", "reading", "loading", "masking.kernels.row_masks", "records.kernels.frames")


@checked
def open(
    path: str | os.PathLike[str],
    *,
    batch_size: int,
    seed: int = 0,
    shuffle: bool = True,
    window: int = 16384,
    rank: int = 0,
    ranks: int = 1,
    worker: int = 0,
    workers: int = 1,
    tail: Tail = "drop",
    features: Features = "google",
    with_samples: bool = False,
    prefetch: int = 4,
    split: Split = "train",
    vocab_file: str | os.PathLike[str] | None = None,
    vocabulary_size: int | None = None,
    max_seq_length: int | None = None,
    checksums: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
    text: str | os.PathLike[str] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    objective: Objective | None = None,
    examples: Mapping[str, Any] | None = None,
    index_dir: str | os.PathLike[str] | None = None,
) -> Loader:
    """Open a data set to read it in batches.

        data = maskmill.open("demo", batch_size=256)
        for batch in data:
            batch["input_ids"]  # int32[256, 128]

    Text shards are a data set, too, if it is said how rows are made of them:

        data = maskmill.open("demo/text", tokenizer="vocab.txt", objective="mlm", max_seq_length=512, batch_size=256)

    Args:
      path: a directory that maskmill wrote: of examples in any format, of a whole build, or of its picked eval
        examples; or TFRecords: a file, a glob, or a list of both separated by commas. Local, gs:// or http(s)://.
      batch_size: samples of a batch of all ranks together; a multiple of `ranks`.
      seed: any integer; gives the order and the masks.
      shuffle: whether samples are shuffled; otherwise they come in the order of the files.
      window: most samples that are shuffled among each other at a time. Less if a row is large.
      rank, ranks: which part of each batch is read here: rows [rank, rank + 1) * batch_size / ranks.
      worker, workers: of the rank's batches, which are read here: those whose number modulo `workers` is `worker`.
      tail: the last batch of an epoch, if samples do not fill it. "drop": left out. "pad": filled up with rows of
        padding, and `sample_weights` (float32[batch]) tells them by 0. "repeat": filled up with the epoch's first
        samples. "carry": filled up with the first samples of the next epoch, which starts after them.
      features: what arrays are called: "google" as in BERT, "v2" as in TensorFlow Models, or "huggingface", which has
        labels for every piece (-100: none) and int64, as a model of transformers takes; not of packed rows.
      with_samples: whether batches have `samples` (int64[batch]), the numbers of their samples, -1 for padding.
      prefetch: how many batches are made ahead of use.
      split: "train" or "eval".
      vocab_file: the vocabulary, for a data set that has no copy of it.
      vocabulary_size: of the model: ids must be below it. None: not checked.
      max_seq_length: most pieces of a row that the model takes. None: not checked.
      checksums: whether all files are read through at once, and their checksums compared with the manifest's.
      cache_dir: where pieces of remote files are kept; None: below the user's cache directory.
      cache_bytes: how much is kept there at most; 0: nothing; None: 8 GiB.
      text: for data sets of spans, the directory of their text shards; None: where they were, seen from the data set.
      tokenizer: a vocab.txt or a tokenizer.json: the path is that of text shards (the directory that extract made, a
        file or a glob), and rows are made of them, of max_seq_length pieces (None: 128). When a text is opened for the
        first time, the index of its rows is made, once: at most 2 % of the text. The batches are those of `maskmill
        examples --format spans`.
      objective: with tokenizer, what is learnt: "nsp", "mlm", "blocks" or "sop"; None: "nsp".
      examples: with tokenizer, other options of `maskmill examples` by name, as {"pack": True, "masked_lm_prob": 0.3}.
      index_dir: with tokenizer, below which directory of this machine the index is kept; None: the user's cache
        directory.

    Returns:
      a Loader. Its batches are dicts of NumPy arrays: input_ids and input_mask int32[batch, pieces],
      masked_lm_positions and masked_lm_ids int32[batch, masks], masked_lm_weights float32[batch, masks], and what else
      the data set has; `Loader.spec` lists them.

    Raises:
      UnusableInputError: the data set, or an argument, cannot be used; one sentence says why.
      RunFailedError: a file cannot be read.
    """
    opening, loading = _options(locals())
    compiler.prepare(KERNELS)
    if tokenizer is not None:
        from maskmill.loading.text_indexes import index_of_text  # which imports what makes examples: it takes a moment

        given = {"objective": objective, "max_seq_length": max_seq_length, **(examples or {})}
        options = {name: value for name, value in given.items() if value is not None}
        place = None if index_dir is None else os.fspath(index_dir)
        text_path, tokenizer_file = (os.path.expanduser(os.fspath(one)) for one in (path, tokenizer))
        path = index_of_text(text_path, tokenizer_file, options, place)
    elif any(value is not None for value in (objective, examples, index_dir)):
        raise UnusableInputError("objective, examples and index_dir say how rows are made of text; give tokenizer too.")
    ranges = opening.ranges(os.fspath(path))
    source = source_of(opening.data_set(path, ranges), opening, ranges)
    compiler.prepare(source.reader.kernels)
    return Loader([source], loading)


@checked
def mix(
    sources: Sequence[tuple[str | os.PathLike[str], float]],
    *,
    max_repetitions: float | Sequence[float | None] | None = None,
    batch_size: int,
    seed: int = 0,
    shuffle: bool = True,
    window: int = 16384,
    rank: int = 0,
    ranks: int = 1,
    worker: int = 0,
    workers: int = 1,
    tail: Tail = "drop",
    features: Features = "google",
    with_samples: bool = False,
    prefetch: int = 4,
    split: Split = "train",
    vocab_file: str | os.PathLike[str] | None = None,
    vocabulary_size: int | None = None,
    max_seq_length: int | None = None,
    checksums: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
    text: str | os.PathLike[str] | None = None,
) -> Loader:
    """Open several data sets to read them as one, in which each has its share of the samples.

        data = maskmill.mix([("wiki", 0.7), ("books", 0.3)], max_repetitions=4, batch_size=256)
        for batch in data:
            batch["input_ids"]  # of both
        data.given(1000)  # what each gave in 1,000 batches

    Which data set gives which sample follows from the data sets, the weights and the seed, not from batches, ranks or
    workers. Each data set is read in its own order, epoch after epoch. The data sets need the same vocabulary and the
    same columns; their rows may differ in length, and masks may be stored in one and drawn for another.

    Args:
      sources: paths, each as for `open`, and weights. Shares are of samples, in proportion to the weights.
      max_repetitions: how often each sample of a data set is given at most: one number for all, or one for each. From
        there on the others have its share, and the log says so. If all have such a number, the mix has an end. None:
        any number of times.
      batch_size and all others: as for `open`, the same for all data sets.

    Raises:
      UnusableInputError: a data set or an argument cannot be used, or the data sets do not go together.
      RunFailedError: a file cannot be read.
    """
    opening, loading = _options(locals())
    if not sources:
        raise UnusableInputError("There is no data set to mix; name some, each with its weight.")
    compiler.prepare(KERNELS)
    ranges = [opening.ranges(os.fspath(path)) for path, _ in sources]
    found = [opening.data_set(path, of_path) for (path, _), of_path in zip(sources, ranges, strict=True)]
    data_sets = alike(found)
    of_all = mix_of(data_sets, [weight for _, weight in sources], max_repetitions=max_repetitions, seed=loading.seed)
    if of_all.length is not None and loading.tail == "carry":
        raise UnusableInputError(
            "tail is carry, but a mix of which each data set has max_repetitions has no next epoch whose samples could "
            "fill its last batch; choose drop, pad or repeat."
        )
    opened = [source_of(data_set, opening, of_path) for data_set, of_path in zip(data_sets, ranges, strict=True)]
    compiler.prepare([name for source in opened for name in source.reader.kernels])
    return Loader(opened, loading, of_all)


def _options(arguments: Mapping[str, Any]) -> tuple[OpeningOptions, LoaderOptions]:
    """Return the options among arguments, by name: for opening data sets, and for making batches of them."""
    given = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in arguments.items()}
    of_opening, of_loading = (
        {field.name: given[field.name] for field in dataclasses.fields(kind)}
        for kind in (OpeningOptions, LoaderOptions)
    )
    return OpeningOptions(**of_opening), LoaderOptions(**of_loading)
