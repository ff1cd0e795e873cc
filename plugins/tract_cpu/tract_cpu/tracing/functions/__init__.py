"""How functions of NumPy are wired, one module per family."""
