"""Prepared models that are kept on disk, so that another process runs them without reading and compiling them again."""
