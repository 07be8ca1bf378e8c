"""Split text into the pieces of a vocabulary."""
