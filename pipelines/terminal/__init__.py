"""TODO pipelines.terminal."""
