"""Finds out whether data sets are right: each file alone, then all of them together."""
