"""The action that a process takes before it compiles its first kernel.

A command knows early what it will run, and late, if ever, whether a kernel is missing. This module knows nothing of
numba, which takes long to import.
"""

from collections.abc import Callable

_actions: list[Callable[[], object]] = []


def before_first(action: Callable[[], object]) -> None:
    """Have `action` called once, before this process compiles anything, in place of what was named before."""
    _actions[:] = [action]


def begin() -> bool:
    """Is called if a kernel is missing; whether something was done about it."""
    if not _actions:
        return False
    _actions.pop()()
    return True
