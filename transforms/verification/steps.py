"""Verification on Beam: a step for each file, then one that looks across them.

What workers find goes through the graph, hashes go through the scratch directory, and what was found of all comes back
to the command in a file there.
"""

import dataclasses
import hashlib
import pickle
from collections.abc import Sequence

import apache_beam as beam

from transforms.grouping import GroupAll
from transforms.storage import completions, files
from transforms.verification.conclude import conclude
from transforms.verification.findings import Verification
from transforms.verification.options import VerifyOptions
from transforms.verification.pieces import Piece, PieceResult
from transforms.verification.targets import Target
from transforms.verification.verify_piece import verify_piece

KIND = "verify"  # of the notes


@dataclasses.dataclass(kw_only=True, eq=False)
class VerifyTargets(beam.PTransform):
    """Verifies planned targets, and writes the Verification to the file `found`. Input: the start of a pipeline.

    noted: a directory where each file that is verified is noted for the progress; empty: nowhere.
    """

    targets: tuple[Target, ...]
    options: VerifyOptions
    scratch: str
    found: str
    noted: str = ""

    def expand(self, start: beam.Pipeline) -> beam.PCollection:
        pieces = [piece for target in self.targets for piece in target.pieces]
        return (
            start
            | "Pieces" >> beam.Create(pieces)
            | "Spread" >> beam.Reshuffle()
            | "VerifyPiece" >> beam.Map(verify_and_note, self.noted)  # PieceResult
            | "AllVerified" >> GroupAll()  # list[PieceResult]
            | "Conclude" >> beam.Map(conclude_into, self.targets, self.options, self.scratch, self.found)
        )


def verify_and_note(piece: Piece, noted: str) -> PieceResult:
    """Verifies a file, and notes for the progress that it is done."""
    result = verify_piece(piece)
    if noted:
        # A file may be looked at more than once, as part of another stage's data each time.
        completions.store(noted, KIND, hashlib.sha256(pickle.dumps(piece)).hexdigest(), {})
    return result


def conclude_into(
    results: Sequence[PieceResult], targets: Sequence[Target], options: VerifyOptions, scratch: str, found: str
) -> None:
    """Looks across files, and writes what was found to a file."""
    files.write_bytes(found, pickle.dumps(conclude(targets, results, options, scratch)))


def read_found(path: str) -> Verification:
    """What was found; the file is of this run's own scratch directory."""
    found: Verification = pickle.loads(files.read_bytes(path))
    files.delete([path])
    return found
