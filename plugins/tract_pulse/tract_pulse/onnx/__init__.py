"""How the operators of streams are written in ONNX, which keeps nothing between runs: states are inputs and outputs."""
