"""Verifies one file, or makes one shard again: a pure function of its piece, which any process can call."""

import contextlib
import dataclasses
from collections.abc import Sequence

from maskmill.reading.byte_ranges import ByteRanges
from maskmill.reading.remote import open_ranges
from maskmill.storage import files
from maskmill.verification import file_checks
from maskmill.verification.copied_file import CopiedFile
from maskmill.verification.findings import Checked, finding, joined
from maskmill.verification.pieces import Piece, PieceResult

_OF_ROWS = ("framing", "schema", "ids", "masks")


# The checks that are not made of a file that is not there, by what it would hold.
_OF_CONTENT = {
    "text": ("size", "sha256", "documents", "eval_leak", "similar_shards"),
    "examples": (
        *("size", "sha256", "framing", "crc", "schema", "ids", "padding", "special_tokens", "segments", "masks"),
        *("labels", "mask_share", "pair_share", "text_used", "seed"),
        *("repeated_records", "repeated_examples", "similar_shards"),
    ),
}


def verify_piece(piece: Piece) -> PieceResult:
    """What the checks of one piece give; a damaged file gives findings, not exceptions."""
    with contextlib.ExitStack() as opened:
        ranges: ByteRanges = opened.enter_context(contextlib.closing(open_ranges(piece.path, cache_bytes=0)))
        if piece.kind in ("shard", "picked"):
            return _of_checked(piece, _remake(piece, ranges))
        if not files.is_local(piece.path):
            ranges = opened.enter_context(contextlib.closing(CopiedFile(piece.path, ranges)))
        return _verify_file(piece, ranges)


def _remake(piece: Piece, ranges: ByteRanges) -> Checked:
    if piece.kind == "picked":
        from maskmill.verification.picked_checks import check_picked

        return check_picked(piece, ranges)
    from maskmill.verification.remaking import check_shard

    return check_shard(piece, ranges)


def _verify_file(piece: Piece, ranges: ByteRanges) -> PieceResult:
    checked, size, digest = file_checks.check_file(piece, ranges)
    result = _of_checked(piece, checked)
    if size is None:
        return dataclasses.replace(result, skipped=dict.fromkeys(_OF_CONTENT[piece.kind], "a file is not there"))
    result = dataclasses.replace(result, size=size, sha256=digest)
    parts = [checked]
    starts = None
    # What a piece does not need is not imported: text takes no kernels of rows.
    if piece.kind == "text":
        from maskmill.verification.text_checks import check_text

        text = check_text(piece, ranges)
        parts.append(Checked(findings=text.findings, looked_at=text.looked_at, skipped=text.skipped))
        result = dataclasses.replace(result, counts=text.counts, text=text.statistics, hashes=text.hashes)
        if piece.eval_texts:
            from maskmill.verification.leaks import look_for_articles

            found, near_copies = look_for_articles(piece, ranges)
            parts.append(found)
            result = dataclasses.replace(result, hashes={**result.hashes, **near_copies})
    elif piece.rules is None:
        parts.append(Checked(skipped=dict.fromkeys(_OF_ROWS, "it is not known what the rows look like")))
    else:
        from maskmill.verification.labels import check_labels
        from maskmill.verification.row_checks import check_rows

        rows = check_rows(piece, ranges)
        parts.append(Checked(findings=rows.findings, looked_at=rows.looked_at, skipped=rows.skipped))
        parts.append(check_labels(piece, ranges))
        result = dataclasses.replace(result, counts=rows.counts, rows=rows.statistics, hashes=rows.hashes)
        starts = rows.starts
    parts.append(file_checks.check_index(piece, ranges, starts))
    if piece.contamination:
        from maskmill.verification.contamination import check_piece

        parts.append(check_piece(piece, ranges))
    parts.append(_nothing_read(result, parts))
    everything = joined(parts)
    return dataclasses.replace(
        result, findings=everything.findings, looked_at=everything.looked_at, skipped=everything.skipped
    )


def _nothing_read(result: PieceResult, parts: Sequence[Checked]) -> Checked:
    """An error where nothing of a file can be looked at; with a manifest its counts tell what belongs there."""
    piece, is_text = result.piece, result.piece.kind == "text"
    seen = result.text.lines if result.text is not None else result.rows.rows if result.rows is not None else 0
    is_said = any(found.severity == "error" for part in parts for found in part.findings)
    if piece.expected.size is not None or is_said or (seen and piece.unusable is None):
        return Checked()
    what = piece.unusable or f"there is no {'line of text' if is_text else 'example'} in this file"
    advice = "" if "; " in what else "; make or fetch it again"
    return Checked(
        findings=(
            finding(
                "documents" if is_text else "framing",
                piece.path,
                "documents" if is_text else "records that can be read",
                "none",
                f"{piece.path}: {what}{advice}.",
            ),
        )
    )


def _of_checked(piece: Piece, checked: Checked) -> PieceResult:
    return PieceResult(piece=piece, findings=checked.findings, looked_at=checked.looked_at, skipped=checked.skipped)
