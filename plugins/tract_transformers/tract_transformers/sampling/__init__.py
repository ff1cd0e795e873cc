"""From what a model says of the next token to the token: steps that change logits, and a draw that can be repeated."""
