"""The operators that keep something from one pulse for the next."""
