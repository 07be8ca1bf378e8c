"""Servers on this machine: Cloud Storage, mirrors, files."""
