"""A folder for each step from a dump to records: plain functions first, then the PTransform that wires them."""
