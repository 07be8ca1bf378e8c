"""Mirrors of dumps: the complete dumps on a mirror, and their files on this machine."""
