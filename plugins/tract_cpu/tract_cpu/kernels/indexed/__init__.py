"""Products whose matrix each row chooses."""
