"""What each instruction becomes: a table for each family."""
