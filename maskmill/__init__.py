"""maskmill: Wikipedia dumps and text corpora to masked-language-model pre-training data.

Importing this package imports nothing else: no Beam, no framework, no numba.
"""

__version__ = "0.1.0"
