"""A plugin that breaks in a hook."""
