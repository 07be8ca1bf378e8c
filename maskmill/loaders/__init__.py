"""Loaders for frameworks: a module each, which imports its framework when it is imported."""
