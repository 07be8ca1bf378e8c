"""Interpret paths as users write them, and explain those that cannot name a file.

A path is local unless it has a scheme, as in gs://bucket/name.
"""

import errno
import glob
import importlib.util
import os
import posixpath
import re
import stat
from typing import Any

from maskmill.errors import UnusableInputError

# The schemes of stores: the module that each needs, and the extra that installs it.
_SCHEMES = {
    "gs": ("", "maskmill", ""),
    "s3": ("botocore", "maskmill", "aws"),
    "azfs": ("azure.storage.blob", "apache-beam", "azure"),
    "hdfs": ("hdfs", "apache-beam", "hadoop"),
}
# The schemes of stores with conditional writes.
COMPARING = ("gs://", "s3://")
_WEB = ("http", "https", "ftp", "ftps")
_HTTP = ("http://", "https://")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_ONE_SLASH = re.compile(rf"(?:{'|'.join((*_SCHEMES, *_WEB, 'file'))}):/(?!/)", re.IGNORECASE)
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def is_web(path: str) -> bool:
    """Return whether a path is an HTTP address."""
    return path.lower().startswith(_HTTP)


def path_from(directory: str, path: str) -> str:
    """Return a path relative to a directory, with `/`; the path itself if it is in another store."""
    (store, below), (other, name) = _split(directory), _split(path)
    return posixpath.relpath(name, below) if store == other else path


def path_at(directory: str, relative: str) -> str:
    """Return the path that `path_from` made relative, for the present place of the directory."""
    if _split(relative)[0] or relative.startswith("/"):
        return relative
    store, below = _split(directory)
    return store + posixpath.normpath(posixpath.join(below, relative))


def _split(path: str) -> tuple[str, str]:
    """Return the store of a path, with its bucket or server ("" if local), and the name in it, from its root."""
    scheme, mark, rest = path.partition("://")
    if not mark:
        return "", os.path.abspath(path)
    place, _, name = rest.partition("/")
    return f"{scheme}://{place}", f"/{name}"


def as_written(value: Any) -> Any:
    """Return a path in an option's value with `~` at its start expanded to the home directory, as in a shell.

    A shell does not expand a `~` after a `=`, so that `--output=~/x` would create a folder named `~`.

    Args:
      value: a text, a tuple of texts, or anything else, which is returned as it is.

    Raises:
      UnusableInputError: no file can have this name.
    """
    if isinstance(value, tuple):
        return tuple(as_written(one) for one in value)
    if not isinstance(value, str):
        return value
    check_name(value)
    if _ONE_SLASH.match(value):
        scheme, _, rest = value.partition(":/")
        raise UnusableInputError(f"{value}: a slash is missing; write {scheme.lower()}://{rest}.")
    expanded = os.path.expanduser(value)
    home = value.split("/", 1)[0]
    if value.startswith("~") and expanded == value and not os.path.lexists(home):
        raise UnusableInputError(f"{value}: there is no user {home[1:]}; write ./{value} for a folder of that name.")
    if expanded != value and home != "~" and not os.path.isdir(os.path.expanduser(home)):
        raise UnusableInputError(
            f"{value}: the home directory that {home} means ({os.path.expanduser(home)}) does not exist; write the "
            f"path itself, or ./{value} for a folder of that name."
        )
    return expanded


def check_name(path: str) -> None:
    """Refuse names that no output can have.

    Raises:
      UnusableInputError: the name is not UTF-8, or has a zero byte.
    """
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if shown != path:
        raise UnusableInputError(
            f"{shown}: this name is not UTF-8, and manifests name files in UTF-8; use another name."
        )
    if "\0" in path:
        raise UnusableInputError(f"{path!r}: this name has a zero byte in it; check the path.")


