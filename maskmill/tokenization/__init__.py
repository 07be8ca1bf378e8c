"""Text to pieces of a vocabulary."""
