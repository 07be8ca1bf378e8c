"""One module per stage: options in, Beam graph out. `cli.py` is the `maskmill` command."""
