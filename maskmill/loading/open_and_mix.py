"""Open data sets to read them in batches: `maskmill.open` and `maskmill.mix`."""

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

# The kernels of reading. Opening a data set compiles or loads them: otherwise each worker would compile them.
KERNELS = ("kernels.crc32c", "reading", "loading", "masking.kernels.row_masks", "records.kernels.frames")


@checked
def open(
    path: str | os.PathLike[str],
    *,
    # The batches.
    batch_size: int,
    tail: Tail = "drop",
    features: Features = "google",
    with_samples: bool = False,
    prefetch: int = 4,
    # The order of the samples.
    seed: int = 0,
    shuffle: bool = True,
    window: int = 16384,
    # The part of them that is read here.
    rank: int = 0,
    ranks: int = 1,
    worker: int = 0,
    workers: int = 1,
    # The data set.
    split: Split = "train",
    vocab_file: str | os.PathLike[str] | None = None,
    text: str | os.PathLike[str] | None = None,
    checksums: bool = False,
    # What the model takes.
    vocabulary_size: int | None = None,
    max_seq_length: int | None = None,
    # Copies of remote files.
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
    # Rows that are made of text shards.
    tokenizer: str | os.PathLike[str] | None = None,
    objective: Objective | None = None,
    examples: Mapping[str, Any] | None = None,
    index_dir: str | os.PathLike[str] | None = None,
) -> Loader:
    """Open a data set to read it in batches.

        data = maskmill.open("demo", batch_size=256)
        for batch in data:
            batch["input_ids"]  # int32[256, 128]

    Text shards are a data set, too, given a tokenizer and the options of rows:

        data = maskmill.open("demo/text", tokenizer="vocab.txt", objective="mlm", max_seq_length=512, batch_size=256)

    Args:
      path: a directory that maskmill wrote: of examples in any format, of a whole build, or of its picked eval
        examples; or TFRecords: a file, a glob, or a list of both separated by commas. Local, gs:// or http(s)://.

      batch_size: samples of a batch of all ranks together; a multiple of `ranks`.
      tail: the last batch of an epoch, if samples do not fill it. "drop": left out. "pad": filled up with rows of
        padding, which have 0 in `sample_weights` (float32[batch]). "repeat": filled up with the epoch's first
        samples. "carry": filled up with the first samples of the next epoch, which starts after them.
      features: the names of arrays: "google" as in BERT, "v2" as in TensorFlow Models, or "huggingface", for models of
        transformers: int64, with a label for every piece (-100: none); not for packed rows.
      with_samples: whether batches have `samples` (int64[batch]), the numbers of their samples, -1 for padding.
      prefetch: the number of batches to make ahead of use.

      seed: any integer; decides the order and the masks.
      shuffle: whether samples are shuffled; otherwise they come in the order of the files.
      window: most samples that are shuffled among each other at a time; fewer if rows are large.

      rank, ranks: the part of each batch to read here: rows [rank, rank + 1) * batch_size / ranks.
      worker, workers: the batches of the rank to read here: those whose number modulo `workers` is `worker`.

      split: "train" or "eval".
      vocab_file: the vocabulary of a data set without a copy of it.
      text: for data sets of spans, the directory of their text shards; None: as recorded, relative to the data set.
      checksums: whether opening reads all files, and compares their checksums with the manifest's.

      vocabulary_size: of the model: ids must be below it. None: not checked.
      max_seq_length: most pieces of a row that the model takes. None: not checked.

      cache_dir: the directory of the cache of remote files; None: below the user's cache directory.
      cache_bytes: the most bytes of this cache; 0: no cache; None: 8 GiB.

      tokenizer: a vocab.txt or a tokenizer.json, if the path is that of text shards (the directory that extract made, a
        file or a glob). Their rows have max_seq_length pieces (None: 128). The first time that a text is opened, an
        index of its rows is written, of at most 2 % of the text's size. The batches are those of `maskmill
        examples --format spans`.
      objective: with tokenizer, the objective: "nsp", "mlm", "blocks" or "sop"; None: "nsp".
      examples: with tokenizer, other options of `maskmill examples` by name, as {"pack": True, "masked_lm_prob": 0.3}.
      index_dir: with tokenizer, the directory of this machine below which the index is kept; None: the user's cache
        directory.

    Returns:
      a Loader. Its batches are dicts of NumPy arrays: input_ids and input_mask int32[batch, pieces],
      masked_lm_positions and masked_lm_ids int32[batch, masks], masked_lm_weights float32[batch, masks], and the other
      columns of the data set; `Loader.spec` lists them.

    Raises:
      UnusableInputError: the data set, or an argument, cannot be used.
      RunFailedError: a file cannot be read.
    """
    opening, loading = _options(locals())
    compiler.prepare(KERNELS)
    if tokenizer is not None:
        from maskmill.loading.text_indexes import index_of_text  # imports the writers of examples: it takes a moment

        of_rows = {"objective": objective, "max_seq_length": max_seq_length, **(examples or {})}
        options = {name: value for name, value in of_rows.items() if value is not None}
        place = None if index_dir is None else os.fspath(index_dir)
        text_path, tokenizer_file = (os.path.expanduser(os.fspath(one)) for one in (path, tokenizer))
        path = index_of_text(text_path, tokenizer_file, options, place)
    elif any(value is not None for value in (objective, examples, index_dir)):
        raise UnusableInputError("objective, examples and index_dir are for rows made of text; give tokenizer too.")
    ranges = opening.ranges(os.fspath(path))
    source = source_of(opening.data_set(path, ranges), opening, ranges)
    compiler.prepare(source.reader.kernels)
    return Loader([source], loading)


