"""Noise for policies that are told how to be random."""
