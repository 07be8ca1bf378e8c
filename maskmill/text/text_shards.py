"""What a text shard is: its description, its name, and the hashes of the eval set's articles beside it.

`planning` decides which documents go into which shard, and writes the shards; with `--compat mlperf` both is
done by `mlperf_shards`.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from maskmill.storage import completions, files
from maskmill.storage.found_files import check_unchanged

KIND = "text"
EVAL_MD5 = "eval.md5"
TABLES = "documents"  # the folder of the tables
DEFAULT_SHARD_SIZE_MB = 27.0  # of 1024 * 1024 bytes

ShardKind = Literal["train", "eval"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextShard:
    """The description of a text shard: one sentence a line, a blank line after each document.

    size: in bytes. inputs: the input files that it draws from, each with its sha256, empty where the closing step adds
    it. key: of its completion record, empty where the shard was not made by this build. changed: as in FileInfo. index:
    what the manifest says of the table of its documents; empty: it has none.
    """

    path: str
    kind: ShardKind
    number: int
    size: int
    sha256: str
    documents: int
    sentences: int
    inputs: Mapping[str, str]
    key: str
    changed: int = dataclasses.field(default=0, compare=False)
    index: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def check_unchanged(self) -> None:
        """Raise RunFailedError if the file is not as it was when its checksum was computed: once it is read.

        An object that this build has made needs no look: it was read in one version, and nobody else writes there.
        """
        if self.changed or not self.key or files.is_local(self.path):
            check_unchanged(files.FileInfo(path=self.path, size=self.size, changed=self.changed))


def shard_name(kind: ShardKind, number: int, count: int) -> str:
    """Return `part-00003-of-00010` for training text; `eval.txt`, or its shards' names where it is cut."""
    if kind == "train":
        return f"part-{number:05d}-of-{count:05d}"
    return "eval.txt" if count == 1 else f"eval-{number:05d}-of-{count:05d}.txt"


def table_name(shard: str) -> str:
    """Return the name, below the directory of a shard, of the table of its documents."""
    return f"{TABLES}/{shard}.parquet"


def write_once(
    name: str, sources: Any, output: str, write: Callable[[str], dict[str, Any]]
) -> tuple[str, dict[str, Any]]:
    """Write a shard, unless it is there already with the same content.

    Args:
      name: of the shard.
      sources: what its text depends on, in values that JSON can hold.
      output: the directory of the shards.
      write: writes the shard to a path, and returns its completion record: `size` and `sha256` of the file, `md5`, the
        hashes of its articles where it belongs to the eval set, and `index`, as in TextShard, if it has one.

    Returns:
      The key of the completion record, and the record.
    """
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["text"], name, sources)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: write(files.join(output, name)),
        lambda record: completions.PieceFiles(
            written=[
                (name, record["size"], record["sha256"]),
                *([tuple(record["index"].values())] if "index" in record else []),
            ]
        ),
        name=name,
    )
    return key, record


def article_md5(article: bytes) -> str:
    """Return the hash of an article in eval.md5: of its text without the white space at its end, as MLPerf's split
    does.
    """
    return hashlib.md5(article.decode().rstrip().encode()).hexdigest()


def write_eval_md5(shards: Iterable[TextShard], output: str) -> None:
    """Write eval.md5, one hash an article in the order of the eval text."""
    eval_shards = sorted((shard for shard in shards if shard.kind == "eval"), key=lambda shard: shard.number)
    records = completions.all_finished(output, KIND, [shard.key for shard in eval_shards])
    hashes = [md5 for record in records for md5 in record["md5"]]
    files.write_bytes(files.join(output, EVAL_MD5), "".join(f"{md5}\n" for md5 in hashes).encode())
