"""Whole commands as tests run them: in processes, killed, without extras, on a terminal."""
