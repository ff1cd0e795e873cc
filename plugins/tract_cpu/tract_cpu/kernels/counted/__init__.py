"""Kernels that find so many things as only a run tells: first how many, and in a later stage of the run what."""