@checked
def mix(
    sources: Sequence[tuple[str | os.PathLike[str], float]],
    *,
    max_repetitions: float | Sequence[float | None] | None = None,
    # The batches.
    batch_size: int,
    tail: Tail = "drop",
    features: Features = "google",
    with_samples: bool = False,
    prefetch: int = 4,
    # The order of the samples.
    seed: int = 0,
    shuffle: bool = True,
    window: int = 16384,
    # The part of them that is read here.
    rank: int = 0,
    ranks: int = 1,
    worker: int = 0,
    workers: int = 1,
    # The data set.
    split: Split = "train",
    vocab_file: str | os.PathLike[str] | None = None,
    text: str | os.PathLike[str] | None = None,
    checksums: bool = False,
    # What the model takes.
    vocabulary_size: int | None = None,
    max_seq_length: int | None = None,
    # Copies of remote files.
    cache_dir: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
) -> Loader:
    """Open several data sets to read them as one, each with its share of the samples.

        data = maskmill.mix([("wiki", 0.7), ("books", 0.3)], max_repetitions=4, batch_size=256)
        for batch in data:
            batch["input_ids"]  # of both
        data.given(1000)  # the counts of each in 1,000 batches

    The order of the samples depends on the data sets, the weights and the seed, not on batches, ranks or workers. Each
    data set is read in its own order, epoch after epoch. The data sets need the same vocabulary and the same columns;
    their rows may differ in length, and masks may be stored in one and drawn for another.

    Args:
      sources: paths, each as for `open`, and weights. Shares are of samples, in proportion to the weights.
      max_repetitions: the most uses of each sample of a data set: one number for all, or one for each. After them the
        others have its share, and the log says so. If all have such a number, the mix has an end. None: no limit.
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
            "tail is carry, but a mix in which each data set has max_repetitions has no next epoch whose samples could "
            "fill its last batch; choose drop, pad or repeat."
        )
    opened = [source_of(data_set, opening, of_path) for data_set, of_path in zip(data_sets, ranges, strict=True)]
    compiler.prepare([name for source in opened for name in source.reader.kernels])
    return Loader(opened, loading, of_all)


def _options(arguments: Mapping[str, Any]) -> tuple[OpeningOptions, LoaderOptions]:
    """Return the arguments as options: those of opening data sets, and those of batches."""
    values = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in arguments.items()}
    of_opening, of_loading = (
        {field.name: values[field.name] for field in dataclasses.fields(kind)}
        for kind in (OpeningOptions, LoaderOptions)
    )
    return OpeningOptions(**of_opening), LoaderOptions(**of_loading)
