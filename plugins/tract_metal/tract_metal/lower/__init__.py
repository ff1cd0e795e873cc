"""How MLX computes operators and groups: one module per family."""
