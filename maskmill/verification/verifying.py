"""Verifies data sets in this process."""

import contextlib
import dataclasses
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence

from maskmill.storage import files
from maskmill.verification.conclude import conclude
from maskmill.verification.findings import Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import PieceResult
from maskmill.verification.planning import plan
from maskmill.verification.targets import Target, find_targets
from maskmill.verification.verify_piece import verify_piece

_TOKEN_BYTES = 8


def verify(
    paths: Sequence[str],
    options: VerifyOptions | None = None,
    *,
    done: Callable[[PieceResult], object] | None = None,
) -> Verification:
    """Verifies data sets, one file after the other, in this process; `done` hears of each.

    Raises:
      UnusableInputError: there is nothing under a path, or an option cannot be meant.
    """
    options = options or VerifyOptions()
    with scratch_directory(options) as scratch:
        targets = plan(find_targets(paths), options, scratch)
        found = conclude(targets, verify_targets(targets, done), options, scratch)
    return dataclasses.replace(found, paths=tuple(paths))


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
