"""Options of reading are checked where they are made."""

from collections.abc import Callable

import pytest

from maskmill.errors import UnusableInputError
from maskmill.inputs.options import ReadOptions


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReadOptions(text_documents="page"), "text_documents"),  # type: ignore[arg-type]
        (lambda: ReadOptions(text_column=""), "text_column is empty"),
        (lambda: ReadOptions(largest_page=0), "largest_page must be 1 byte or more, not 0"),
    ],
)
def test_options_are_checked(make: Callable[[], ReadOptions], message: str) -> None:
    with pytest.raises(UnusableInputError, match=message):
        make()
