"""Validity of UTF-8."""


def invalid_utf8_at(text: bytes) -> int | None:
    """Return the place of the first byte that is not valid UTF-8, or None where all are."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def is_utf8(text: bytes) -> bool:
    """Return whether `text` is valid UTF-8 (RFC 3629)."""
    return invalid_utf8_at(text) is None
