"""Where tensors are written: decided for all of them before kernels are."""
