"""The report: one HTML page about a data set."""
