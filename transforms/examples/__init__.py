"""TODO transforms.examples."""
