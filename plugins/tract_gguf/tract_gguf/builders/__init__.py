"""What builds networks: a small module for each family, and the parts that they share."""
