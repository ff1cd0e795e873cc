"""BLAKE2 as Python has it, without OpenSSL, which `hashlib` loads along: that takes as long as a small model does."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b"]
