"""maskmill: Wikipedia dumps and text corpora to masked-language-model pre-training data.

`open` reads a data set back in batches. Importing this package imports nothing else: no Beam, no framework, no numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from transforms.loading.loader import Loader

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
        workers, tail, features, with_samples, prefetch: see transforms.loading.options.LoaderOptions. split,
        vocab_file, vocabulary_size, max_seq_length, checksums, cache_dir, cache_bytes: see
        transforms.loading.sources.OpeningOptions.

    Raises:
      transforms.errors.UnusableInputError: the data set, or an option, cannot be used; one sentence says why.
      transforms.errors.RunFailedError: a file cannot be read.
    """
    from transforms.loading.loaders import open_loader

    return open_loader(path, options)
