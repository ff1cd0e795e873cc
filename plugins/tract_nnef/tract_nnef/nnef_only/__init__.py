"""Operators that only NNEF files have, one module per family."""
