"""How the operators of TensorFlow are wired, one module per family."""
