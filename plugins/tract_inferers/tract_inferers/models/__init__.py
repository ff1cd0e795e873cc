"""Models whose inputs and outputs have an axis of agents."""
