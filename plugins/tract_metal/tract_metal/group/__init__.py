"""Which nodes one call of MLX computes."""
