"""What a document says, piece by piece: names, values, expressions, and the call that an operator's row sees."""
