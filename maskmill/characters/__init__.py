"""UTF-8, and what a character is, pinned to a Unicode version."""
