"""Operators of language models: what they keep from turn to turn, and their NumPy meaning."""
