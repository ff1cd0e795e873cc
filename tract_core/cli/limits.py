"""What ``--limit`` says: fields of `LoadLimits` as ``NAME=NUMBER``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from tract_core.errors import InputError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits


def limits_from(texts: Sequence[str]) -> LoadLimits | None:
    """The default limits with what ``texts`` say, as ``max_nodes=5000``; ``None`` without any. Raises InputError."""
    return replace(DEFAULT_LIMITS, **dict(map(_limit, texts))) if texts else None


def _limit(text: str) -> tuple[str, Any]:
    name, equals, number = text.partition("=")
    known = {field.name for field in fields(LoadLimits)}
    if not equals or name.strip() not in known:
        raise InputError(
            f"--limit {text!r} is not of the form NAME=NUMBER with one of the names {', '.join(sorted(known))}",
            hint="as in --limit max_bytes=1e9 --limit deadline_s=10",
        )
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise InputError(f"--limit {text!r}: {number!r} is no number that is 0 or more")
    return name.strip(), value if name.strip().endswith("_s") else _whole(text, value)


def _whole(text: str, value: float) -> int:
    if not value.is_integer():
        raise InputError(f"--limit {text!r}: it is counted in whole numbers")
    return int(value)
