"""Pre-training on what the pipelines wrote: model, optimizers, input, evaluation. Imports nothing of Beam."""
