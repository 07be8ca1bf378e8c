"""Says whether this tree is a version that can be released, and prints the version's part of the changelog.

    python .ci/check_release.py 0.2.0

The version must be that of maskmill/__init__.py, CITATION.cff and docs/stability.md, and the newest of CHANGELOG.md,
with something under it. Needs nothing but Python. Exit code: 0 it can be released, 1 it cannot, with a sentence for
each reason.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where the version stands, and the text around it.
PLACES = {
    "maskmill/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "docs/stability.md": r"^This is version (.+?)\. ",
    "CHANGELOG.md": r"^## (.+)$",
}


def notes(changelog: str) -> str:
    """What the changelog says of its newest version."""
    return re.split(r"^## .*\n", changelog, maxsplit=2, flags=re.MULTILINE)[1].strip()


def findings(version: str, root: Path = ROOT) -> Iterator[str]:
    """Why a tree is not this version, a sentence each."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version} is not a version such as 0.2.0."
    for name, pattern in PLACES.items():
        found = re.search(pattern, (root / name).read_text("utf-8"), re.MULTILINE)
        if found is None or found[1] != version:
            yield f"{name} has the version {found[1] if found else 'nowhere'}, not {version}; correct it."
    if not notes((root / "CHANGELOG.md").read_text("utf-8")):
        yield f"CHANGELOG.md says nothing of {version}; write what changed for users."


def main(arguments: list[str]) -> int:
    """Prints the notes of a version, or why it cannot be released. Returns the exit code."""
    if len(arguments) != 1:
        print("usage: python .ci/check_release.py VERSION", file=sys.stderr)
        return 2
    wrong = list(findings(arguments[0]))
    print(*wrong or [notes((ROOT / "CHANGELOG.md").read_text("utf-8"))], sep="\n", file=sys.stderr if wrong else None)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
