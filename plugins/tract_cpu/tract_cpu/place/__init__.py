"""Tensors, and operands of chains, where they lie, plain and in blocks of channels; copied where they do not yet."""
