"""verify: whether data sets are right. Small ones are looked at in this process, others on Beam."""

import dataclasses
import json
import os
from collections.abc import Sequence

from maskmill.errors import UnusableInputError
from maskmill.storage import files
from maskmill.verification import comparing, planning, verifying
from maskmill.verification.conclude import conclude
from maskmill.verification.findings import Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import PieceResult
from maskmill.verification.remaking import kernels_of_remaking
from maskmill.verification.targets import Target, find_targets
from pipelines.running import interruption
from pipelines.stages import kernels
from pipelines.terminal.progress_display import Progress
from pipelines.terminal.progress_steps import Counter
from pipelines.verifying import verify_text

RIGHT, WRONG = 0, 1

# Below this much data a second process costs more than it saves.
_WORTH_BEAM = 1 << 30


@interruption.going_on(interruption.START_ANEW)
def run(
    paths: Sequence[str], options: VerifyOptions, beam_arguments: Sequence[str] = (), *, quiet: bool = False
) -> int:
    """Verifies data sets and prints what was found; returns the exit code: 0 where all is right, 1 where not.

    Args:
      paths: what the user named.
      options: of the verification.
      beam_arguments: flags for Beam.
      quiet: whether nothing is printed but findings, or the JSON object.

    Raises:
      UnusableInputError: there is nothing under a path, or the flags do not go together.
      RunFailedError: the machine failed.
    """
    if not paths:
        raise UnusableInputError("PATH is missing: name the directory of a build or of a stage, or files.")
    found = verify(paths, options, beam_arguments)
    if found is None:
        if not quiet:
            print(f"{', '.join(paths)}: nothing was verified, the job was only described.")
        return RIGHT
    found = dataclasses.replace(found, paths=tuple(paths))
    if options.json:
        print(json.dumps(verify_text.as_json(found, options.most_findings), indent=2, ensure_ascii=False))
    elif quiet:
        print(
            *verify_text.findings(found.findings, options.most_findings), sep="\n", end="\n" if found.findings else ""
        )
    else:
        print(verify_text.described(found, options.most_findings))
    return RIGHT if found.is_right else WRONG


def verify(paths: Sequence[str], options: VerifyOptions, beam_arguments: Sequence[str] = ()) -> Verification | None:
    """Verifies data sets; None where Beam's flags ask only for a description of the job. Raises as `run`."""
    is_local = all(argument.startswith("--direct_") for argument in beam_arguments)
    if not is_local and options.scratch is None:
        raise UnusableInputError("--scratch is missing: name a directory that all workers of this runner reach.")
    if options.against is not None:
        comparing.check_comparable(options.against, options.vocab_file)
    with verifying.scratch_directory(options) as scratch:
        targets = planning.plan(find_targets(paths), options, scratch)
        pieces = [piece for target in targets for piece in target.pieces]
        size = sum(_size_of(piece.path, piece.expected.size) for piece in pieces)
        data = [piece for piece in pieces if piece.remake is None]
        if is_local:
            remade = [name for piece in pieces if piece.kind == "shard" and piece.remake is not None
                      for name in kernels_of_remaking(piece.remake)]  # fmt: skip
            kernels.prepare([*kernels.OF_VERIFY, *remade])
        if is_local and (len(data) <= 1 or (size < _WORTH_BEAM and not beam_arguments)):
            return conclude(targets, _in_this_process(targets), options, scratch)
        from pipelines.verifying import verify_graph

        return verify_graph.run(targets, options, scratch, size, beam_arguments)


def _size_of(path: str, expected: int | None) -> int:
    if expected is not None or not files.is_local(path):
        return expected or 0
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _in_this_process(targets: Sequence[Target]) -> list[PieceResult]:
    counter = Counter("verify", pieces=sum(len(target.pieces) for target in targets))
    with Progress([counter], only_long=True):
        return verifying.verify_targets(targets, lambda result: counter.count(result.size or 0))
