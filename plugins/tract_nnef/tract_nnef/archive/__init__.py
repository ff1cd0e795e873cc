"""Containers of the files of a model, and the tensors in them."""
