"""Streaming: models over a whole signal become models that take it piece by piece."""
