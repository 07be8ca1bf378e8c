"""What a run reused, made, and made again and why."""

import hashlib
from pathlib import Path

from maskmill.storage import completions, manifest, outcomes
from maskmill.storage.completions import ItemFiles


def make_shard(folder: Path, name: str) -> None:
    content = name.encode()

    def make() -> dict[str, object]:
        (folder / name).write_bytes(content)
        return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    completions.once(
        str(folder), "text", f"key-of-{name}", make, lambda r: ItemFiles(written=[(name, r["size"], r["sha256"])]),
        name=name,
    )  # fmt: skip


def run(folder: Path, names: list[str], dump: str = "1") -> outcomes.Outcome | None:
    before = outcomes.look(str(folder))
    for name in names:
        make_shard(folder, name)
    inputs = [{"path": "dump.xml", "sha256": dump}, {"path": "other.xml", "sha256": "2"}]
    manifest.write_manifest(str(folder), stage="extract", parameters={}, inputs=inputs, shards=[], counts={})
    outcome = outcomes.conclude(str(folder), before)
    assert completions.keys(str(folder), completions.REMADE) == []
    return outcome


def test_a_run_is_compared_with_what_was_there(tmp_path: Path) -> None:
    assert run(tmp_path, ["a", "b"]) is None
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / ".maskmill" / "text" / "key-of-b.json").write_bytes(b"x")
    assert run(tmp_path, ["a", "b", "c"], dump="9") == outcomes.Outcome(
        reused={},
        made={"text": 3},
        remade=("a: its content had changed", "b: its record was damaged"),
        changed_inputs=("dump.xml",),
    )
    assert outcomes.look(str(tmp_path)).found() == outcomes.Outcome(reused={"text": 3})
    assert run(tmp_path, ["a", "b", "c"], dump="9") == outcomes.Outcome(reused={"text": 3})


def test_what_a_run_that_failed_made_again_is_said_by_the_next_one_also_if_the_note_is_damaged(tmp_path: Path) -> None:
    run(tmp_path, ["a", "b"])
    for is_damaged in (False, True):
        (tmp_path / "a").unlink()
        make_shard(tmp_path, "a")  # and then the run fails
        if is_damaged:
            (note,) = (tmp_path / ".maskmill" / "remade").iterdir()
            note.write_bytes(b"{")
        assert run(tmp_path, ["a", "b"]) == outcomes.Outcome(
            reused={"text": 1},
            made={"text": 1},
            remade=("text key-of-a: it was damaged" if is_damaged else "a: it was gone",),
        )
