"""Weights of modules: reading them from disk, replacing, quantising and patching them."""
