"""The names of `tract_core.state`."""

from tract_core.state import FrozenState, State

__all__ = ["FrozenState", "State"]
