"""Requests that belong together: what a model keeps from one to the next, in memory and in a store."""
