"""The cases of the core's operators, one module per family."""
