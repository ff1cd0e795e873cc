"""Versions of engines, ordered as Semantic Versioning 2.0.0 says (semver.org)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Final, Self

from tract_core.errors import InputError

_NUMBER: Final = r"(0|[1-9][0-9]{0,8})"
_PARTS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_PARTS}))?(?:\+({_PARTS}))?", re.ASCII)


@total_ordering
@dataclass(frozen=True, eq=False)
class SemanticVersion:
    """``major.minor.patch``, as ``0.23.8``, or ``0.23.8-rc.1+build``.

    Compares with versions and with their texts. ``prerelease`` comes before the release; ``build`` is no part of the
    order.
    """

    major: int
    minor: int
    patch: int
    prerelease: str | None = None
    build: str | None = None

    def __post_init__(self) -> None:
        """Raises InputError for numbers and words that no version has."""
        if _VERSION.fullmatch(self.to_str()) is None:
            raise InputError(f"{self.to_str()[:40]!r} is no version", hint="versions are like 0.23.8 or 0.24.0-rc.1")

    @classmethod
    def from_str(cls, text: str) -> Self:
        """The version of a text, also with a ``v`` before it. Raises InputError for a text that is none."""
        found = _VERSION.fullmatch(text.strip())
        if found is None:
            raise InputError(f"{text[:40]!r} is no version", hint="versions are like '0.23.8' or '0.24.0-rc.1'")
        major, minor, patch, prerelease, build = found.groups()
        return cls(int(major), int(minor), int(patch), prerelease, build)

    @classmethod
    def of(cls, version: str | SemanticVersion) -> SemanticVersion:
        """A version, or that of a text. Raises InputError for what is neither."""
        if isinstance(version, SemanticVersion):
            return version
        if not isinstance(version, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"wanted a version or its text, got {type(version).__name__}")
        return cls.from_str(version)

    def to_str(self) -> str:
        """The text."""
        text = f"{self.major}.{self.minor}.{self.patch}"
        text += f"-{self.prerelease}" if self.prerelease else ""
        return text + (f"+{self.build}" if self.build else "")

    __str__ = to_str

    def _order(self) -> tuple[Any, ...]:
        """Numbers come before words, a list before a longer one that begins with it, the release last."""
        parts = (self.prerelease or "").split(".") if self.prerelease else []
        words = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
        return self.major, self.minor, self.patch, not words, words

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            found = _VERSION.fullmatch(other.strip())
            return found is not None and self == SemanticVersion.from_str(other)
        return self._order() == other._order() if isinstance(other, SemanticVersion) else NotImplemented

    def __lt__(self, other: str | SemanticVersion) -> bool:
        if not isinstance(other, str | SemanticVersion):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            return NotImplemented
        return self._order() < SemanticVersion.of(other)._order()

    def __hash__(self) -> int:
        return hash(self._order())
