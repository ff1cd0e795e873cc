"""How the operators that only ONNX has are spelled in NNEF, one module per family: reader and writer side by side.

These are rows of tables of `tract_nnef`. They are imported when one of these tables is asked, so only where it is
installed.
"""
