"""Opens data sets to read them: what `maskmill.open` and `maskmill.mix` do."""

import dataclasses
import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.kernels import compiler
from maskmill.loading.batches import alike
from maskmill.loading.loader import Loader
from maskmill.loading.mixing import mix_of
from maskmill.loading.options import LoaderOptions
from maskmill.loading.sources import OpeningOptions, source_of

# What reading calls. It is compiled, or loaded, when a data set is opened: otherwise each worker would compile it.
KERNELS = ("kernels.crc32c", "reading", "loading", "masking.kernels.row_masks", "records.kernels.frames")


def open_loader(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Loader:
    """Opens a data set; see maskmill.open.

    Args:
      path: the data set, see opening.open_data_set.
      options: by name, those of OpeningOptions and of LoaderOptions.
    """
    opening, loading = split_options(options)
    compiler.prepare(KERNELS)
    ranges = opening.ranges(os.fspath(path))
    return Loader([source_of(opening.data_set(path, ranges), opening, ranges)], loading)


def mix_loader(
    sources: Sequence[tuple[str | os.PathLike[str], float]],
    max_repetitions: float | Sequence[float | None] | None,
    options: Mapping[str, Any],
) -> Loader:
    """Opens several data sets as one; see maskmill.mix.

    Args:
      sources: paths and weights.
      max_repetitions: see mixing.mix_of.
      options: as for `open_loader`.
    """
    opening, loading = split_options(options)
    if not sources:
        raise UnusableInputError("There is no data set to mix; name some, each with its weight.")
    for source in sources:
        if isinstance(source, str) or len(source) != len(("path", "weight")):
            raise UnusableInputError(f"{source!r} is no pair of a path and a weight; mix [(path, weight), …].")
    compiler.prepare(KERNELS)
    ranges = [opening.ranges(os.fspath(path)) for path, _ in sources]
    found = [opening.data_set(path, of_path) for (path, _), of_path in zip(sources, ranges, strict=True)]
    data_sets = alike(found)
    mix = mix_of(data_sets, [weight for _, weight in sources], max_repetitions=max_repetitions, seed=loading.seed)
    if mix.length is not None and loading.tail == "carry":
        raise UnusableInputError(
            "tail is carry, but a mix of which each data set has max_repetitions has no next epoch whose samples could "
            "fill its last batch; choose drop, pad or repeat."
        )
    opened = [source_of(data_set, opening, of_path) for data_set, of_path in zip(data_sets, ranges, strict=True)]
    return Loader(opened, loading, mix)


def split_options(options: Mapping[str, Any]) -> tuple[OpeningOptions, LoaderOptions]:
    """Options by name, for opening data sets and for making batches of them.

    Raises:
      UnusableInputError: there is no option of such a name, or batch_size is missing.
    """
    of_opening, of_loading = (
        {field.name for field in dataclasses.fields(kind)} for kind in (OpeningOptions, LoaderOptions)
    )
    for name in options:
        if name not in of_opening | of_loading:
            nearest = difflib.get_close_matches(name, of_opening | of_loading, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else "."
            raise UnusableInputError(f"There is no option {name} for reading a data set{hint}")
    if "batch_size" not in options:
        raise UnusableInputError("batch_size is missing; say how many samples a batch of all ranks together has.")
    opening = OpeningOptions(**{name: value for name, value in options.items() if name in of_opening})
    return opening, LoaderOptions(**{name: value for name, value in options.items() if name in of_loading})
