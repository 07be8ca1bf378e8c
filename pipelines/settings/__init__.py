"""TODO pipelines.settings."""
