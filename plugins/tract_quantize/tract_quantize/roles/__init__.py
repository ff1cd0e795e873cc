"""What the operators of the core are to quantised tensors, family by family."""
