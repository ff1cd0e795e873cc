"""Graphs of TensorFlow: frozen ones, and those in SavedModels."""
