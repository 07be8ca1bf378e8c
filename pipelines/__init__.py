"""Runs the steps of `transforms`, and the training: commands, stages, releases. The command is in commands/cli.py.

`LocalRunner` runs any bounded Beam pipeline in workers of this machine (docs/runners.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.running.local_runner import LocalRunner

__all__ = ["LocalRunner"]


def __getattr__(name: str) -> Any:
    """Import LocalRunner, and Beam with it, once it is asked for."""
    if name != "LocalRunner":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pipelines.running.local_runner import LocalRunner

    return LocalRunner
