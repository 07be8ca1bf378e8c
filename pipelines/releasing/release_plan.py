"""The release that a build makes: its name, its directory and its inputs."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.mirrors.dumps import Dump, best_checksum
from maskmill.releases import records
from maskmill.releases.names import DIGEST_DIGITS, ReleaseName, release_path
from maskmill.releases.records import ReleaseRecord
from maskmill.storage import completions, conditional, files
from pipelines.building import build_options, downloads
from pipelines.building.build_options import BuildOptions
from pipelines.releasing import release_inputs
from pipelines.releasing.release_inputs import InputFile
from pipelines.stages.extract_stage import ExtractStage, check_language
from pipelines.stages.mix_stage import extracts_of
from pipelines.stages.vocabulary_stage import VocabularyStage

# Options that name files: the content of the files determines the data, not their paths.
_NAMED_FILES = ("vocab_file", "tokenizer_file", "template_rules", "bert_config_file", "compare")
# Options that do not determine a stage's data: inputs count by their content.
_PLACES = ("input",)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasePlan:
    """A release that a build makes, or would make.

    Attributes:
      root: the directory above all releases, the build file's `output`.
      name: of the release.
      options: the build's, with the stages' directories in the release's directory.
      inputs: of the release; empty for a complete release whose dump was deleted after its download.
      dump: the downloaded dump that is its input; None if the build's file names the input.
      options_sha256: the digest of all that determines the data, except the inputs.
      record: of the release, if it is complete.
    """

    root: str
    name: ReleaseName
    options: BuildOptions
    inputs: Sequence[InputFile]
    dump: Dump | None
    options_sha256: str
    record: ReleaseRecord | None

    @property
    def directory(self) -> str:
        """The directory of the release."""
        return release_path(self.root, self.name)


def make_plan(options: BuildOptions, date: str | None = None) -> ReleasePlan:
    """Return the release that a build makes.

    date: of the downloaded dump to use, if the build's file names no input; None: the newest.

    Raises:
      UnusableInputError: the output's store does not support releases, the inputs are missing, or the release's name
        cannot be determined.
    """
    root = options.output
    conditional.check_store(root)
    _check_places(options)
    digest, dump, inputs = options_digest(options), None, list[InputFile]()
    if (complete := _complete_without_download(options, date)) is not None:
        name = complete.name
    else:
        options, dump = downloads.with_input(options, date)
        wiki, day = release_inputs.wiki_and_date(options, dump)
        inputs = release_inputs.find_inputs(options, dump)
        name = ReleaseName(wiki=wiki, date=day, digest=name_digest(digest, inputs))
    directory = release_path(root, name)
    return ReleasePlan(
        root=root,
        name=name,
        options=build_options.rebased(options, directory),
        inputs=inputs,
        dump=dump,
        options_sha256=digest,
        record=records.read_record(directory),
    )


def _check_places(options: BuildOptions) -> None:
    """Raise UnusableInputError if a stage writes outside the release, where a second release would write, too."""
    vocabulary = options.get(VocabularyStage)
    if vocabulary is not None and vocabulary.model_dir is not None:
        raise UnusableInputError(
            f"vocabulary.model_dir {vocabulary.model_dir!r} would lie outside of the release, and the next release "
            "could not write there; leave it out."
        )


def name_digest(options_sha256: str, inputs: Sequence[InputFile]) -> str:
    """Return the digits at the end of a release's name."""
    content = completions.canonical_json([options_sha256, [file.identity for file in inputs]])
    return hashlib.sha256(content.encode()).hexdigest()[:DIGEST_DIGITS]


def options_digest(options: BuildOptions) -> str:
    """Return the digest of all that determines a build's data except its inputs: options and formats of files.

    Directories of outputs do not count, nor do the names of files that count by their content.
    """
    shape: dict[str, Any] = {"compat": options.compat, "formats": dict(completions.FORMAT_VERSIONS), "stages": {}}
    for stage, own in options.stages.items():
        shape["stages"][stage.name] = _shape_of(stage.shaping(own), set(stage.decisions(options)))
    for name, extract in extracts_of(options).items():
        # Punkt parameters that do not come with the package count by their checksum instead of the folder's name.
        _, contents = check_language(extract.decided_extraction.language, extract.compat)
        prefix = f"sources.{name}." if name else ""
        shape["stages"][ExtractStage.name] |= {
            f"{prefix}{key.removesuffix('_sha256')}": value for key, value in contents.items()
        }
    return hashlib.sha256(completions.canonical_json(shape).encode()).hexdigest()


def _shape_of(values: Mapping[str, Any], decided: set[str]) -> dict[str, Any]:
    """Return the options that determine a stage's result, except decided ones; files by their content."""
    shaping = {}
    for name, value in values.items():
        option = name.rpartition(".")[2]
        if name in decided or option in _PLACES:
            continue
        if option in _NAMED_FILES and value is not None:
            value = [files.sha256_of(path) for path in ([value] if isinstance(value, str) else value)]
        shaping[name] = value
    return shaping


def built_from(options: BuildOptions, dump: Dump) -> ReleaseRecord | None:
    """Return the complete release that a build has made from a dump; None if there is none.

    It downloads and reads nothing: the record holds the dump's files as the mirror lists them.

    dump: from a mirror's list. A dump that was published again, with other checksums, counts as another dump.
    """
    identity = _identity_of(downloads.described(dump) or {})
    return next((record for record, dump_of in _releases_of_dumps(options) if _identity_of(dump_of) == identity), None)


def _releases_of_dumps(options: BuildOptions) -> list[tuple[ReleaseRecord, Mapping[str, Any]]]:
    """Return the complete releases that a build has made from downloaded dumps, each with its dump, newest first."""
    digest = options_digest(options)
    complete = [record for record in records.complete_releases(options.output) if record.options_sha256 == digest]
    return [(record, record.dump) for record in reversed(complete) if record.dump is not None]


def _identity_of(dump: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the fields that identify a dump; the mirror's address is not among them."""
    return dump["wiki"], dump["date"], sorted((file["name"], best_checksum(file["sums"])) for file in dump["files"])


def _complete_without_download(options: BuildOptions, date: str | None) -> ReleaseRecord | None:
    """Return the complete release of a dump whose files were deleted, for example by `watch`; None if there is none."""
    if not downloads.takes_downloads(options):
        return None
    dates = {dump.date for _, dump in downloads.downloaded_dumps(options)}
    for record, dump in _releases_of_dumps(options) if date not in dates else ():
        if dump["date"] == date or (date is None and dump["date"] > max(dates, default="")):
            return record
    return None
