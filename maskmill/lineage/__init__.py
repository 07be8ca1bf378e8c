"""TODO maskmill.lineage."""
