"""Wikitext to text."""
