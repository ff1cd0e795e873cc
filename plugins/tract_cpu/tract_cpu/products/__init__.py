"""Sums of products: how they are cut, packed and ordered."""
