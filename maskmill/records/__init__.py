"""Instances to records in files: serialised, framed, indexed, picked."""
