"""Releases of a data set: immutable directories, which one is the latest, who builds and who reads them."""
