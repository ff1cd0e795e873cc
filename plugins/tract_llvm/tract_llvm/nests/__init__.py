"""What operators that reduce are made of: rows of the table ``nests``."""
