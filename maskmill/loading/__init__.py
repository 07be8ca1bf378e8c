"""Read the samples of data sets in an order, mask them if masks are not stored, and batch them as arrays.

The order is a function of the data set, a seed and the epoch alone. Any number of ranks and workers reads disjoint
parts of it.
"""
