"""Blocks of whole lines."""

from pathlib import Path

import pytest

from maskmill.tokenization import text_blocks


def test_blocks_say_how_many_lines_stand_before_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 8)
    content = b"one\r\ntwo\r\nthree\n\na longer line than a block\nsix\nlast"
    (tmp_path / "text").write_bytes(content)
    blocks = list(text_blocks.read_blocks(str(tmp_path / "text")))
    read = [bytes(block.content) for block in blocks]
    assert b"".join(read) == content.replace(b"\r", b"")
    assert len(blocks) > 3
    for number, block in enumerate(blocks):
        assert block.lines_before == b"".join(read[:number]).count(b"\n")
        assert number == len(blocks) - 1 or read[number].endswith(b"\n")
