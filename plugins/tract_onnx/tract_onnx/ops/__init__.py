"""How each ONNX operator is wired in core operators, one module per family."""
