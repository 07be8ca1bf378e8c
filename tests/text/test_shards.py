"""What a text shard is: names, and the hashes of the eval set's articles."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from maskmill.errors import RunFailedError
from maskmill.storage import completions
from maskmill.text.shards import ShardKind, TextShard, article_md5, shard_name, write_eval_md5, write_once


def test_names_carry_the_true_count() -> None:
    assert shard_name("train", 3, 12) == "part-00003-of-00012"
    assert shard_name("eval", 0, 1) == "eval.txt"
    assert shard_name("eval", 1, 2) == "eval-00001-of-00002.txt"


def test_an_articles_hash_leaves_out_the_white_space_at_its_end() -> None:
    assert article_md5(b"\n") == "d41d8cd98f00b204e9800998ecf8427e"  # of nothing
    assert article_md5("Ä.\n\u00a0 ".encode()) == hashlib.md5("Ä.".encode()).hexdigest()
    assert article_md5(b" a") != article_md5(b"a")


def shard(kind: ShardKind, number: int, output: Path, hashes: list[str]) -> TextShard:
    key = f"{kind}{number}"
    completions.store(str(output), "text", key, {"md5": hashes})
    return TextShard(
        path=f"{output}/{key}",
        kind=kind,
        number=number,
        size=1,
        sha256="",
        documents=1,
        sentences=1,
        inputs={},
        key=key,
    )


def test_eval_md5_lists_the_eval_shards_in_order(tmp_path: Path) -> None:
    shards = [
        shard("eval", 1, tmp_path, ["c", "a"]),
        shard("train", 0, tmp_path, ["x"]),
        shard("eval", 2, tmp_path, []),
        shard("eval", 0, tmp_path, ["b"]),
    ]
    write_eval_md5(shards, str(tmp_path))
    assert (tmp_path / "eval.md5").read_text() == "b\nc\na\n"


def test_eval_md5_is_not_written_where_a_record_is_missing(tmp_path: Path) -> None:
    lost = shard("eval", 0, tmp_path, ["b"])
    next((tmp_path / ".maskmill" / "text").iterdir()).unlink()
    with pytest.raises(RunFailedError, match=r"eval0\.json"):
        write_eval_md5([lost], str(tmp_path))
    assert not (tmp_path / "eval.md5").exists()


def test_a_shard_is_written_once(tmp_path: Path) -> None:
    writes: list[str] = []

    def write(path: str) -> dict[str, Any]:
        writes.append(path)
        Path(path).write_bytes(b"A.\n\n")
        return {"size": 4, "sha256": hashlib.sha256(b"A.\n\n").hexdigest(), "md5": []}

    path = tmp_path / "eval.txt"
    first = write_once("eval.txt", ["a"], str(tmp_path), write)
    assert write_once("eval.txt", ["a"], str(tmp_path), write) == first
    assert writes == [str(path)]
    # It is written again where the file is not what the record says, and where it draws from something else.
    path.write_bytes(b"B.\n\n")
    assert write_once("eval.txt", ["a"], str(tmp_path), write) == first
    assert path.read_bytes() == b"A.\n\n"
    assert write_once("eval.txt", ["b"], str(tmp_path), write)[0] != first[0]
    assert len(writes) == 3
