"""Which files of a folder are no examples, though a glob for examples may match them."""

from maskmill.storage import files

INDEX_SUFFIX = ".idx"
# Indexes, manifests, rejected documents.
_SUFFIXES = (INDEX_SUFFIX, ".json", ".jsonl")
# The copy of a vocabulary, and the card that tells the files of each split.
_NAMES = ("vocab.txt", "README.md")


def lies_beside(path: str) -> bool:
    """Whether a file is one of those that lie beside examples, by its name."""
    return path.endswith(_SUFFIXES) or files.base_name(path) in _NAMES
