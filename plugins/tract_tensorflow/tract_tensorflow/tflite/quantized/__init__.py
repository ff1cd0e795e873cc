"""How the operators of TFLite are wired on quantised tensors, one module per family."""
