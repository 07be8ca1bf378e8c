"""The output of a command: progress, summaries, warnings."""
