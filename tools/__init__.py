"""Programs that make the tables which packages hold: run them from a checkout, as `python -m tools.NAME`."""
