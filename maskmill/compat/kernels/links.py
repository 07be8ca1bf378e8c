"""WikiExtractor's text: links within the wiki, and addresses of other sites. See bytes.py."""

import numpy as np

from maskmill.characters.kernels.characters import ASCII, SPACE, character, stripped_end, stripped_start
from maskmill.compat.kernels.bytes import (
    GREATER_MARK,
    LESS_MARK,
    NOTHING_TO_DO,
    QUOTE_MARK,
    copy,
    match,
    packed,
    skip_space,
)
from maskmill.kernels import ascii, kernel, lean_kernel


@lean_kernel
def _find(data, byte, start, end):
    """Return the first such byte of `start:end`, or -1."""
    for at in range(start, end):
        if data[at] == byte:
            return at
    return -1


@lean_kernel
def _find_last(data, byte, start, end):
    """Return the last such byte of `start:end`, or -1."""
    for at in range(end - 1, start - 1, -1):
        if data[at] == byte:
            return at
    return -1


# Of links to other wikis, those that keep their label.
_PREFIXES, _PREFIX_STARTS = packed((b"w", b"wiktionary", b"wikt"))


@lean_kernel
def _is_accepted_prefix(data, start, end):
    """Return whether bytes `start:end` are one of _PREFIXES, in lower case."""
    for number in range(_PREFIX_STARTS.size - 1):
        first = _PREFIX_STARTS[number]
        if end - start == _PREFIX_STARTS[number + 1] - first:
            at = start
            while at < end and data[at] == _PREFIXES[first + at - start]:
                at += 1
            if at == end:
                return True
    return False


@lean_kernel
def _keeps_link(data, start, end):
    """Return whether a link with this title keeps its label: not one to a file, a category, or a page of another
    wiki.
    """
    colon = _find(data, ascii.COLON, start, end)
    if colon > start:
        return _is_accepted_prefix(data, start, colon)
    if colon == start and end > start:
        colon = _find(data, ascii.COLON, start + 1, end)
        # WikiExtractor counts characters here, one of them being the first colon.
        if colon > start + 1:
            return _is_accepted_prefix(data, start + 1, colon)
    return True


@lean_kernel
def _label_pipe(data, start, pipe, end):
    """Return the pipe before the label of a link `start:end`: the last one that a nested link follows, else the first
    one.
    """
    searched = pipe + 1
    depth = 0
    nested_start = at = start
    while at + 1 < end:
        if data[at] == ascii.OPEN_BRACKET and data[at + 1] == ascii.OPEN_BRACKET:
            if depth == 0:
                nested_start = at
            depth += 1
            at += 2
        elif depth > 0 and data[at] == ascii.CLOSE_BRACKET and data[at + 1] == ascii.CLOSE_BRACKET:
            depth -= 1
            at += 2
            if depth == 0:
                last = _find_last(data, ascii.PIPE, searched, nested_start)
                if last >= 0:
                    pipe = last
                searched = at
        else:
            at += 1
    return pipe


@lean_kernel
def _label(model, data, start, end):
    """Return the label of the link whose inside is `start:end`: (its start, its end), an empty one if it is dropped."""
    first_pipe = _find(data, ascii.PIPE, start, end)
    if first_pipe < 0:
        return (start, end) if _keeps_link(data, start, end) else (start, start)
    if not _keeps_link(data, start, stripped_end(model, data, start, first_pipe)):
        return start, start
    first = stripped_start(model, data, _label_pipe(data, start, first_pipe, end) + 1, end)
    return first, stripped_end(model, data, first, end)


@kernel
def replace_links(model, data, out):
    """Put the label in place of each outermost `[[…]]`; word characters after a link stay with it."""
    size = data.size
    written = 0
    copied = 0
    depth = 0
    start = 0
    at = 0
    has_links = False
    while at + 1 < size:
        if data[at] == ascii.OPEN_BRACKET and data[at + 1] == ascii.OPEN_BRACKET:
            if depth == 0:
                start = at
            depth += 1
            has_links = True
            at += 2
        elif depth > 0 and data[at] == ascii.CLOSE_BRACKET and data[at + 1] == ascii.CLOSE_BRACKET:
            depth -= 1
            at += 2
            if depth == 0:
                written = copy(data, copied, start, out, written)
                first, last = _label(model, data, start + 2, at - 2)
                written = copy(data, first, last, out, written)
                copied = at
        else:
            at += 1
    return copy(data, copied, size, out, written) if has_links else NOTHING_TO_DO


# What may stand in front of the address of an external link.
_SCHEMES, _SCHEME_STARTS = packed(
    (
        *(b"bitcoin:", b"ftp://", b"ftps://", b"geo:", b"git://", b"gopher://", b"http://", b"https://", b"irc://"),
        *(b"ircs://", b"magnet:", b"mailto:", b"mms://", b"news:", b"nntp://", b"redis://", b"sftp://", b"sip:"),
        *(b"sips:", b"sms:", b"ssh://", b"svn://", b"tel:", b"telnet://", b"urn:", b"worldwind://", b"xmpp:", b"//"),
    )
)


