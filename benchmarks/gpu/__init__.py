"""Parts of `gpu_train`: the model's shape, its corpus, its feeds, and what is measured."""
