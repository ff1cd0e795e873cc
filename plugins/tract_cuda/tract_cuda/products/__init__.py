"""Sums of products: which kernel computes one, with which tiles."""
