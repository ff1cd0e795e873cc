"""How archives spell the operators of language models."""
