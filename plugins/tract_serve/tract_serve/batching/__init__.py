"""Requests that wait for a model, and how several of them become one run."""
