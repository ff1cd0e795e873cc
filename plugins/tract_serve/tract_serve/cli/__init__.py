"""The command ``tract serve``."""
