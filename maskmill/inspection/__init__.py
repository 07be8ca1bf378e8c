"""Shows what is in data sets: records become words again."""
