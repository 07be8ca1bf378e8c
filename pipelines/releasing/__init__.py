"""Releases of data sets, and the watch that builds one when there is a new dump."""
