"""Names of Keras and TensorFlow that are not promised: all there."""

import pytest

from maskmill import private_names


@pytest.mark.parametrize("library", ["keras", "keras-hub", "tensorflow"])
def test_every_private_name_is_there(library: str) -> None:
    gone = private_names.missing(library)
    assert not gone, "\n".join(gone)
