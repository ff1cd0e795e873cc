"""Whole documents: they become models, operator by operator, and models become documents, node by node."""
