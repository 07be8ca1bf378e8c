"""What can only be seen across the files of a data set."""

import contextlib
from collections.abc import Sequence

from maskmill.reading.remote import open_ranges
from maskmill.verification import leaks, repeats, shares, similarity, text_profile, usage
from maskmill.verification.findings import Checked, Finding, joined
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import PieceResult
from maskmill.verification.targets import Target

_FILES = ("text", "examples")  # kinds of pieces that are files


def check_across(
    targets: Sequence[Target], results: Sequence[PieceResult], options: VerifyOptions, scratch: str
) -> Checked:
    """Looks across the files of each data set, and across data sets that belong together.

    Args:
      targets: with their pieces.
      results: of all pieces.
      options: of the verification.
      scratch: the directory that has the tables of the results.
    """
    by_target = [(target, _results_of(target, results)) for target in targets]
    parts = []
    for target, of_target in by_target:
        if target.kind == "text":
            parts += _of_text(target, of_target)
        elif target.kind in ("examples", "eval"):
            parts += _of_examples(target, of_target)
    parts.append(_eval_leaks(by_target))
    return joined(parts)


def _results_of(target: Target, results: Sequence[PieceResult]) -> list[PieceResult]:
    places = {(piece.kind, piece.path) for piece in target.pieces if piece.kind in _FILES}
    return [result for result in results if (result.piece.kind, result.piece.path) in places]


def _of_text(target: Target, results: Sequence[PieceResult]) -> list[Checked]:
    with contextlib.closing(open_ranges(target.directory, cache_bytes=0)) as ranges:
        eval_list = leaks.check_eval_list(target, results, ranges)
    return [
        _check_documents(target, results),
        eval_list,
        similarity.check_similar(results, repeats=similarity.takes_documents_twice(target)),
        similarity.check_sizes(target, results),
        text_profile.check_profile(
            results,
            repeats=similarity.takes_documents_twice(target),
            is_prose=target.made is None or "templates" in target.made.get("counts", {}),
        ),
    ]


def _of_examples(target: Target, results: Sequence[PieceResult]) -> list[Checked]:
    parts = [repeats.check_repeats(results), shares.check_shares(target, results)]
    if target.kind == "examples":
        parts += [similarity.check_sizes(target, results)]
        parts.append(similarity.check_similar(results, repeats=similarity.takes_documents_twice(target)))
        parts.append(usage.check_usage(target, results))
    return parts


def _check_documents(target: Target, results: Sequence[PieceResult]) -> Checked:
    """Compares how many documents text shards have with what their manifest says."""
    parameters = target.made["parameters"] if target.made else {}
    if parameters.get("compat") == "mlperf":
        # An article there may be empty, or may be joined with the next one.
        return Checked(skipped={"documents": "with compat mlperf, articles are counted before they are cleaned"})
    findings = []
    for result in results:
        expected, text = result.piece.expected.counts.get("documents"), result.text
        if expected is None or text is None or text.documents == expected:
            continue
        path = result.piece.path
        findings.append(
            Finding(
                check="documents",
                file=path,
                expected=f"{expected:,} documents",
                found=f"{text.documents:,}",
                message=f"{path}: this file has {text.documents:,} documents, but the manifest says {expected:,}; "
                "fetch or make it again.",
            )
        )
    return Checked(findings=tuple(findings))


def _eval_leaks(by_target: Sequence[tuple[Target, Sequence[PieceResult]]]) -> Checked:
    """Looks for eval articles in the training data: in the text, where it is among the targets, else in the rows."""
    text = [result for target, results in by_target if target.kind == "text" for result in results]
    if text:
        return leaks.check_documents(text)
    rows = [result for target, results in by_target if target.kind in ("examples", "eval") for result in results]
    if not rows:
        return Checked()
    dupes = max((result.piece.rules.dupe_factor or 1 for result in rows if result.piece.rules), default=1)
    return leaks.check_rows(rows, dupes)
