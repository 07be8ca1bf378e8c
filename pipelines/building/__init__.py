"""TODO pipelines.building."""
