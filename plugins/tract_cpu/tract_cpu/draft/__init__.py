"""The program while it is made."""
