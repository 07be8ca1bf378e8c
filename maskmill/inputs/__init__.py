"""Input files: what kind they are, how they are cut into units, and their pages and documents."""
