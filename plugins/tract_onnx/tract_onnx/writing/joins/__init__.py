"""What becomes one operator of ONNX, one module per family: see `writing.joining`."""
