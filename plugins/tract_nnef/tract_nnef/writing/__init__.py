"""What is said of a model, piece by piece: expressions, extension lines, and the node that an operator's row sees."""
