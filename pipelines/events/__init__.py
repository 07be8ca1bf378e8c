"""Who is told of a build: a webhook, OpenLineage, Prometheus."""
