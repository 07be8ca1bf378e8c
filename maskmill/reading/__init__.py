"""Open data sets, check them, and read the rows of their files, from a disk or over a network."""
