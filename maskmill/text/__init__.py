"""Text shards: their description, the files that are text shards, and files that only look like one."""
