"""What a text shard is, which files are text shards, and what only looks like one."""
