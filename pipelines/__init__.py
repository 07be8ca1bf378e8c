"""Runs the steps of `transforms`, and the training: commands, stages, releases. The command is in commands/cli.py."""