def check_scheme(path: str) -> None:
    """Check a path with a scheme before any request to its store.

    Raises:
      UnusableInputError: the scheme is not supported, or not installed, or the bucket's name is not valid.
    """
    scheme, _, rest = path.partition("://")
    if scheme.lower() in _WEB:
        raise UnusableInputError(f"{path}: web addresses are neither read nor written; download the file first.")
    if scheme.lower() == "file":
        raise UnusableInputError(f"{path}: write the path alone, without file://.")
    if scheme not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise UnusableInputError(f"{path}: {scheme}:// is unknown; give a local path, or one of {known}.")
    if scheme in ("gs", "s3") and not _BUCKET.fullmatch(rest.split("/", 1)[0]):
        raise UnusableInputError(
            f"{path}: this names no bucket; write {scheme}://BUCKET/NAME, the bucket in lower case."
        )
    module, package, extra = _SCHEMES[scheme]
    if extra and not _is_installed(module):
        owner = "Beam's" if package != "maskmill" else "maskmill's"
        raise UnusableInputError(
            f"{path}: {scheme}:// needs {owner} extra [{extra}]; install it: pip install '{package}[{extra}]'."
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def regular_file(path: str, *, by_glob: bool = False) -> os.stat_result | None:
    """Return the status of a local file; None if it does not exist, or is a directory that a glob matched.

    Raises:
      UnusableInputError: the name is of something else than a readable file.
    """
    check_name(path)
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise UnusableInputError(
                f"{path}: this is a link to {os.readlink(path)}, which does not exist; fix or delete it."
            ) from None
        return None
    except OSError as error:
        raise UnusableInputError(f"{path}: this input cannot be read ({why(error)}).") from None
    if stat.S_ISDIR(found.st_mode):
        if by_glob:
            return None
        raise UnusableInputError(_explain_directory(path))
    for is_kind, name in _KINDS:
        if is_kind(found.st_mode):
            raise UnusableInputError(
                f"{path}: this input is {name}, and an input is read more than once; write it to a file first."
            )
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise UnusableInputError(f"{path}: this input cannot be read (Permission denied).")
    return found


def _explain_directory(path: str) -> str:
    try:
        entries = list(os.scandir(path))
    except OSError as error:
        return f"{path}: this input is a directory that cannot be read ({error.strerror})."
    if not entries:
        return f"{path}: this input is an empty directory."
    if not any(entry.is_file() for entry in entries):
        return (
            f"{path}: this input is a directory of directories; name the files below it, as in {path.rstrip('/')}/*/*."
        )
    return f"{path}: this input is a directory; name its files, as in {path.rstrip('/')}/*."


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern has a wildcard character."""
    return any(character in pattern for character in "*?[")


def expand(pattern: str) -> list[str]:
    """Return the sorted local names that a pattern matches.

    The longest start of `pattern`, up to a slash or its end, that is an existing name is taken literally."""
    ends = [len(pattern), *(found.start() for found in reversed(list(re.finditer("/", pattern))))]
    literal = next((end for end in ends if os.path.lexists(pattern[:end])), 0)
    return sorted(glob.glob(glob.escape(pattern[:literal]) + pattern[literal:], recursive=True))


def why(error: OSError) -> str:
    """Return why a local file cannot be used, with advice if there is any."""
    if error.errno == errno.ELOOP:
        return "its links lead in a circle; delete one of them, and name the file itself"
    if error.errno == errno.EISDIR:
        return "it is a directory, where a file is meant"
    return str(error.strerror or error)


def refuse_missing(pattern: str) -> None:
    """Check that a local file or directory exists; accept globs and remote paths.

    Raises:
      UnusableInputError: it does not exist.
    """
    path = os.path.expanduser(pattern)
    if path and "://" not in path and not has_wildcard(path) and not os.path.lexists(path):
        raise UnusableInputError(explain_missing(path.rstrip("/") or path))


def explain_missing(pattern: str) -> str:
    """Return the message for a pattern that matches no file."""
    if pattern == "-":
        return "-: standard input is not read, because an input is read more than once; write it to a file first."
    if has_wildcard(pattern):
        return f"{pattern}: this input matches no file; check the path."
    if "{" in pattern or "}" in pattern:
        return f"{pattern}: this input does not exist; a shell expands braces only outside quotes and after a space."
    folder = os.path.dirname(pattern)
    if "://" not in pattern and folder and not os.path.isdir(folder):
        return f"{pattern}: this input does not exist, nor does the directory {folder}; check the path."
    return f"{pattern}: this input does not exist; check the path."
