"""How ONNX spells the operators that only TFLite has."""
