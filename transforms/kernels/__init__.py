"""Compiled kernels. `from transforms.kernels import kernel` decorates a function that numba compiles.

Kernels take and return NumPy arrays and scalars, never Python objects; they release the GIL. Their machine code is
kept on disk (transforms.kernels.cache), so that a second process does not compile again. A module of kernels may
define `warm_up()`, which calls each of its entry kernels once on tiny arrays of the types that callers use;
`python -m transforms.kernels` runs them all, which is how an image is pre-warmed.

Machine code is for the kind of CPU that made it: pin `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` when an image is made
and when it runs, to use it on other kinds.
"""

from transforms.kernels.compiler import inlined_kernel, kernel, lean_kernel

__all__ = ["inlined_kernel", "kernel", "lean_kernel"]
