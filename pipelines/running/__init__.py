"""TODO pipelines.running."""
