"""release.json: what a release was made from. It is written last, so a release that has it is complete."""

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maskmill.errors import RunFailedError, UnusableInputError
from maskmill.releases import fingerprints
from maskmill.releases.names import RECORD, RELEASES, STATE, ReleaseName, release_path, state_path
from maskmill.storage import completions, conditional, files, manifest

_CHECKSUM = "record_sha256"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """The record of what a release was made from.

    Attributes:
      name: of the release.
      config: the build's options by section, as plain values.
      inputs: path, bytes and checksum of each input, and the url of one that was downloaded.
      dump: wiki, date, layout and files of the dump; None if the inputs are not a dump.
      stages: by name, each with its directory relative to the release, the sha256 of its manifest, and the fingerprint
        of the data set if it has one.
      versions: of the software, as in manifests.
      options_sha256: the digest of all that determines the data, except the inputs
        (pipelines/releasing/release_plan.py).
      finished: when the record was written, ISO in UTC; all other fields are the same for equal builds.
    """

    name: ReleaseName
    config: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]]
    dump: Mapping[str, Any] | None = None
    stages: Mapping[str, Mapping[str, Any]]
    versions: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options_sha256: str = ""
    finished: str = ""

    def encode(self) -> bytes:
        """Return the content of release.json, with a checksum over it."""
        fields: dict[str, Any] = {
            "release": str(self.name),
            **{f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "name"},
            "fingerprint": fingerprint(self),
        }
        return (completions.canonical_json({**fields, _CHECKSUM: _digest(fields)}, indent=1) + "\n").encode()


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(completions.canonical_json(fields, indent=1).encode()).hexdigest()


def fingerprint(record: ReleaseRecord) -> str:
    """Return the sha256 over the sha256 of the manifests of a release's stages: its data's (fingerprints.py)."""
    digests = {
        stage: str(facts["manifest_sha256"]) for stage, facts in record.stages.items() if "manifest_sha256" in facts
    }
    return fingerprints.fingerprint_of(digests)


def write_record(root: str, record: ReleaseRecord) -> ReleaseRecord:
    """Complete a release: write its record, with the time. A release that is already complete stays as it is.

    Returns:
      The record that is on disk now.

    Raises:
      RunFailedError: the release is complete already, with other content.
      UnusableInputError: the record cannot be written.
    """
    directory = release_path(root, record.name)
    if not record.finished:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
        record = dataclasses.replace(record, finished=now)
    try:
        # A release's directory holds only its data.
        guard = state_path(root, record.name, "record")
        conditional.write(files.join(directory, RECORD), record.encode(), expected=None, guard=guard)
    except files.ChangedError:
        standing = read_record(directory)
        if standing is None or fingerprint(standing) != fingerprint(record):
            raise RunFailedError(
                f"{directory}: this release is complete already, with other content, and a release never changes; "
                "delete the directory to make it again."
            ) from None
        return standing
    return record


def read_record(release_directory: str) -> ReleaseRecord | None:
    """Return the record of the release in a directory; None if the release is not complete.

    Raises:
      UnusableInputError: the record is damaged, or cannot be read.
    """
    path = files.join(release_directory, RECORD)
    found = conditional.read(path)
    if found is None:
        return None
    record = _decode(found[0])
    if record is None:
        raise UnusableInputError(
            f"{path}: this record is damaged; delete the release {release_directory} and build it again."
        )
    return record


def _decode(content: bytes) -> ReleaseRecord | None:
    try:
        fields = json.loads(content)
        checksum = fields.pop(_CHECKSUM)
        if checksum != _digest(fields):
            return None
        del fields["fingerprint"]
        name = ReleaseName.parse(fields.pop("release"))
        known = {f.name for f in dataclasses.fields(ReleaseRecord)}  # records of earlier versions have more
        return None if name is None else ReleaseRecord(name=name, **{n: v for n, v in fields.items() if n in known})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def check_inputs(
    release_directory: str, inputs: Sequence[Mapping[str, Any]], digests: Mapping[str, str]
) -> Iterator[str]:
    """Compare the inputs of a release with those that the manifest of its first stage lists.

    Files are identified by their names, sizes and checksums, because their folder may have moved.

    Args:
      release_directory: of the release.
      inputs: as in ReleaseRecord.
      digests: of its manifests by stage, from `fingerprints.manifest_digests`.

    Returns:
      A clause for each input that only one of the two has.
    """
    stage = next((stage for stage in ("extract", "examples") if stage in digests), None)
    if stage is None:
        return
    directory = files.join(release_directory, fingerprints.DATA_STAGES[stage])
    left = list((manifest.find_manifest(directory) or {"inputs": []})["inputs"])
    for file in inputs:
        same = next((entry for entry in left if _is_same(file, entry)), None)
        if same is None:
            yield f"{file.get('path')}: the release names this input, but {directory} was not made from it"
        else:
            left.remove(same)
    for entry in left if stage == "extract" else ():  # examples list their vocabulary, too
        yield f"{entry['path']}: {directory} was made from this input, but the release does not name it"


def _is_same(file: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether an input of a record is an input of a manifest; fields that one of them lacks are ignored."""
    names = [files.base_name(str(one.get("path", ""))) for one in (file, entry)]
    both = file.keys() & entry.keys() & {"bytes", "sha256", "source"}
    return names[0] == names[1] and all(file[name] == entry[name] for name in both)


def all_names(root: str) -> list[ReleaseName]:
    """Return the names of all releases below a directory, complete or not, oldest dump first."""
    releases = files.join(root, RELEASES)
    conditional.check_store(releases)
    names = [ReleaseName.parse(name) for name in files.list_folders(releases) if name != STATE]
    return sorted((name for name in names if name is not None), key=lambda name: (name.date, str(name)))


def complete_releases(root: str) -> list[ReleaseRecord]:
    """Return the records of all complete releases: oldest dump first; for one dump, the first completed first.

    Raises:
      UnusableInputError: a record is damaged, or cannot be read.
    """
    found = [read_record(release_path(root, name)) for name in all_names(root)]
    complete = [record for record in found if record is not None]
    return sorted(complete, key=lambda record: (record.name.date, record.finished, str(record.name)))


def unfinished_releases(root: str) -> list[ReleaseName]:
    """Return the names of the releases that have a directory but no record, oldest dump first."""
    return [name for name in all_names(root) if not conditional.exists(files.join(release_path(root, name), RECORD))]
