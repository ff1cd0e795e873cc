"""Weights that were quantised, by the methods that ``quantization_config`` of ``config.json`` names.

`schemes.py` has the table; each method has a module, which says what tensors it writes for a matrix, and in which order
their bits lie. `module.py` is what they read these by, `integers.py` takes words apart.
"""
