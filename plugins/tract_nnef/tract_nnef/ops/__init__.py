"""How operators are spelled in NNEF, one module per family: reader and writer side by side."""
