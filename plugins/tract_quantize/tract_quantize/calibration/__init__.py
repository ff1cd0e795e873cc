"""What tensors hold while data goes through a model: counted, and made into ranges."""
