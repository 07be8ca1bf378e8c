"""The `maskmill` command and those of its subcommands that are not stages."""
