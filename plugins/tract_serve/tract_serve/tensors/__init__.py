"""Tensors as the protocol has them: names of element types, bytes, numbers of JSON."""
