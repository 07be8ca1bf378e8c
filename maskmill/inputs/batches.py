"""Which inputs there are, and the batches of units that the next steps take."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

from maskmill.errors import UnusableInputError
from maskmill.inputs.bzip2 import Bzip2Streams
from maskmill.inputs.found_inputs import DateEvidence, decide_dates, find_inputs, read_evidence
from maskmill.inputs.mediawiki import read_header
from maskmill.inputs.options import ReadOptions
from maskmill.inputs.units import PLAIN_BYTES_A_PACKED_BYTE, Digest, InputFile, Unit, UnitBatch, plan_units
from maskmill.storage import files, progress
from maskmill.storage.found_files import check_same, unchanged

# Files of up to a megabyte share batches of up to four; a batch takes a tenth of a second.
_SMALL_FILE = 1 << 20
_BYTES_OF_SMALL_FILES = 4 << 20
_MOST_FILES = 256  # in a batch


def numbered_inputs(
    found: Sequence[files.FileInfo], patterns: Sequence[str], input_format: str
) -> Iterator[tuple[int, files.FileInfo]]:
    check_same(found, find_inputs(files.match(patterns, may_be_missing=True), input_format).files)
    yield from enumerate(found)  # a generator: with --runtime_type_check Beam uses up any other iterator


def digest_input(numbered: tuple[int, files.FileInfo], date: str | None) -> tuple[int, InputFile, DateEvidence | None]:
    """Add an input's checksum, its header, and what it says of its date, to its number in the order of the inputs.

    A file is read for its checksum unless its store has one, which nobody needs to wait for.

    date: the ISO date that the user names; None: the dump's own.

    Raises:
      UnusableInputError: the file cannot be read, or the checksum of one of its bzip2 streams is wrong.
      RunFailedError: it is not as it was found.
    """
    number, file = numbered
    header, evidence = (read_header(file.path), None) if date else read_evidence(file.path)
    digested = InputFile(
        path=file.path,
        size=file.size,
        sha256="" if file.stored else _sha256_of(file),
        stored=file.stored,
        date=date or "",
        changed=file.changed,
        header=header,
    )
    return number, digested, evidence


def _sha256_of(file: files.FileInfo | InputFile) -> str:
    """Return the checksum of an input, whose bzip2 streams are compared with theirs on the way; raises as
    `digest_input`.
    """
    with unchanged([file]):
        return files.sha256_of(file.path, also=Bzip2Streams(file.path).add)


def without_digest(inputs: Sequence[InputFile]) -> Iterator[InputFile]:
    return (file for file in inputs if not file.sha256)


def digest_object(file: InputFile) -> Digest:
    """Read an input for its checksum; raise as `digest_input`."""
    return Digest(file.path, _sha256_of(file))


def inputs_in_order(digested: Sequence[tuple[int, InputFile, DateEvidence | None]]) -> list[InputFile]:
    """Return the inputs by their numbers, with their dates.

    Raises:
      UnusableInputError: a dump is of unknown date, or parts of a dump of two dates; or as `refuse_equal`.
    """
    ordered = sorted(digested, key=lambda numbered: numbered[0])
    refuse_equal([file for _, file, _ in ordered])
    dates = decide_dates([(file.path, evidence) for _, file, evidence in ordered])
    return [
        dataclasses.replace(file, date=file.date or date) for (_, file, _), date in zip(ordered, dates, strict=True)
    ]


def refuse_equal(inputs: Sequence[InputFile]) -> None:
    """Refuse inputs of the same content, if they are parts of a dump or larger than many small files would be.

    Small ones may be equal by chance: their user is warned of them (pipelines/terminal/data_warnings.py).

    Raises:
      UnusableInputError: there are two.
    """
    seen: dict[object, str] = {}
    for file in inputs:
        if file.header or file.size > _SMALL_FILE:
            # A store's checksum comes with the version, which differs.
            before = seen.setdefault(file.sha256 or (file.size, file.stored.rpartition(" ")[0]), file.path)
            if before != file.path:
                raise UnusableInputError(
                    f"{file.path}: this input has the content of the input {before}, so its text would be there twice; "
                    "leave one of them out."
                )


def plan_batches(
    inputs: Sequence[InputFile], *, input_format: str, reading: ReadOptions, limit: int | None
) -> list[UnitBatch]:
    """Cut the inputs into batches of units, in order.

    Without a limit each unit is a batch. With a limit each file is one, which stops at so many documents. Small files
    that follow each other share a batch either way: each batch costs some files in the work directory.

    input_format: "auto" or the format of all inputs. limit: the most documents that a file gives; None: all.

    Raises:
      UnusableInputError: an input is damaged, cut off, or of the wrong format.
    """
    infos = [files.FileInfo(path=file.path, size=file.size) for file in inputs]
    planned = plan_units(infos, input_format=input_format, reading=reading, allow_empty=True)
    of_file = {path: list(units) for path, units in itertools.groupby(planned, key=lambda unit: unit.path)}
    groups: list[list[tuple[InputFile, tuple[Unit, ...]]]] = []
    room = 0  # bytes that the last group still takes
    for file in inputs:
        units = of_file[file.path]
        size = _plain_bytes(units[0]) if len(units) == 1 else _SMALL_FILE + 1
        if size <= _SMALL_FILE:
            if size > room or len(groups[-1]) >= _MOST_FILES:
                groups.append([])
                room = _BYTES_OF_SMALL_FILES
            groups[-1].append((file, tuple(units)))
            room -= size
            continue
        groups += [[(file, tuple(units))]] if limit is not None else [[(file, (unit,))] for unit in units]
        room = 0
    return [
        UnitBatch(
            number=number,
            files=tuple(file for file, _ in group),
            units=tuple(unit for _, units in group for unit in units),
            limit=limit,
        )
        for number, group in enumerate(groups)
    ]


def _plain_bytes(unit: Unit) -> int:
    """About how many bytes a unit has once it is unpacked."""
    is_packed = unit.container != "plain" or unit.format == "parquet"
    return (unit.end - unit.start) * (PLAIN_BYTES_A_PACKED_BYTE if is_packed else 1)


def announce_batches(
    inputs: Sequence[InputFile],
    input_format: str,
    reading: ReadOptions,
    limit: int | None,
    output: str,
    kinds: Sequence[str],
    source: str = "",
) -> list[UnitBatch]:
    """Cut the inputs as `plan_batches` does, and announce the batches to the progress of the steps of these kinds."""
    batches = plan_batches(inputs, input_format=input_format, reading=reading, limit=limit)
    for kind in kinds:
        progress.announce(output, kind, pieces=len(batches), size=sum(file.size for file in inputs), part=source)
    return [dataclasses.replace(batch, source=source) for batch in batches]
