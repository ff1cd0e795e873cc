"""The names of `tract_core.fact`."""

from tract_core.fact import Fact, InferenceFact

__all__ = ["Fact", "InferenceFact"]
