"""What others published, byte for byte: WikiExtractor's text and MLPerf's clean-up. What it writes never changes."""
