"""Counts the words of text, and learns a vocabulary from the counts."""
