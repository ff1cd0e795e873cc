"""Kernels of products: tiles, on tensor cores too, few rows, single sums; the other factor plain or in blocks."""
