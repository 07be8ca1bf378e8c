"""Eval membership: which documents are held out for evaluation.

The hash of a document's id and the seed puts all documents of all corpora into one order, and the first of that order
are held out. So a document stays in or out when the dump is built again, and neither the container of the input, nor
its cut into units, nor the number of workers has a say in it.
"""

import numpy as np
import numpy.typing as npt

from maskmill.errors import UnusableInputError
from maskmill.masking.seeds import hash_of
from maskmill.text_shards.options import SplitOptions

_HASHES = 2**64


def eval_hash(seed: int, identity: str) -> int:
    """Return a document's place in the order of eval membership: uniform in 0..2^64-1, from the seed and its id
    alone.
    """
    return hash_of(f"{seed}:eval:{identity}")


def is_held_out(seed: int, identity: str, eval_fraction: float) -> bool:
    """Return whether a fraction holds a document out, whatever else the corpus holds; as `choose_eval`."""
    return eval_hash(seed, identity) < int(eval_fraction * _HASHES)


def choose_eval(hashes: npt.NDArray[np.uint64], options: SplitOptions) -> npt.NDArray[np.bool_]:
    """Mark the documents of the eval set.

    With a fraction, a document is in when its hash is below a threshold, whatever else the corpus holds: membership
    never changes when the data is rebuilt. With a count, the documents of the smallest hashes are in, the earlier one
    where two are equal.

    hashes: `eval_hash` of each document, [documents]. Returns True for each document of the eval set, [documents].

    Raises:
      UnusableInputError: the count is more than there are documents.
    """
    if options.eval_fraction is not None:
        is_below: npt.NDArray[np.bool_] = hashes < np.uint64(int(options.eval_fraction * _HASHES))
        return is_below
    count = options.num_eval_articles or 0
    if count > len(hashes):
        raise UnusableInputError(
            f"--num_eval_articles {count} is more than the {len(hashes)} articles there are; ask for fewer."
        )
    is_eval = np.zeros(len(hashes), bool)
    is_eval[np.argsort(hashes, kind="stable")[:count]] = True
    return is_eval
