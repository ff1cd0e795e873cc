"""NumPy meanings as graphs: a function is called once, with symbolic arrays, and what it does is written down."""
