"""Operators that only models have that this runtime made for itself."""
