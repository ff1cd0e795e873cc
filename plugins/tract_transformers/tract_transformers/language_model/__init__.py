"""Which input and output of a model is what, and what it has seen of a text."""
