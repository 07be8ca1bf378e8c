"""Objects of Cloud Storage by its own library: what Beam's file systems cannot do.

That is conditional writes (conditional.py), the folders of a folder, and the deletion of all that is below one. It
works without Beam, so that a training job can use it.
"""

import concurrent.futures
import functools
import os
from collections.abc import Sequence
from typing import Any

from maskmill.storage import files, paths
from maskmill.storage.cloud_check import check_path

SCHEME = "gs://"
_DELETERS = 16  # threads


def bucket_of(path: str) -> Any:
    """The bucket of a gs:// path, for the library's calls.

    Raises:
      UnusableInputError: the path names no bucket, or the bucket cannot be used.
    """
    paths.check_scheme(path)
    check_path(path)
    name = path.removeprefix(SCHEME).partition("/")[0]
    return _client(os.getpid(), os.environ.get("STORAGE_EMULATOR_HOST", "")).bucket(name)


@functools.cache
def _client(process: int, emulator: str) -> Any:
    """A client for each process: its connections do not survive a fork. It reads the emulator's address itself."""
    import google.auth
    from google.auth import exceptions
    from google.cloud import storage

    try:
        return storage.Client(project="none", credentials=google.auth.default()[0])
    except exceptions.DefaultCredentialsError:
        return storage.Client.create_anonymous_client()


def object_name(path: str) -> str:
    """The name of an object in its bucket."""
    return path.removeprefix(SCHEME).partition("/")[2]


def list_below(directory: str) -> list[str]:
    """The paths of all objects below a gs:// directory, at any depth."""
    bucket, prefix = bucket_of(directory), object_name(directory).rstrip("/") + "/"
    with files.explained(directory):
        return [f"{SCHEME}{bucket.name}/{blob.name}" for blob in bucket.list_blobs(prefix=prefix, fields=_NAMES)]


_NAMES = "items(name),nextPageToken"


def list_folders(directory: str) -> list[str]:
    """The names of the folders in a gs:// directory, sorted: what stands before the next slash of some object."""
    bucket, prefix = bucket_of(directory), object_name(directory).rstrip("/") + "/"
    with files.explained(directory):
        listing = bucket.list_blobs(prefix=prefix, delimiter="/")
        for _ in listing.pages:
            pass  # the folders are complete with the last page
        return sorted(files.base_name(folder) for folder in listing.prefixes)


def list_names(directory: str) -> list[str]:
    """What lies in a gs:// directory, sorted: the names of objects, and those of folders with a slash behind."""
    bucket, prefix = bucket_of(directory), f"{object_name(directory).rstrip('/')}/".removeprefix("/")
    with files.explained(directory):
        listing = bucket.list_blobs(prefix=prefix, delimiter="/")
        names = {blob.name.removeprefix(prefix) for blob in listing}
        return sorted({*names, *(folder.removeprefix(prefix) for folder in listing.prefixes)} - {""})


def delete_objects(object_paths: Sequence[str]) -> None:
    """Deletes objects of one bucket; one that is not there is no error."""
    if not object_paths:
        return
    from google.api_core import exceptions

    bucket = bucket_of(object_paths[0])

    def delete_one(path: str) -> None:
        try:
            bucket.blob(object_name(path)).delete()
        except exceptions.NotFound:
            return

    # A request takes some 50 ms: without threads, thousands of objects would take minutes.
    with files.explained(object_paths[0]), concurrent.futures.ThreadPoolExecutor(_DELETERS) as threads:
        list(threads.map(delete_one, object_paths))
