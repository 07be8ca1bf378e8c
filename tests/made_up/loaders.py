"""A loader of a data set that is made up, and its order."""

import itertools
from collections.abc import Sequence
from typing import Any

from made_up.data_sets import data_set, samples_in, source
from maskmill.loading.loader import Loader
from maskmill.loading.options import LoaderOptions


def loader(*, widths: Sequence[int] = (), **options: Any) -> Loader:
    """A loader of three files, with other options than these where they are given."""
    chosen = LoaderOptions(**{"batch_size": 6, "seed": 3, "window": 16, **options})
    return Loader([source(data_set([20, 13, 20], widths=widths))], chosen)


def in_order(**options: Any) -> list[list[int]]:
    """The samples of the first batches of a reader that is alone."""
    return [samples_in(batch) for batch in itertools.islice(loader(**options).endless(), 40)]
