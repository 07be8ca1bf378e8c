"""The inputs of a release: its input files with their checksums, and the wiki and the date of their dump."""

import contextlib
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.mirrors.dump_names import date_in_name
from maskmill.mirrors.dumps import Dump
from maskmill.releases import names
from maskmill.storage import files, manifest
from pipelines.building.build_options import BuildOptions
from pipelines.stages.extract_stage import ExtractStage
from pipelines.stages.mix_stage import extracts_of

_WIKI = re.compile(r"([a-z][a-z0-9_]*wik[a-z]*)(?=[-._])")
CRC32C = "crc32c"


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputFile:
    """An input of a build.

    Attributes:
      path: its path or address. size: in bytes.
      checksum: in hexadecimal, or in the store's own encoding. algorithm: sha256, or crc32c for an object on gs://.
      source: the name of the mix's source that it belongs to; empty without a mix.
      url: the address from which it was downloaded; empty if it was not.
    """

    path: str
    size: int
    checksum: str
    algorithm: str
    source: str = ""
    url: str = ""

    @property
    def identity(self) -> tuple[str, str, int, str, str]:
        """The fields that identify the input, independent of its folder."""
        return self.source, files.base_name(self.path), self.size, self.algorithm, self.checksum

    @property
    def entry(self) -> dict[str, Any]:
        """Its entry in release.json."""
        entry: dict[str, Any] = {"path": self.path, "bytes": self.size, self.algorithm: self.checksum}
        return entry | ({"source": self.source} if self.source else {}) | ({"url": self.url} if self.url else {})


def find_inputs(options: BuildOptions, dump: Dump | None) -> list[InputFile]:
    """Return the inputs of a build with their checksums, in order; local files are read to compute them.

    dump: the downloaded dump that is its input, if it is one.

    Raises:
      UnusableInputError: an input is missing or cannot be read.
    """
    urls = {} if dump is None else {file.name: file.url for file in dump.files}
    found = []
    for source, file in _files_of(options):
        stored = files.stored_checksum(file.path)
        checksum, algorithm = (files.sha256_of(file.path), "sha256") if stored is None else (stored, CRC32C)
        url = urls.get(files.base_name(file.path), "")
        found.append(
            InputFile(path=file.path, size=file.size, checksum=checksum, algorithm=algorithm, source=source, url=url)
        )
    return found


def _files_of(options: BuildOptions) -> list[tuple[str, files.FileInfo]]:
    """Return the input files of a build, each with the name of its source in a mix."""
    from maskmill.inputs import found_inputs
    from maskmill.text.text_files import find_texts

    if options.texts is not None:
        return [("", text) for text in find_texts(options.texts)]
    return [
        (name, file)
        for name, extract in extracts_of(options).items()
        for file in found_inputs.find_inputs(files.match(extract.input), extract.input_format).files
    ]


def wiki_and_date(options: BuildOptions, dump: Dump | None) -> tuple[str, str]:
    """Return the wiki and the date for the name of a build's release.

    Raises:
      UnusableInputError: neither the build's file nor its inputs name them, or the inputs have several wikis or dates.
    """
    wiki, date = options.release.wiki, options.release.date
    if dump is not None:
        wiki, date = wiki or dump.wiki, date or dump.date
    extract = options.get(ExtractStage)
    if date is None and extract is not None:
        date = extract.dump_date
    if wiki is None or date is None:
        paths = _paths_of_dump(options)
        wiki = wiki or _only({match[1] for p in paths if (match := _WIKI.match(files.base_name(p)))}, "wiki", paths)
        date = date or _date_of(paths)
    if names.ReleaseName.parse(f"{wiki}-{date}-{'0' * names.DIGEST_DIGITS}") is None:
        raise UnusableInputError(
            f"release.wiki {wiki!r} and release.date {date!r} name no release; wiki takes small letters, digits and _, "
            "date a day such as 2026-11-01."
        )
    return wiki, date


def _paths_of_dump(options: BuildOptions) -> list[str]:
    """Return the paths that may name the dump: the inputs, or the files from which existing text was extracted."""
    if options.texts is None:
        return [file.path for _, file in _files_of(options)]
    paths: list[str] = []
    for pattern in options.texts:
        listing = None if files.is_glob(pattern) else manifest.find_manifest(pattern)
        paths += [entry["path"] for entry in listing["inputs"]] if listing is not None else [pattern]
    return paths


def _date_of(paths: Sequence[str]) -> str:
    named = {date for path in paths if (date := date_in_name(path))}
    if not named:
        from maskmill.inputs import found_inputs

        # Of text that was extracted elsewhere, only the names of its inputs are known.
        existing = [path for path in paths if files.exists(path)]
        evidence = [(path, found_inputs.read_evidence(path)[1]) for path in existing]
        with contextlib.suppress(UnusableInputError):
            named = {date for date in found_inputs.decide_dates(evidence) if date}
    return _only(named, "date", paths)


def _only(found: set[str], what: str, paths: Sequence[str]) -> str:
    if len(found) == 1:
        return found.pop()
    problem = f"has several: {', '.join(sorted(found))}" if found else f"gives none ({paths[0]})"
    raise UnusableInputError(
        f"A release is named after the {what} of its dump, and the input {problem}; set release.{what} in the build's "
        "file."
    )
