"""What a loader's module says if its framework is missing."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def needed_by(module: str, framework: str, remedy: str, *packages: str) -> Iterator[None]:
    """Import a framework; say in one sentence if it is missing.

    Args:
      module: of the loader.
      framework: what it needs, as people call it.
      remedy: what to do.
      packages: those of the framework that are imported, the last one being its own.

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
