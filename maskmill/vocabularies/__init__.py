"""Words are counted, and a vocabulary is learnt from the counts."""
