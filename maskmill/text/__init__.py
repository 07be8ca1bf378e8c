"""TODO maskmill.text."""
