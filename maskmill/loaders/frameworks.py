"""The error message of a loader's module whose framework is missing."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needed_by(module: str, framework: str, remedy: str, *packages: str) -> Iterator[None]:
    """Import a framework in the block; explain in one sentence if it is missing.

    Args:
      module: of the loader.
      framework: its name, for people.
      remedy: what the user should do.
      packages: the framework's packages that are imported; the last one is the one to install.

    Raises:
      ModuleNotFoundError: one of the packages is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in packages:
            raise
        raise ModuleNotFoundError(
            f"{module} needs {framework}, which is not installed; {remedy}", name=packages[-1]
        ) from None
