"""NNEF archives: the text format, tensors and containers, and how operators are spelled in them."""
