"""TODO pipelines.events.events."""
