"""BLAKE2 as Python has it, without OpenSSL, which `hashlib` loads along: that takes as long as a small model does."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b", "digest_of"]


def digest_of(*texts: str) -> str:
    """A hash of texts, in this order: 40 digits in base 16. Texts may hold what is no character, as paths do."""
    return blake2b("\0".join(texts).encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()
