"""Kernels that read weights which lie in blocks of small integers."""
