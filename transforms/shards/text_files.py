"""Text shards that lie on disk already: which files patterns name, and what they are."""

import re
from collections.abc import Sequence

from transforms.errors import UnusableInputError
from transforms.shards.text_shards import ShardKind, TextShard
from transforms.storage import files, manifest

_NUMBERED = re.compile(r"(?:part|eval)-(?P<number>\d+)-of-\d+")


def find_texts(patterns: Sequence[str]) -> list[files.FileInfo]:
    """The text shards that patterns name; a directory that extract made stands for its shards.

    Raises:
      UnusableInputError: there is no such file, or two would give shards of the same name.
    """
    expanded: list[str] = []
    for pattern in patterns:
        if files.exists(files.join(pattern, manifest.MANIFEST)):
            shards = manifest.read_manifest(pattern)["shards"]
            expanded += [files.join(pattern, s["name"]) for s in shards if s["bytes"]]
        else:
            expanded.append(pattern)
    texts = files.match(expanded)
    paths: dict[str, str] = {}
    for text in texts:
        other = paths.setdefault(files.base_name(text.path), text.path)
        if other != text.path:
            raise UnusableInputError(
                f"{text.path} and {other} would become one shard; rename one, or take two outputs."
            )
    return texts


def describe_text_shard(numbered: tuple[int, str]) -> TextShard:
    """Describes a text file on disk as a text shard; it is read for its checksum.

    Args:
      numbered: the file's place among all, and its path. Names that the extract stage gives have the shard's kind and
        number in them; a file of another name is a train shard whose number is its place.
    """
    place, path = numbered
    name = files.base_name(path)
    kind: ShardKind = "eval" if name.startswith("eval") else "train"
    in_name = _NUMBERED.search(name)
    if in_name:
        number = int(in_name["number"])
    else:
        number = 0 if kind == "eval" else place
    return TextShard(
        path=path,
        kind=kind,
        number=number,
        size=files.size(path),
        sha256=files.sha256_of(path),
        documents=0,
        sentences=0,
        inputs={},
        key="",
    )
