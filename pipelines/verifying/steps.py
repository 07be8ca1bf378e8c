"""Verification on Beam: a step for each file, then one that looks across them.

The graph moves numbers of pieces alone: runners limit how large a graph may be. The plan, what each piece gave, hashes
and what was found of all are files in the scratch directory.
"""

import dataclasses
import functools
import pickle
from collections.abc import Sequence

import apache_beam as beam

from maskmill.storage import completions, files
from maskmill.verification.conclude import conclude
from maskmill.verification.findings import Verification
from maskmill.verification.options import VerifyOptions
from maskmill.verification.pieces import Piece, PieceResult
from maskmill.verification.targets import Target
from maskmill.verification.verify_piece import verify_piece
from transforms.grouping import GroupAll

KIND = "verify"  # of the notes
_PLAN, _FOUND = "plan.pickle", "verification.pickle"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be verified. It stays in the scratch directory of its run, which no other run writes to."""

    targets: tuple[Target, ...]
    options: VerifyOptions
    scratch: str

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of all targets, in order."""
        return [piece for target in self.targets for piece in target.pieces]


@dataclasses.dataclass(kw_only=True, eq=False)
class VerifyTargets(beam.PTransform):
    """Verifies what `write_plan` wrote, and writes the Verification for `read_found`. Input: the start of a pipeline.

    scratch: the directory of the plan. pieces: how many it has. noted: a directory where each piece that is done is
    noted for the progress; empty: nowhere.
    """

    scratch: str
    pieces: int
    noted: str = ""

    def expand(self, start: beam.Pipeline) -> beam.PCollection:
        return (
            start
            | "Pieces" >> beam.Create(range(self.pieces))
            | "Spread" >> beam.Reshuffle()
            | "VerifyPiece" >> beam.Map(verify_and_note, self.scratch, self.noted)  # int
            | "AllVerified" >> GroupAll()  # list[int]
            | "Conclude" >> beam.Map(conclude_all, self.scratch)
        )


def write_plan(targets: Sequence[Target], options: VerifyOptions, scratch: str) -> None:
    """Writes what workers need to know."""
    plan = Plan(targets=tuple(targets), options=options, scratch=scratch)
    files.write_bytes(files.join(scratch, _PLAN), pickle.dumps(plan))


@functools.lru_cache(maxsize=1)  # a worker verifies many pieces of one plan
def _read_plan(scratch: str) -> Plan:
    plan: Plan = pickle.loads(files.read_bytes(files.join(scratch, _PLAN)))
    return plan


def verify_and_note(number: int, scratch: str, noted: str) -> int:
    """Verifies a piece of the plan, writes what it gave, and notes for the progress that it is done."""
    result = verify_piece(_read_plan(scratch).pieces[number])
    files.write_bytes(_result_path(scratch, number), pickle.dumps(result))
    if noted:
        completions.store(noted, KIND, f"{number:064x}", {})
    return number


def conclude_all(numbers: Sequence[int], scratch: str) -> None:
    """Looks across files, and writes what was found."""
    plan = _read_plan(scratch)
    results: list[PieceResult] = [
        pickle.loads(files.read_bytes(_result_path(scratch, number))) for number in sorted(set(numbers))
    ]
    found = conclude(plan.targets, results, plan.options, scratch)
    files.write_bytes(files.join(scratch, _FOUND), pickle.dumps(found))


def read_found(scratch: str) -> Verification:
    """What was found."""
    found: Verification = pickle.loads(files.read_bytes(files.join(scratch, _FOUND)))
    return found


def _result_path(scratch: str, number: int) -> str:
    return files.join(scratch, f"result-{number}.pickle")
