"""The transforms, one a module."""
