"""A folder for each step from a dump to records: plain functions, and in `steps.py` the PTransforms that wire them."""
