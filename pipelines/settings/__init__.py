"""Options of stages as flags, keys of a YAML file and parameters."""
