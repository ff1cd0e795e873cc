"""The runtime of tract-core for GPUs of Apple, through MLX."""
