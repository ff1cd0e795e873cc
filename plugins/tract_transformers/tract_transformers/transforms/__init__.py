"""Rewrites of language models: caches inside the state of a model, and outside of it."""
