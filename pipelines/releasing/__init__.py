"""TODO pipelines.releasing."""
