"""The `verify` command, in this process or on Beam."""
