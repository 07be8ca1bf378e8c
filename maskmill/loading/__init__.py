"""Reads data sets back: their samples in one order, masked if need be, as batches of arrays.

The order is a function of the data set, a seed and the epoch alone. Any number of ranks and workers reads disjoint
parts of it.
"""
