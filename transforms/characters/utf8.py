"""Validity of UTF-8."""


def is_utf8(text: bytes) -> bool:
    """Whether `text` is valid UTF-8 (RFC 3629)."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
