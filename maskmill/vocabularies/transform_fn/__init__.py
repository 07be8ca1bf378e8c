"""What TensorFlow does for a vocabulary: TensorFlow Transform's table of words, and text to ids as a SavedModel.

Nothing else of this room imports TensorFlow, and these modules do so in a process of their own (process.py).
"""
