"""Runs the steps of `transforms`, and the training: commands, stages, releases. The command is in commands/cli.py.

`LocalRunner` runs any bounded Beam pipeline in workers of this machine (docs/runners.md).
"""

from typing import TYPE_CHECKING

from maskmill.lazy import exports as _exports

if TYPE_CHECKING:
    from pipelines.running.local_runner import LocalRunner

__all__ = ["LocalRunner"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = _exports(__name__, {"pipelines.running.local_runner": "LocalRunner"})
