"""Read and write files in all stores, and keep completion records and manifests."""
