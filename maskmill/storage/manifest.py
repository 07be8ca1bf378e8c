"""Read and write manifest.json: the content of an output directory, its inputs and its parameters.

A manifest has no time, host or attempt, so the same build gives the same manifest wherever it runs.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from maskmill.errors import UnusableInputError
from maskmill.storage import completions, conditional, files, progress

MANIFEST = "manifest.json"
REJECTED = "rejected.jsonl"
_CLAIM = "parameters"
_PACKAGES = ("maskmill", "apache-beam", "numba", "numpy", "nltk", "lupa", "wikitextprocessor")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """The claim of an output directory for a stage with these parameters: checked, but not written yet.

    path: of the claim's file. content: of the file. is_new: whether the file does not have this content yet. problem:
    a clause for the summary if the old file was missing or damaged, else None. found: the content of the old file, if
    any. version: of the old file in a store. was_free: whether the directory could be claimed for any options.
    """

    output: str
    path: str
    content: bytes
    is_new: bool
    problem: str | None
    found: bytes | None = None
    version: str | None = None
    was_free: bool = False

    def write(self) -> None:
        """Claim the directory.

        Raises:
          UnusableInputError: another run has just claimed it with other parameters (stores with conditional writes).
        """
        if not self.is_new:
            return
        files.make_directory(self.output)
        if self.problem is not None:
            name = completions.work_name("", files.base_name(self.path))
            completions.note_remade(self.output, _CLAIM, "claim", name, self.problem)
        if files.is_local(self.path) or not conditional.is_possible(self.path):
            files.write_bytes(self.path, self.content)
            return
        try:
            conditional.write(self.path, self.content, expected=self.version)
        except files.ChangedError:
            if files.read_if_there(self.path) != self.content:
                raise self._just_claimed() from None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Claim the directory, and keep runs with other options out while the block runs."""
        if not files.is_local(self.path):
            self.write()
            yield
            return
        files.make_directory(self.output)
        with contextlib.ExitStack() as held:
            with locked(self.output):  # one process at a time checks and writes
                self._refuse_if_taken()
                self.write()
                file = held.enter_context(open(self.path, "rb"))
                with contextlib.suppress(OSError):  # without locks, on some file systems, no directory becomes free
                    fcntl.flock(file, fcntl.LOCK_SH)
            yield

    def _refuse_if_taken(self) -> None:
        """Raise UnusableInputError if another run has claimed a free directory since `check_output`."""
        now = files.read_if_there(self.path)
        if not self.was_free or now == self.content:
            return
        if now != self.found or (now is not None and not _is_free(self.output, self.path)):
            raise self._just_claimed()

    def _just_claimed(self) -> UnusableInputError:
        return UnusableInputError(
            f"{self.output}: another run with other parameters has just claimed this directory; name another one, "
            "or wait until that has ended."
        )


