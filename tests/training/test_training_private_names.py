"""The private names of other libraries that training uses are still there."""

import dataclasses
import re
from pathlib import Path

import pytest
from training_helpers import BACKEND

from training import private_names

pytestmark = pytest.mark.skipif(BACKEND == "tensorflow", reason="the names are those of both backends")

TRAINING = Path(private_names.__file__).parent


@pytest.mark.parametrize("private", private_names.PRIVATE_NAMES, ids=lambda private: private.name)
def test_the_private_name_is_still_there(private):
    assert private not in private_names.missing(), (
        f"{private.module}.{private.name} is gone: it was last seen in {private.seen_in}, and maskmill uses it in "
        f"{private.used_for}."
    )


def test_a_name_that_is_gone_is_reported(monkeypatch):
    first = private_names.PRIVATE_NAMES[0]
    gone = (
        dataclasses.replace(first, name="TransformerEncoder._no_such_layer"),
        dataclasses.replace(first, name="NoSuchClass._self_attention_layer"),
        dataclasses.replace(first, module="keras_hub.no_such_module"),
    )
    monkeypatch.setattr(private_names, "PRIVATE_NAMES", (first, *gone))
    assert private_names.missing() == list(gone)


def test_every_private_name_that_is_used_is_listed():
    """An attribute with a leading underscore, of anything but `self`, belongs to another library."""
    used = set()
    for path in TRAINING.glob("*.py"):
        if path.name != "private_names.py":
            used |= set(re.findall(r"(?<!\bself)\.(_[a-z]\w*)", path.read_text(encoding="utf-8")))
    listed = {private.name.split(".")[1] for private in private_names.PRIVATE_NAMES}
    # sys._getframe is documented by CPython. _get_variable_index is called on `self`, a subclass of Keras's optimizer.
    assert used - {"_getframe"} == listed - {"_get_variable_index"}