@lean_kernel
def _is_address_character(model, data, at, end):
    """Return whether the character at byte `at` may be in an address, and its size."""
    if at >= end:
        return False, 1
    byte = data[at]
    if byte < 0x80:
        return byte > ascii.SPACE and byte not in (ascii.OPEN_BRACKET, ascii.CLOSE_BRACKET, ascii.DELETE), 1
    properties, size = character(model, data, at)
    return not properties & SPACE, size


@lean_kernel
def _scheme_end(model, data, at, end):
    """Return where the address starts after a scheme at byte `at`, or -1; it has one character at least."""
    for number in range(_SCHEME_STARTS.size - 1):
        place = match(data, at, _SCHEMES, _SCHEME_STARTS, number)
        if place >= 0 and _is_address_character(model, data, place, end)[0]:
            return place
    return -1


@lean_kernel
def _is_label_byte(byte):
    return byte not in (ascii.OPEN_BRACKET, ascii.CLOSE_BRACKET) and (
        byte >= ascii.SPACE or byte == ascii.TAB or byte in (QUOTE_MARK, LESS_MARK, GREATER_MARK)
    )


@lean_kernel
def _label_end(data, at, end):
    """Return where the label ends that starts at byte `at`: at a bracket; -1 if it does not end well."""
    while at < end and data[at] != ascii.CLOSE_BRACKET:
        if _is_label_byte(data[at]):
            at += 1
            continue
        if data[at] != ascii.OPEN_BRACKET or at + 2 >= end or data[at + 1] != ascii.OPEN_BRACKET:
            return -1
        at += 2
        first = at
        while at < end and _is_label_byte(data[at]):
            at += 1
        if at == first or at + 1 >= end or data[at] != ascii.CLOSE_BRACKET or data[at + 1] != ascii.CLOSE_BRACKET:
            return -1
        at += 2
    return at if at < end else -1


_IMAGE_NAME = np.zeros(256, np.bool_)  # [A-Za-z0-9_.,~%\-+&;#*?!=()@\x80-\xFF]; `<`, `>`, `"` are references there
_IMAGE_NAME[list(b'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,~%-+&;#*?!=()@<>"\xc2\xc3')] = True
_IMAGE_ENDINGS, _IMAGE_ENDING_STARTS = packed((b"gif", b"png", b"jpg", b"jpeg"))
_IMAGE_SCHEMES, _IMAGE_SCHEME_STARTS = packed((b"http://", b"https://"))


@lean_kernel
def _is_image_address(model, data, start, end):
    """Return whether a label is the address of an image, which is dropped."""
    slash = _find_last(data, ascii.SLASH, start, end)
    dot = _find_last(data, ascii.PERIOD, start, end)
    if slash < start or dot < slash + 2:
        return False
    good = False
    for number in range(_IMAGE_ENDING_STARTS.size - 1):
        good = good or match(data, dot + 1, _IMAGE_ENDINGS, _IMAGE_ENDING_STARTS, number) == end
    at = slash
    for number in range(_IMAGE_SCHEME_STARTS.size - 1):
        place = match(data, start, _IMAGE_SCHEMES, _IMAGE_SCHEME_STARTS, number)
        if 0 <= place < slash:
            at = place
    if not good or at == slash:
        return False
    while at < slash:
        good, size = _is_address_character(model, data, at, slash)
        if not good:
            return False
        at += size
    for at in range(slash + 1, dot):
        if not _IMAGE_NAME[data[at]] and not (data[at] & 0xC0 == 0x80 and data[at - 1] in (0xC2, 0xC3)):
            return False
    return True


@lean_kernel
def _label_start(model, data, at):
    """Return where the label starts after an address, of which byte `at` is one, and white space."""
    is_address, length = _is_address_character(model, data, at, data.size)
    while is_address:
        at += length
        is_address, length = _is_address_character(model, data, at, data.size)
    return skip_space(model, data, at)


@kernel
def replace_addresses(model, data, out):
    """Put the label in place of each `[address label]`."""
    size = data.size
    written = 0
    at = 0
    while at < size:
        if data[at] == ascii.OPEN_BRACKET:
            address = _scheme_end(model, data, at + 1, size)
            if address >= 0:
                label = _label_start(model, data, address)
                end = _label_end(data, label, size)
                if end >= 0:
                    if not _is_image_address(model, data, label, end):
                        written = copy(data, label, end, out, written)
                    at = end + 1
                    continue
        out[written] = data[at]
        written += 1
        at += 1
    return written


def warm_up() -> None:
    """Compile what this module's callers use."""
    model = np.zeros(ASCII + 256, np.int32)
    # Texts come out of bytes objects, so that they are read-only.
    text = np.frombuffer(b"{{[[", np.uint8)
    out = np.empty(8, np.uint8)
    replace_links(model, text, out)
    replace_addresses(model, text, out)
