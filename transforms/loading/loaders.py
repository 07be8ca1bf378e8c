"""Opens data sets to read them: what `maskmill.open` does."""

import dataclasses
import difflib
import os
from collections.abc import Mapping
from typing import Any

from transforms.errors import UnusableInputError
from transforms.loading.loader import Loader
from transforms.loading.options import LoaderOptions
from transforms.loading.sources import OpeningOptions, source_of


def open_loader(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Loader:
    """Opens a data set; see maskmill.open.

    Args:
      path: the data set, see opening.open_data_set.
      options: by name, those of OpeningOptions and of LoaderOptions.
    """
    opening, loading = split_options(options)
    ranges = opening.ranges(os.fspath(path))
    return Loader([source_of(opening.data_set(path, ranges), opening, ranges)], loading)


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
