"""TODO pipelines.commands."""
