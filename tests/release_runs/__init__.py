"""Releases and watches that tests build, hold and kill."""
