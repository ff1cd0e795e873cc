"""What is printed, as data, and what draws it."""
