"""Makes the page that tells of a data set."""
