"""The references and our own rules in plain Python: slow, easy to read, and what the kernels are compared with."""
