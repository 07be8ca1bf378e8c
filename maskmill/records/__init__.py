"""Write instances and rows to files as records: serialise, frame, index, pick."""
