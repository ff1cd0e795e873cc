"""How operators of the core are written as nodes of ONNX: one module a family, called as the core's."""
