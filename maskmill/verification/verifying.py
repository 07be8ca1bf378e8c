"""Verifies data sets in this process."""

import contextlib
import dataclasses
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

from maskmill.arguments import checked
from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.verification.comparing import check_comparable
from maskmill.verification.conclude import conclude
from maskmill.verification.findings import Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import PieceResult
from maskmill.verification.planning import plan
from maskmill.verification.targets import Target, find_targets
from maskmill.verification.verify_piece import verify_piece

_TOKEN_BYTES = 8


@checked
def verify(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    options: VerifyOptions | None = None,
    *,
    done: Callable[[PieceResult], object] | None = None,
) -> Verification:
    """Verifies data sets, one file after the other, in this process: whether they are right, and what is wrong.

        found = maskmill.verify("demo")
        for finding in found.findings:
            print(finding.severity, finding.message)

    Args:
      paths: directories of builds or stages, files, globs: one, or several. Local, gs:// or http(s)://.
      options: what is looked at, and what is known of files without a manifest; None: the defaults.
      done: is called with what each piece of work gave, as soon as it is done.

    Returns:
      the findings, the worst first, and what became of each check; `is_right` if there is nothing but notes.

    Raises:
      UnusableInputError: there is nothing under a path, or an argument cannot be meant.
      RunFailedError: the machine failed. Damaged files do not raise: they are findings.
    """
    named = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not named:
        raise UnusableInputError("There is no path to verify; name the directory of a build or of a stage, or files.")
    options = options or VerifyOptions()
    if options.against is not None:
        check_comparable(options.against, options.vocab_file)
    with scratch_directory(options) as scratch:
        targets = plan(find_targets(named), options, scratch)
        found = conclude(targets, verify_targets(targets, done), options, scratch)
    return dataclasses.replace(found, paths=tuple(named))


def verify_targets(targets: Sequence[Target], done: Callable[[PieceResult], object] | None = None) -> list[PieceResult]:
    """Verifies the pieces of planned targets."""
    results = []
    for piece in (piece for target in targets for piece in target.pieces):
        results.append(verify_piece(piece))
        if done is not None:
            done(results[-1])
    return results


@contextlib.contextmanager
def scratch_directory(options: VerifyOptions) -> Iterator[str]:
    """A directory for temporary files that goes with the verification: below the one that a user names, or anywhere."""
    if options.scratch is not None:
        directory = files.join(options.scratch, f"verify-{secrets.token_hex(_TOKEN_BYTES)}")
        files.make_directory(directory)
        try:
            yield directory
        finally:
            files.delete(files.list_directory(directory))
            if files.is_local(directory):
                shutil.rmtree(directory)
        return
    with tempfile.TemporaryDirectory(prefix=files.scratch_prefix()) as directory:
        yield directory
