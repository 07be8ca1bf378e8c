"""The compiled code of this step."""
