"""Where tensors lie in blocks of channels, and where operands of chains are."""
