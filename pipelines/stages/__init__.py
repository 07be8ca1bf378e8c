"""The stages of a build: their list, their contract, their checks, and each of them."""
