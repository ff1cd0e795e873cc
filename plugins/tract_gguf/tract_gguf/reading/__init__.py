"""Files of GGUF: the header, what it says of the model, and tensors in place."""
