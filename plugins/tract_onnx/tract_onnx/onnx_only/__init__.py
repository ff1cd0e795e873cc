"""Operators of the ONNX standard that the core does not have: one module per family."""
