"""Whether bytes are UTF-8."""


def is_utf8(text: bytes) -> bool:
    """Whether it is valid UTF-8."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
