"""Data sets that tests make, damage and read again."""
