"""The programs of .ci and deploy/, which no package holds, as modules."""

import importlib.util
import sys
from types import ModuleType

from conftest import ROOT


def load(name: str, folder: str = ".ci") -> ModuleType:
    """The module of a program, which does not run as a program."""
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
