"""Releases of a data set: immutable directories, the pointer to the latest one, and locks for builders."""
