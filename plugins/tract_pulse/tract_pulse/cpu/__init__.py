"""How the CPU runtime computes the operators of streams natively: rows of its tables, imported when it asks."""
