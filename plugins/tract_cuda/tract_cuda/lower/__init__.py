"""How operators and groups become launches: one module per family of operators."""
