"""Compiled kernels. `from maskmill.kernels import kernel` decorates a function that numba compiles.

Kernels take and return NumPy arrays and scalars, never Python objects; they release the GIL. Their machine code is
kept on disk (maskmill.kernels.cache), so that a second process does not compile again. A module with kernels that
Python calls defines `warm_up()`, which calls each of these once on tiny arrays of the types that callers use.
"""

from maskmill.kernels.compiler import inlined_kernel, kernel, lean_kernel
from maskmill.kernels.python_mode import wraps_around

__all__ = ["inlined_kernel", "kernel", "lean_kernel", "wraps_around"]
