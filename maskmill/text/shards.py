"""A text shard's description and name, and the hashes of the eval set's articles beside the text shards.

`planning` assigns documents to shards and writes them; with `--compat mlperf`, `mlperf_shards` does both.
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

    size: in bytes. inputs: the input files that its text comes from, each with its sha256, which is empty if the
    closing step adds it. key: of its completion record, empty if this build did not write the shard. changed: as in
    FileInfo. index: the manifest's description of the table of its documents; empty if it has none.
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
        """Raise RunFailedError if the file changed after its checksum was computed; call this once it is read.

        An object that this build wrote is not checked: it was read in one version, and nobody else writes there.
        """
        if self.changed or not self.key or files.is_local(self.path):
            check_unchanged(files.FileInfo(path=self.path, size=self.size, changed=self.changed))


def shard_name(kind: ShardKind, number: int, count: int) -> str:
    """Return `part-00003-of-00010` for training text; `eval.txt`, or `eval-00000-of-00002.txt` if it is several."""
    if kind == "train":
        return f"part-{number:05d}-of-{count:05d}"
    return "eval.txt" if count == 1 else f"eval-{number:05d}-of-{count:05d}.txt"


def table_name(shard: str) -> str:
    """Return the name of the table of a shard's documents, relative to the shard's directory."""
    return f"{TABLES}/{shard}.parquet"


def write_once(
    name: str, sources: Any, output: str, write: Callable[[str], dict[str, Any]]
) -> tuple[str, dict[str, Any]]:
    """Write a shard, unless it exists already with the same content.

    Args:
      name: of the shard.
      sources: all that its text depends on, in values that JSON can hold.
      output: the directory of the shards.
      write: writes the shard to a path, and returns its completion record: `size` and `sha256` of the file, `md5`, the
        hashes of its articles if it belongs to the eval set, and `index`, as in TextShard, if it has one.

    Returns:
      The key of the completion record, and the record.
    """
    key = completions.fingerprint(KIND, completions.FORMAT_VERSIONS["text"], name, sources)
    record = completions.once(
        output,
        KIND,
        key,
        lambda: write(files.join(output, name)),
        lambda record: completions.ItemFiles(
            written=[
                (name, record["size"], record["sha256"]),
                *([tuple(record["index"].values())] if "index" in record else []),
            ]
        ),
        name=name,
    )
    return key, record


def article_md5(article: bytes) -> str:
    """Return the hash of an article in eval.md5: of its text without trailing white space, as in MLPerf's split."""
    return hashlib.md5(article.decode().rstrip().encode()).hexdigest()


def write_eval_md5(shards: Iterable[TextShard], output: str) -> None:
    """Write eval.md5: one hash a line, one for each article in the order of the eval text."""
    eval_shards = sorted((shard for shard in shards if shard.kind == "eval"), key=lambda shard: shard.number)
    records = completions.all_finished(output, KIND, [shard.key for shard in eval_shards])
    hashes = [md5 for record in records for md5 in record["md5"]]
    files.write_bytes(files.join(output, EVAL_MD5), "".join(f"{md5}\n" for md5 in hashes).encode())
