"""Documents to text shards and the eval set."""
