"""What a command prints: progress, summaries, warnings."""
