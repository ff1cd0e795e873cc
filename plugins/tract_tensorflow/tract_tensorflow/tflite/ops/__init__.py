"""How the operators of TFLite are wired, one module per family."""
