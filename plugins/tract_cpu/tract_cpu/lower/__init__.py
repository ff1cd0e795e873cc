"""From a model to a program: which kernel computes what, on which memory, in which order. Nothing is emitted here."""
