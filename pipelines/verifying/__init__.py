"""TODO pipelines.verifying."""
