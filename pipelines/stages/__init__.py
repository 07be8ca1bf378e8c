"""TODO pipelines.stages.registry."""
