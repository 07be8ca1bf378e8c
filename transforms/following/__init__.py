"""An article is followed from the dump to its rows."""
