"""A plugin that breaks in prepare and in run."""
