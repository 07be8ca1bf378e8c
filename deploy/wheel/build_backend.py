"""The build backend of maskmill: setuptools and, for a wheel, the compiler of its kernels in the versions of the lock.

Editable installs, and archives of the sources, need none of that.
"""

import re
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

# Machine code fits one version of each. What else the kernels' modules import is here, too.
_COMPILER = ("llvmlite", "numba", "numpy")


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what must be installed to build a wheel; the current directory is the one of setup.py."""
    lock = Path("requirements.lock").read_text("utf-8")
    pins = [re.search(rf"^{name}==\S+", lock, re.MULTILINE) for name in _COMPILER]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *(pin[0] for pin in pins if pin is not None)]
