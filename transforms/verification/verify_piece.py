"""Verifies one file, or makes one shard again: a pure function of its piece, which any process can call."""

import contextlib
import dataclasses
import importlib.util

from transforms.reading.byte_ranges import ByteRanges
from transforms.reading.remote import open_ranges
from transforms.storage import files
from transforms.verification import file_checks
from transforms.verification.copied_file import CopiedFile
from transforms.verification.findings import Checked, joined
from transforms.verification.pieces import Piece, PieceResult


def verify_piece(piece: Piece) -> PieceResult:
    """What the checks of one piece give; a damaged file gives findings, not exceptions."""
    with contextlib.ExitStack() as opened:
        ranges: ByteRanges = opened.enter_context(contextlib.closing(open_ranges(piece.path, cache_bytes=0)))
        if piece.kind in ("shard", "picked"):
            return _of_checked(piece, _remake(piece, ranges))
        if not files.is_local(piece.path):
            ranges = opened.enter_context(contextlib.closing(CopiedFile(piece.path, ranges)))
        return _verify_file(piece, ranges)


def is_there(module: str) -> bool:
    """Whether a module of this room is written yet."""
    return importlib.util.find_spec(f"transforms.verification.{module}") is not None


def _remake(piece: Piece, ranges: ByteRanges) -> Checked:
    if piece.kind == "picked":
        from transforms.verification.picked_checks import check_picked

        return check_picked(piece, ranges)
    if not is_there("remaking"):
        return Checked(skipped={"seed": "not written yet"})
    from transforms.verification.remaking import check_shard

    return check_shard(piece, ranges)


def _verify_file(piece: Piece, ranges: ByteRanges) -> PieceResult:
    checked, size, digest = file_checks.check_file(piece, ranges)
    result = _of_checked(piece, checked)
    if size is None:
        return result
    result, starts = dataclasses.replace(result, size=size, sha256=digest), None
    if piece.kind == "text" and is_there("text_checks"):
        from transforms.verification.text_checks import check_text

        text = check_text(piece, ranges)
        more = Checked(findings=text.findings, looked_at=text.looked_at, skipped=text.skipped)
        result = dataclasses.replace(result, counts=text.counts, text=text.statistics, hashes=text.hashes)
    elif piece.kind == "examples" and piece.rules is None:
        more = Checked(skipped=dict.fromkeys(("framing", "schema", "ids"), "it is not known what the rows look like"))
    elif piece.kind == "examples" and is_there("row_checks"):
        from transforms.verification.row_checks import check_rows

        rows = check_rows(piece, ranges)
        more = Checked(findings=rows.findings, looked_at=rows.looked_at, skipped=rows.skipped)
        result = dataclasses.replace(result, counts=rows.counts, rows=rows.statistics, hashes=rows.hashes)
        starts = rows.starts
    else:
        more = Checked()
    parts = [checked, more, file_checks.check_index(piece, ranges, starts)]
    if piece.contamination and is_there("contamination"):
        from transforms.verification.contamination import check_piece

        parts.append(check_piece(piece, ranges))
    everything = joined(parts)
    return dataclasses.replace(
        result, findings=everything.findings, looked_at=everything.looked_at, skipped=everything.skipped
    )


def _of_checked(piece: Piece, checked: Checked) -> PieceResult:
    return PieceResult(piece=piece, findings=checked.findings, looked_at=checked.looked_at, skipped=checked.skipped)
