"""How the CPU runtime computes the operators that only ONNX has natively, one module per family.

These are rows of tables of `tract_cpu`. They are imported when one of these tables is asked, so only where it is
installed.
"""
