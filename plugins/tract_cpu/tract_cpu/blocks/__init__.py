"""Tensors in blocks of channels."""
