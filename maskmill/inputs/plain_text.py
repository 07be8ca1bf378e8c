"""One kind of line end, and no control characters: what every reader makes of the text that it finds.

Unicode says of CR LF, CR, LF, U+000B, U+000C, U+0085, U+2028 and U+2029 that they end a line (The Unicode Standard, 5.8
Newline Guidelines). A tokenizer drops some of them, and would join the words on both sides.
"""

import re

import numpy as np

_CONTROLS = bytes(range(ord(" "))) + b"\x7f"
# The four separators are white space to Python, and what stands on both sides of one are two words.
_AS = bytes.maketrans(b"\v\f\x1c\x1d\x1e\x1f", b"\n\n    ")
_DROPPED = bytes(set(_CONTROLS) - set(b"\t\n\r\v\f\x1c\x1d\x1e\x1f"))
# \r\r\n is what a program makes that writes CR LF for the LF of CR LF.
CARRIAGE_RETURNS = re.compile(rb"\r\r?\n|\r")
_LINE_ENDS = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")
_LATE_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]")  # U+0080 to U+009F


def plain_text(text: bytes) -> bytes:
    r"""Write every line end of a text as "\n", and drop the control characters that no text has; text: UTF-8."""
    if not _may_have_controls(text):
        return text
    text = CARRIAGE_RETURNS.sub(b"\n", text).translate(_AS, _DROPPED)
    return _LATE_CONTROLS.sub(b"", _LINE_ENDS.sub(b"\n", text))


def _may_have_controls(text: bytes) -> bool:
    """Return whether a text has any byte that `plain_text` may change: a fraction of its work, and enough for most
    texts.
    """
    low = np.count_nonzero(np.frombuffer(text, np.uint8) < ord(" "))
    return (
        low != text.count(b"\n") + text.count(b"\t")
        or b"\x7f" in text
        or b"\xc2" in text
        or b"\xe2\x80\xa8" in text
        or b"\xe2\x80\xa9" in text
    )
