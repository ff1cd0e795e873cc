"""Changes to whole models that this distribution brings."""
