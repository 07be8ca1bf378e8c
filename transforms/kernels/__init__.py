"""Compiled kernels. `from transforms.kernels import kernel` decorates a function that numba compiles.

Kernels take and return NumPy arrays and scalars, never Python objects; they release the GIL, and their
machine code is cached on disk so that a second process does not compile again.
"""

import numba


def kernel(function):  # type: ignore[no-untyped-def]
    """Compiles `function` with numba on first call: no Python objects, GIL released, cached on disk."""
    return numba.njit(cache=True, nogil=True)(function)
