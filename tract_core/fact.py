"""The public names of `tract_core.api.fact`."""

from tract_core.api.fact import Fact, InferenceFact

__all__ = ["Fact", "InferenceFact"]
