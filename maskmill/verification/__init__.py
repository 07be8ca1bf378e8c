"""Verify data sets: first each file alone, then all of them together."""
