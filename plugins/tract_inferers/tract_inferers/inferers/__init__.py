"""Policies that are a model: which plans they keep, and which sizes of batches those take."""
