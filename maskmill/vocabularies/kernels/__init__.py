"""Compiled kernels of this step."""
