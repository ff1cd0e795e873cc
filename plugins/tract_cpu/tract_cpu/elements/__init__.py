"""What is computed element by element, and along rows: chains, regions, and their loops."""
