"""Steps of the user's own, which `extract` calls between the text of a page and its sentences."""

import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, cast

from maskmill.errors import UnusableInputError
from maskmill.inputs.articles import Article

Step = Callable[[Article], Article | Iterable[Article] | None]


class OwnStepError(Exception):
    """A step has raised, or has given something else than articles; the message says which step."""


def apply(names: Sequence[str], article: Article) -> Iterator[Article | str]:
    """Call steps one after the other; yield the articles that are left, and `dropped_by_NAME` for each dropped one.

    Raises:
      OwnStepError: a step failed.
    """
    articles = [article]
    for name in names:
        step, called = load(name), name.rpartition(":")[2]
        kept: list[Article] = []
        for one in articles:
            try:
                made = step(one)
                given = [made] if isinstance(made, Article) else list(made or ())
            except Exception as error:
                raise OwnStepError(f"{called}: {type(error).__name__}: {error}") from error
            if strange := next((thing for thing in given if not isinstance(thing, Article)), None):
                raise OwnStepError(f"{called} gave {strange!r:.40}, which is no Article")
            if not given:
                yield f"dropped_by_{called}"
            kept += given
        articles = kept
    yield from articles


@functools.lru_cache(maxsize=64)
def load(name: str) -> Step:
    """Import a step, once in a process.

    name: `MODULE:NAME` or `FILE.py:NAME`, of a function, or of a class, which is called without arguments for its step.

    Raises:
      UnusableInputError: there is no such module or name, or importing it fails.
    """
    found = getattr(_module(name), name.rpartition(":")[2], None)
    if not callable(found):
        raise UnusableInputError(f"--steps {name}: there is no such function or class; correct the name.")
    try:
        step: Any = found() if inspect.isclass(found) else found
    except Exception as error:
        raise UnusableInputError(f"--steps {name}: it cannot be set up ({type(error).__name__}: {error}).") from error
    return cast(Step, step)


def checksum(names: Sequence[str]) -> str:
    """Return the sha256 over the names and the source files of steps; raise as `load`."""
    digest = hashlib.sha256()
    for name in names:
        load(name)
        path = inspect.getsourcefile(_module(name))
        if path is None:
            raise UnusableInputError(f"--steps {name}: its module has no source file; name one that has.")
        with open(path, "rb") as file:
            digest.update(name.rpartition(":")[2].encode() + b"\0" + file.read() + b"\0")
    return digest.hexdigest()


def _module(name: str) -> ModuleType:
    where, _, attribute = name.rpartition(":")
    if not where or not attribute.isidentifier():
        raise UnusableInputError(f"--steps {name}: give MODULE:NAME or FILE.py:NAME, as in filters.py:keep.")
    try:
        if not where.endswith(".py"):
            return _imported(where)
        alias = f"_maskmill_steps_{hashlib.sha256(os.path.abspath(where).encode()).hexdigest()}"
        if alias not in sys.modules:
            spec = importlib.util.spec_from_file_location(alias, where)
            if spec is None or spec.loader is None:
                raise ImportError("it is no Python file")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[alias] = module
        return sys.modules[alias]
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnusableInputError(f"--steps {name}: {where} cannot be imported ({reason}); correct it.") from error


def _imported(name: str) -> ModuleType:
    """Import a module, of the working directory, too, which commands leave off Python's path."""
    sys.path.append(os.getcwd())
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop()
