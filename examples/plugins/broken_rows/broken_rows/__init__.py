"""A plugin that breaks in one row of a table."""
