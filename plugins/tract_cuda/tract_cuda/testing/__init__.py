"""What proves kernels right where there is no GPU: their PTX, executed on the host."""
