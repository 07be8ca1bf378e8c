"""Reads data sets back: opens them, checks them, and gives the rows of their files, from a disk or over a network."""
