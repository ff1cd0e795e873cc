"""What users hold: small objects around graphs, facts and plans, with the names of the established binding."""
