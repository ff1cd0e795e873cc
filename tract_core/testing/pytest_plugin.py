"""Light pytest entry point."""
