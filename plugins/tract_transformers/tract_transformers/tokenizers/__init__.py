"""Texts and the numbers that language models know their pieces by."""
