"""Inputs that tests make up: texts, dumps in every container, tokenizers, rows."""
