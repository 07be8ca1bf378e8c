"""The `maskmill` command and those of its subcommands that are no stage."""
