"""Published text, reproduced byte for byte: WikiExtractor's text and MLPerf's clean-up. Its output never changes."""
