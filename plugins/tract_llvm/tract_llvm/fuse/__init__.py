"""What is computed by one kernel: chains of operators on elements, and programs for rows."""
