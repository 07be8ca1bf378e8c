"""Files that appear whole, records of finished work, and manifests."""
