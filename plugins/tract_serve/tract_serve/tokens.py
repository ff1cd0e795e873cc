"""Tokens with which clients show who they are."""

from __future__ import annotations

import hmac
from hashlib import sha256

from tract_serve.errors import Unauthorised
from tract_serve.settings import Settings


def check_token(settings: Settings, shown: str) -> None:
    """Raises Unauthorised where tokens are asked for, and none of them is shown (``Bearer TOKEN``)."""
    if not settings.tokens:
        return
    kind, _, token = shown.partition(" ")
    given = sha256(token.strip().encode("latin-1", "replace")).digest()  # the same time for tokens of all lengths
    known = [hmac.compare_digest(given, sha256(one.encode()).digest()) for one in settings.tokens]
    if kind.lower() != "bearer" or not any(known):
        raise Unauthorised("the request shows no token that is known here", hint="Authorization: Bearer TOKEN")
