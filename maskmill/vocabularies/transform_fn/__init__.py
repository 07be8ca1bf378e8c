"""TensorFlow's files of a vocabulary: TensorFlow Transform's table of words, and text to ids as a SavedModel.

No other module of this room imports TensorFlow, and these are imported in a process of their own (process.py).
"""
