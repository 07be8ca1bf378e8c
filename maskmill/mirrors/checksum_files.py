"""The lists of checksums that mirrors publish: SHA256SUMS, WIKI-DATE-sha1sums.txt, md5sums and the like."""

import re

# The algorithm by the number of hexadecimal digits.
_ALGORITHMS = {64: "sha256", 40: "sha1", 32: "md5"}
_LINE = re.compile(r"(?:\\)?([0-9a-fA-F]{32,64}) [ *](.+)")
_NAME = re.compile(r"(?:^|[-._])(sha256|sha1|md5)-?sums?(?:\.txt)?$", re.IGNORECASE)

# The better one counts where a mirror has several.
PREFERRED = ("sha256", "sha1", "md5")


def algorithm_in_name(name: str) -> str:
    """The algorithm of a file of checksums, from its name; empty where the name is of no such file."""
    match = _NAME.search(name)
    return match[1].lower() if match else ""


def read_checksums(content: bytes) -> dict[str, tuple[str, str]]:
    """What a list has for each file: the checksum in hexadecimal, and its algorithm. Other lines do not count.

    Lines are as sha256sum writes them: the checksum, a space, a space or an asterisk, the name.
    """
    found = {}
    for line in content.decode("utf-8", errors="replace").splitlines():
        match = _LINE.fullmatch(line.strip())
        if match and (algorithm := _ALGORITHMS.get(len(match[1]))):
            name = match[2].removeprefix("./").rsplit("/", 1)[-1]
            found[name] = (match[1].lower(), algorithm)
    return found
