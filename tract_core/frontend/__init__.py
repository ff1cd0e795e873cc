"""What the frontends of all formats have in common: rows that wire a format's operators into operators of the core."""
