"""Kernels: what is decided about each, as data, and how one thread does its part."""
