"""Text shards become shards of records: what is made of a shard, where, and what is left to do at the end."""
