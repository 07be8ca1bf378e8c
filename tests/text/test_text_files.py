"""Text shards on disk: which files patterns name, and what their names say."""

import hashlib
import json
from pathlib import Path

import pytest

from maskmill.errors import UnusableInputError
from maskmill.text.text_files import beside_texts, check_texts, describe_text_shard, find_texts, refuse_equal_names


def write(path: Path, text: str = "A sentence.\n\n") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def manifest(stage: str, shards: list[dict[str, object]]) -> str:
    return json.dumps({"stage": stage, "parameters": {}, "counts": {}, "inputs": [], "shards": shards})


def test_patterns_name_files(tmp_path: Path) -> None:
    paths = [write(tmp_path / name) for name in ("a.txt", "b.txt", "c.json")]
    assert [text.path for text in find_texts([f"{tmp_path}/*.txt"])] == paths[:2]
    assert [text.path for text in find_texts([paths[2], paths[0]])] == [paths[2], paths[0]]


def test_a_directory_of_extract_stands_for_its_shards_that_hold_text(tmp_path: Path) -> None:
    shards = [("part-00000-of-00002", "A.\n\n"), ("part-00001-of-00002", "B.\n\n"), ("eval.txt", "")]
    paths = [write(tmp_path / name, text) for name, text in shards]
    write(tmp_path / "part-00000-of-00009")  # of an older build
    entries = [{"name": name, "bytes": len(text)} for name, text in shards]
    (tmp_path / "manifest.json").write_text(manifest("extract", entries))
    assert [text.path for text in find_texts([str(tmp_path)])] == paths[:2]


def test_a_pattern_that_names_nothing_is_unusable(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError, match="no file"):
        find_texts([f"{tmp_path}/*.txt"])


def test_two_files_of_one_name_are_unusable(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.txt")
    write(tmp_path / "b" / "x.txt")
    with pytest.raises(UnusableInputError, match=r"b/x\.txt and .*a/x\.txt would become one shard; rename one"):
        refuse_equal_names(find_texts([f"{tmp_path}/?/x.txt"]))


def test_a_shard_that_its_manifest_lists_is_not_guessed_at(tmp_path: Path) -> None:
    looks_bad = '{"a": 1}\n' * 9
    path = write(tmp_path / "part-00000-of-00001", looks_bad)
    for patterns in ([str(tmp_path)], [f"{tmp_path}/part-*"]):
        (tmp_path / "manifest.json").write_text(
            manifest("extract", [{"name": "part-00000-of-00001", "bytes": len(looks_bad)}])
        )
        check_texts(find_texts(patterns), patterns)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(UnusableInputError, match="looks like a JSON lines file"):
        check_texts(find_texts([path]), [path])


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("part-00003-of-00010", "train", 3),
        ("eval.txt", "eval", 0),
        ("eval-00002-of-00004.txt", "eval", 2),
        ("novels.txt", "train", 7),
        ("evaluation.txt", "eval", 0),
        ("part-3", "train", 7),
        ("corpus-part-00002-of-00003.txt", "train", 2),
    ],
)
def test_a_name_of_extract_says_kind_and_number(name: str, kind: str, number: int, tmp_path: Path) -> None:
    path = write(tmp_path / name, "Ä.\n\n")
    shard = describe_text_shard((7, path))
    assert (shard.path, shard.kind, shard.number) == (path, kind, number)
    assert (shard.size, shard.sha256) == (5, hashlib.sha256("Ä.\n\n".encode()).hexdigest())
    assert (shard.documents, shard.sentences, shard.inputs, shard.key) == (0, 0, {}, "")


def test_a_glob_passes_over_what_lies_beside_shards_and_a_name_does_not(tmp_path: Path) -> None:
    texts = [write(tmp_path / name) for name in ("eval.txt", "part-00000-of-00001")]
    others = [
        write(tmp_path / name)
        for name in ("a.tfrecord", "a.tfrecord.gz", "a.tfrecord.idx", "eval.md5", "manifest.json", "rejected.jsonl")
    ]
    assert [text.path for text in find_texts([f"{tmp_path}/*"])] == texts
    assert beside_texts([f"{tmp_path}/*", others[0]]) == others
    assert [text.path for text in find_texts(others)] == others
    with pytest.raises(UnusableInputError, match=r"matches no text shard, only .*eval\.md5 and such"):
        find_texts([f"{tmp_path}/*.md5"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x/manifest.json": manifest("examples", [])}, "made by examples; name the one of extract"),
        ({"x/.maskmill/parameters.json": "{}"}, "is not finished; run it again first"),
        ({"x/text/manifest.json": "{}"}, "is the directory of a build; name its text, .*/x/text"),
        ({"x/manifest.json": "{}"}, "this is no manifest of maskmill, or it is damaged"),
        ({"x/a.txt": "A sentence.\n"}, r"is a directory; name its files, as in .*/x/\*"),
    ],
)
def test_a_directory_that_extract_did_not_make(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, content in files.items():
        write(tmp_path / name, content)
    with pytest.raises(UnusableInputError, match=message):
        find_texts([f"{tmp_path}/x"])


def test_a_file_that_is_still_written_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "part-0.00ff.maskmill-tmp")
    with pytest.raises(UnusableInputError, match="a run still writes this file; wait until it has ended"):
        check_texts(find_texts([f"{tmp_path}/*"]), [f"{tmp_path}/*"])


def test_what_is_no_text_shard_is_refused_by_its_content(tmp_path: Path) -> None:
    paths = [write(tmp_path / "part-0"), write(tmp_path / "part-1", ""), write(tmp_path / "part-2", '{"text": "a"}\n')]
    check_texts(find_texts(paths[:2]), paths[:2])
    with pytest.raises(UnusableInputError, match=r"part-2: this looks like a JSON lines file, not like a text shard"):
        check_texts(find_texts(paths), paths)


def test_a_shard_that_the_manifest_does_not_know_is_refused(tmp_path: Path) -> None:
    """A copy that was cut off ends with whole sentences as a rule, so nothing else tells that text is missing."""
    path = write(tmp_path / "part-00000-of-00001")
    entry = {"name": "part-00000-of-00001", "bytes": 1_013}
    (tmp_path / "manifest.json").write_text(manifest("extract", [entry]))
    with pytest.raises(
        UnusableInputError, match=r"it has 13 bytes, and the manifest beside it says 1,013 bytes; .*/\*"
    ):
        check_texts(find_texts([str(tmp_path)]), [str(tmp_path)])
    check_texts(find_texts([path]), [path])  # its user has it as it is
