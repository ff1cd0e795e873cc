"""The public names of `tract_core.api.state`."""

from tract_core.api.state import FrozenState, State

__all__ = ["FrozenState", "State"]
