"""From an exported program to a model: its sizes, guards, states and nodes."""
