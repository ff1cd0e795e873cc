"""Transforms: whole-model rewrites, by name or by class, each a frozen dataclass whose fields are its parameters."""