@contextlib.contextmanager
def locked(directory: str) -> Iterator[None]:
    """Let one process at a time into the block for a directory, if the file system has locks."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def check_output(
    output: str,
    stage: str,
    parameters: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    folders: Sequence[str] = (),
) -> Claim:
    """Check that an output directory can be claimed for a stage with these parameters; write nothing.

    An option that the directory's claim lacks was added later, so it counts as its default; an option that only the
    claim has is of another version, and must have had its default. A local directory with nothing but its work
    directory is free for other options of its stage, unless a run holds it. A damaged claim is restored from the
    manifest. Without a manifest, the build is unfinished: each of its work items is keyed by its own parameters, so
    the directory is claimed anew. Both cases are noted for the summary.

    Args:
      output: the directory.
      stage: the stage's name.
      parameters: all options that shape the data, by name. `X_sha256` is the checksum of the file that option `X`
        names; if it is the same, the file's name may differ.
      defaults: of options, by name; None for others.
      folders: the folders below the directory that the stage writes to.

    Raises:
      UnusableInputError: the directory cannot be written, has other files in it, or belongs to another stage or other
        parameters.
    """
    files.check_directory(output)
    claim = {"stage": stage, "parameters": dict(parameters), "defaults": dict(defaults or {})}
    requested = json.loads(completions.canonical_json(claim))  # as it is read back
    path = completions.work_path(output, "", f"{_CLAIM}.json")
    with files.remembering(output):
        if files.is_local(path) or not conditional.is_possible(path):
            content, version = files.read_if_there(path), None
        else:
            content, version = conditional.read(path) or (None, None)
        claimed, problem = _find_claim(output, content, requested, folders)
    sealed = completions.sealed_json("", _CLAIM, requested)
    was_free = content is None and problem is None
    if claimed is not None:
        was_free = claimed["stage"] == stage and _is_free(output, path)
        if not was_free:
            _compare_claims(output, claimed, requested)
    return Claim(
        output=output,
        path=path,
        content=sealed,
        is_new=content != sealed,
        problem=problem,
        found=content,
        version=version,
        was_free=was_free,
    )


def _find_claim(
    output: str, content: bytes | None, requested: Mapping[str, Any], folders: Sequence[str]
) -> tuple[dict[str, Any] | None, str | None]:
    """Return the claim of a directory, from its file or its manifest, and the problem of the file.

    Args:
      output: the directory.
      content: of the claim's file, or None.
      requested: the new claim.
      folders: the folders below the directory that belong to it.

    Returns:
      The claim, or None if the directory is not claimed; and a clause for the note, or None.

    Raises:
      UnusableInputError: the directory has other files in it.
    """
    found = find_manifest(output)
    if content is not None:
        claim = completions.unsealed_json("", _CLAIM, content)
        # A claim of another stage than the manifest's was copied here.
        if claim is not None and (found is None or found["stage"] == claim["stage"]):
            return claim, None
    is_of_another = content is None and (found is None or found["stage"] != requested["stage"])
    if is_of_another and not any(completions.all_keys(output).values()):
        places = (output, *(files.join(output, folder) for folder in folders))
        listed = [path for place in places for path in files.list_directory(place)]
        other_files = [path for path in listed if not path.endswith(files.TEMPORARY_SUFFIX)]
        if other_files:
            raise UnusableInputError(
                f"{output}: this directory holds other files ({files.base_name(other_files[0])}, …); "
                "name an empty or a new one."
            )
        return None, None
    problem = "it was gone" if content is None else "it was damaged"
    if found is None:
        return None, problem
    parameters = {name: value for name, value in found["parameters"].items() if name in requested["parameters"]}
    claim = {"stage": found["stage"], "parameters": parameters, "defaults": requested["defaults"]}
    return claim, f"{problem} and was made from {MANIFEST}"


def _is_free(output: str, claim: str) -> bool:
    """Return whether a claimed directory has only its work directory, and no run holds its claim; False in a store."""
    if not files.is_local(output):
        return False
    names = {name for name in os.listdir(output) if not name.endswith(files.TEMPORARY_SUFFIX)}
    if names != {completions.WORK_DIRECTORY}:
        return False
    try:
        with open(claim, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _compare_claims(output: str, claimed: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    """Raise UnusableInputError if a directory belongs to another stage or other parameters."""
    if claimed["stage"] != requested["stage"]:
        raise UnusableInputError(f"{output}: this directory belongs to {claimed['stage']!r}; name another one.")
    before = requested["defaults"] | claimed["parameters"]
    # An option that this version does not have must have had its default, or "off".
    now = claimed["defaults"] | requested["parameters"]
    for name in dict.fromkeys([*requested["parameters"], *claimed["parameters"]]):
        is_known = name in requested["parameters"]
        old, new = before.get(name), now.get(name)
        if old == new or (not is_known and not old):
            continue
        digest = f"{name}_sha256"
        if before.get(digest) is not None and before[digest] == now.get(digest):
            continue
        if name.endswith("_sha256"):
            option = name.removesuffix("_sha256")
            raise UnusableInputError(
                f"{output}: the data of {option} ({now.get(option)}) has changed since this directory was made; "
                "name another directory or delete this one."
            )
        raise UnusableInputError(
            f"{output}: this directory was made with other parameters ({name}={old!r}, now {new!r}); "
            "name another directory or delete this one."
        )


def format_version(content: Mapping[str, Any], step: str) -> int | None:
    """Return the format version of a step's output in a manifest; None if the manifest has none."""
    versions = content.get("versions")
    formats = versions.get("formats") if isinstance(versions, dict) else None
    version = formats.get(step) if isinstance(formats, dict) else None
    return version if isinstance(version, int) else None


