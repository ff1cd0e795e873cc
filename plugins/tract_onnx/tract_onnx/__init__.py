"""The ONNX frontend: from an ``.onnx`` file to an `InferenceModel`, and operator by operator to core operators."""
