"""Pre-training and fine-tuning on the examples that the pipelines write. Nothing here imports Beam."""
