"""Turn tokens into instances (sentence pairs with masked positions) and rows, in the order of writing."""
