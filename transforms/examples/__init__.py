"""Text shards become shards of records, as steps of a graph; and what examples of a text will be."""
