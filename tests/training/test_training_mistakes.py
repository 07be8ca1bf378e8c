"""The table of mistakes that need TensorFlow, held to the same rules as all others (tests/test_mistakes.py)."""

import pytest
import test_mistakes
import training_mistakes
from test_mistakes import folder, good_inputs  # noqa: F401 - fixtures


@pytest.mark.parametrize("row", training_mistakes.MISTAKES, ids=lambda row: row.name)
def test_a_mistake_gets_one_sentence_and_loses_nothing(row, folder, capfd):  # noqa: F811 - the fixture
    test_mistakes.test_a_mistake_gets_one_sentence_and_loses_nothing(row, folder, capfd)
