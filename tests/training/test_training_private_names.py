"""The private names of Keras and TensorFlow that training uses are listed, and are still there."""

import re
from pathlib import Path

import pytest

from maskmill import private_names

TRAINING = Path(__file__).parents[2] / "training"


@pytest.mark.parametrize("library", ["keras", "jax"])
def test_every_private_name_is_there(library: str) -> None:
    gone = private_names.missing(library)
    assert not gone, "\n".join(gone)


def test_every_private_name_that_is_used_is_listed() -> None:
    """An attribute with a leading underscore, of anything but `self`, belongs to another library."""
    used = set()
    for path in TRAINING.glob("*.py"):
        used |= set(re.findall(r"(?<!\bself)\.(_[a-z]\w*)", path.read_text(encoding="utf-8")))
    assert used, "the expression finds no private name any more"
    listed = {name.name.rpartition(".")[2] for name in private_names.PRIVATE_NAMES}
    listed |= {part for name in private_names.PRIVATE_NAMES for part in name.module.split(".")}
    # CPython documents sys._getframe and os._exit. PyTorch writes its module torch._utils into its files.
    assert used - {"_getframe", "_exit", "_utils"} <= listed
