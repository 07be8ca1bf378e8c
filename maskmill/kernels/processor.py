"""Which processor machine code is made for: one for all machines of an architecture.

Code that was made on one machine then runs on the next one, in an image, a wheel or a shared directory. Instructions
that only newer processors have would save 2 % of a build's CPU time; NUMBA_CPU_NAME names another processor. An x86
processor without all that x86-64-v3 has gets code of its own.

Sources: the levels of the x86-64 psABI; LLVM's names of processors.
"""

import platform
from typing import Any

import numba
from llvmlite import binding as llvm

# LLVM's name for the processor, and what a processor must have to run its code, in LLVM's names.
_TARGETS = {
    "x86_64": (
        "x86-64-v3",
        {"avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave"},
    ),
    "aarch64": ("generic", {"neon"}),
    "arm64": ("generic", {"neon"}),
}


def choose() -> None:
    """Have numba compile for the architecture's fixed processor in this process, unless the user names another one.

    It has no effect where the process has compiled something already.
    """
    target = _TARGETS.get(platform.machine())
    config: Any = numba.config
    if config.CPU_NAME is not None or target is None:
        return
    name, needed = target
    features = llvm.get_host_cpu_features()
    if all(features.get(feature) for feature in needed):
        config.CPU_NAME, config.CPU_FEATURES = name, ""
