"""Pieces to instances: sentence pairs with masked positions, in their order."""
