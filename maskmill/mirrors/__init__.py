"""Mirrors of dumps: which dumps are there and complete, and their files on this machine."""
