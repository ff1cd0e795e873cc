"""Rules that bring a model to the form that kernels want, one module per family."""