def versions() -> dict[str, Any]:
    """Return the versions of the software that makes the data: of packages, of Python, and of each step's output."""
    import importlib.metadata

    installed = {}
    for package in _PACKAGES:
        try:
            installed[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed | {"python": platform.python_version(), "formats": dict(completions.FORMAT_VERSIONS)}


def write_manifest(
    output: str,
    *,
    stage: str,
    parameters: Mapping[str, Any],
    decided: Mapping[str, Any] = MappingProxyType({}),
    inputs: Sequence[Mapping[str, Any]],
    shards: Sequence[Any],
    counts: Mapping[str, Mapping[str, int]],
    rejected: Iterable[Mapping[str, Any]] = (),
    data: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write manifest.json and, if any document was rejected, rejected.jsonl; return the manifest.

    Args:
      output: the directory of the shards.
      stage: the stage's name.
      parameters: all options that shaped the data, the user's values or defaults.
      decided: the values that the run chose if `parameters` leave them open.
      inputs: the path, bytes and sha256 of each input.
      shards: the name, bytes, sha256, counts and inputs of each shard, in order; dataclasses or mappings.
      counts: the counts in and out of each step.
      rejected: the place of each rejected document, and the reason.
      data: other entries that readers of the shards need, by name.
    """
    rejected_lines = [completions.canonical_json(document) for document in rejected]
    manifest = {
        "stage": stage,
        "parameters": dict(parameters),
        "decided": dict(decided),
        "versions": versions(),
        **data,
        "inputs": list(inputs),
        "counts": {step: dict(values) for step, values in counts.items()},
        "shards": list(shards),
    }
    path = files.join(output, REJECTED)
    if rejected_lines:
        files.write_bytes(path, ("\n".join(rejected_lines) + "\n").encode())
    elif files.exists(path):
        files.delete([path])
    content = encoded(manifest)
    files.write_bytes(files.join(output, MANIFEST), content)
    plain: dict[str, Any] = json.loads(content)
    return plain


def encoded(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest's file."""
    return completions.canonical_json(content, indent=1).encode()


def read_manifest(output: str) -> dict[str, Any]:
    """Return the manifest of a finished output directory.

    Raises:
      UnusableInputError: the manifest is missing or damaged.
    """
    path = files.join(output, MANIFEST)
    content = files.read_if_there(path)
    if content is None:
        raise UnusableInputError(f"{path}: there is no manifest; the build into this directory is not finished.")
    return parse_manifest(path, content)


def parse_manifest(path: str, content: bytes) -> dict[str, Any]:
    """Return the manifest in the content of a file; path: for messages.

    Raises:
      UnusableInputError: it is no manifest, or damaged.
    """
    parsed = _parsed(content)
    if parsed is None:
        raise UnusableInputError(
            f"{path}: this is no manifest of maskmill, or it is damaged; run the command that made the directory again."
        )
    return parsed


def find_manifest(output: str) -> dict[str, Any] | None:
    """Return the manifest of an output directory; None if it is missing or damaged."""
    content = files.read_if_there(files.join(output, MANIFEST))
    return None if content is None else _parsed(content)


def _parsed(content: bytes) -> dict[str, Any] | None:
    """Return the manifest with this content; None if it is no manifest."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if _is_manifest(value) else None


def _is_manifest(value: Any) -> bool:
    """Return whether a value from JSON has the entries of a manifest that readers need."""
    if not isinstance(value, dict) or not isinstance(value.get("stage"), str):
        return False
    parts = {"parameters": dict, "counts": dict, "inputs": list, "shards": list}
    if not all(isinstance(value.get(name), kind) for name, kind in parts.items()):
        return False
    sizes = {"bytes"} if value["stage"] == "extract" else set()  # the next stage leaves out shards without text
    needed = {"inputs": {"path", "sha256"}, "shards": {"name"} | sizes}
    return all(
        isinstance(entry, dict) and keys <= entry.keys() for name, keys in needed.items() for entry in value[name]
    )


def sum_counts(all_counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up counts by name; the names of the sum are sorted."""
    total: dict[str, int] = {}
    for counts in all_counts:
        for name, value in counts.items():
            total[name] = total.get(name, 0) + value
    return dict(sorted(total.items()))


def files_of_shard(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files of a shard in a manifest: each has its name below the directory, its bytes and its sha256.

    The entry of a shard of one file is itself the entry of the file.
    """
    return [dict(file) for file in entry["files"]] if "files" in entry else [dict(entry)]


def sweep(
    output: str,
    *,
    keep: Iterable[str],
    patterns: Sequence[str],
    records: Mapping[str, Iterable[str]],
) -> None:
    """Delete files of earlier builds in an output directory; call it after the manifest is written.

    Args:
      output: the directory.
      keep: the names of the files that belong to the data set, as FOLDER/NAME where they are in a folder.
      patterns: globs of names that only this stage uses, as FOLDER/GLOB for those in a folder. Other files that match
        one are of an older build with another number of shards.
      records: for each kind of completion record, the keys that this build uses. Other files of that kind are deleted.
    """
    kept = set(keep)
    stale = []
    for pattern in patterns:
        folder, _, names = pattern.rpartition("/")
        place = files.join(output, folder) if folder else output
        for path in files.list_directory(place, names):
            if (f"{folder}/" if folder else "") + files.base_name(path) not in kept:
                stale.append(path)
    folders = {kind: completions.work_path(output, kind, "").rstrip("/") for kind in records}
    for kind, keys in records.items():
        used = set(keys)
        stale += [p for p in files.list_directory(folders[kind]) if files.base_name(p).split(".")[0] not in used]
    files.delete(sorted({p for p in stale if not p.endswith(files.TEMPORARY_SUFFIX)}))
    # Attempts that died may have left temporary files in any of the folders.
    below = {files.join(output, pattern.rpartition("/")[0]) for pattern in patterns if "/" in pattern}
    work = [completions.work_path(output, kind, "").rstrip("/") for kind in ("run", progress.ANNOUNCED)]
    for folder in (output, *work, *sorted(below), *folders.values()):
        files.delete_abandoned(folder)
