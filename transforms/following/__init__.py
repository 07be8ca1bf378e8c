"""TODO transforms.following."""
