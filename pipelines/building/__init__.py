"""All stages of a build, from a YAML file to the report at its end."""
