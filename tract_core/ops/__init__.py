"""The operators, one module per family: the dataclasses, their facts, and their rows in the core's tables."""
