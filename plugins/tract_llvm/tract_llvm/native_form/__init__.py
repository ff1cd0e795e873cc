"""The form of models that kernels are made for: quantised arithmetic as products of integers, and elements."""
