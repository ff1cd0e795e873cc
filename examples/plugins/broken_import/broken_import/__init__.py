"""A plugin that breaks when it is imported."""
