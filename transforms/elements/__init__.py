"""Articles, documents and examples as elements, for pipelines that put steps of their own between these."""
