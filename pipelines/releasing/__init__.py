"""Releases of data sets, and the watch that builds them where there is a new dump."""
