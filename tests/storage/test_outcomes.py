"""What a run reused, made, and made again and why."""

import hashlib
from pathlib import Path

from maskmill.storage import completions, manifest, outcomes
from maskmill.storage.completions import PieceFiles


def make_shard(folder: Path, name: str) -> None:
    content = name.encode()

    def make() -> dict[str, object]:
        (folder / name).write_bytes(content)
        return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}

    completions.once(
        str(folder), "text", f"key-of-{name}", make, lambda r: PieceFiles(written=[(name, r["size"], r["sha256"])]),
        name=name,
    )  # fmt: skip


def run(folder: Path, names: list[str], dump: str = "1") -> outcomes.Outcome:
    before = outcomes.look(str(folder))
    for name in names:
        make_shard(folder, name)
    inputs = [{"path": "dump.xml", "sha256": dump}, {"path": "other.xml", "sha256": "2"}]
    manifest.write_manifest(str(folder), stage="extract", parameters={}, inputs=inputs, shards=[], counts={})
    outcome = outcomes.conclude(str(folder), before)
    assert outcomes.last_outcome(str(folder)) == outcome
    assert completions.keys(str(folder), completions.REMADE) == []
    return outcome


def test_a_run_is_compared_with_what_was_there(tmp_path: Path) -> None:
    assert outcomes.last_outcome(str(tmp_path)) is None
    first = run(tmp_path, ["a", "b"])
    assert first == outcomes.Outcome(is_first=True, reused={}, made={"text": 2}, remade=(), changed_inputs=())
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / ".maskmill" / "text" / "key-of-b.json").write_bytes(b"x")
    second = run(tmp_path, ["a", "b", "c"], dump="9")
    assert second == outcomes.Outcome(
        is_first=False,
        reused={},
        made={"text": 3},
        remade=("a: its content had changed", "b: its record was damaged"),
        changed_inputs=("dump.xml",),
    )
    assert run(tmp_path, ["a", "b", "c"], dump="9") == outcomes.Outcome(
        is_first=False, reused={"text": 3}, made={}, remade=(), changed_inputs=()
    )


def test_what_a_run_that_failed_made_again_is_said_by_the_next_one(tmp_path: Path) -> None:
    run(tmp_path, ["a", "b"])
    (tmp_path / "a").unlink()
    make_shard(tmp_path, "a")  # and then the run fails
    outcome = run(tmp_path, ["a", "b"])
    assert outcome.remade == ("a: it was gone",)


def test_a_damaged_note_still_counts(tmp_path: Path) -> None:
    run(tmp_path, ["a", "b"])
    (tmp_path / "a").unlink()
    make_shard(tmp_path, "a")
    (note,) = (tmp_path / ".maskmill" / "remade").iterdir()
    note.write_bytes(b"{")
    outcome = run(tmp_path, ["a", "b"])
    assert outcome.remade == ("text key-of-a: it was damaged",)
    assert (outcome.reused, outcome.made) == ({"text": 1}, {"text": 1})


def test_a_damaged_outcome_is_none(tmp_path: Path) -> None:
    run(tmp_path, ["a"])
    path = tmp_path / ".maskmill" / "run" / "last.json"
    path.write_bytes(path.read_bytes()[:-1])
    assert outcomes.last_outcome(str(tmp_path)) is None
