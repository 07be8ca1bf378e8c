"""maskmill: Wikipedia dumps and text corpora to masked-language-model pre-training data.

`open` reads a data set back in batches, `mix` several as one, `lease` keeps a release while it is read. Importing this
package imports nothing else: no Beam, no framework, no numba.
"""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from maskmill.loading.loader import Loader
    from maskmill.releases.leases import Lease

__version__ = "0.1.0"


def open(path: str | os.PathLike[str], **options: Any) -> Loader:
    """Opens a data set to read it in batches.

        data = maskmill.open("demo", batch_size=256)
        for batch in data:
            batch["input_ids"]  # int32[256, 128]

    Args:
      path: a directory that maskmill wrote: of examples in any format, of a whole build, or of its picked eval
        examples; or TFRecords: a file, a glob, or a list of both separated by commas. Local, gs:// or http(s)://.
      options: batch_size (samples of a batch of all ranks together), seed, shuffle, window, rank, ranks, worker,
        workers, tail, features, with_samples, prefetch: see maskmill.loading.options.LoaderOptions. split,
        vocab_file, vocabulary_size, max_seq_length, checksums, cache_dir, cache_bytes: see
        maskmill.loading.sources.OpeningOptions.

    Raises:
      maskmill.errors.UnusableInputError: the data set, or an option, cannot be used; one sentence says why.
      maskmill.errors.RunFailedError: a file cannot be read.
    """
    from maskmill.loading.loaders import open_loader

    return open_loader(path, options)


def mix(
    sources: Sequence[tuple[str | os.PathLike[str], float]],
    *,
    max_repetitions: float | Sequence[float | None] | None = None,
    **options: Any,
) -> Loader:
    """Opens several data sets to read them as one, in which each has its share of the samples.

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
      options: as for `open`, the same for all.

    Raises:
      maskmill.errors.UnusableInputError: a data set or an option cannot be used, or the data sets do not go together.
      maskmill.errors.RunFailedError: a file cannot be read.
    """
    from maskmill.loading.loaders import mix_loader

    return mix_loader(sources, max_repetitions, options)


def lease(path: str | os.PathLike[str], *, owner: str = "") -> AbstractContextManager[Lease]:
    """Keeps a release of a data set while it is read: `maskmill build --release --keep` does not remove it.

        with maskmill.lease("demo") as held:  # the latest release below demo
            data = maskmill.open(held.path)

    A small file beside the release says that it is read. A thread renews it, the end of the block deletes it, and it
    counts no more five minutes after its process died.

    Args:
      path: a release, a path in it, also through OUTPUT/latest, or the directory above all releases: then the latest is
        meant. On a local disk or gs://.
      owner: who reads it, as it is shown to who wants to remove it; empty: user@host:pid.

    Returns:
      what `with` takes. Its `path` stays the same release's when another one becomes the latest, `release` is the
      release's directory, and `check()` raises if the lease was lost.

    Raises:
      maskmill.errors.UnusableInputError: there is no complete release, or nothing can be written beside it.
      maskmill.errors.RunFailedError: the object store does not answer.
    """
    from maskmill.releases.leases import hold_any

    return hold_any(fspath(path), owner=owner)
