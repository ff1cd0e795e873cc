"""The public name of `tract_core.api.runnable`."""

from tract_core.api.runnable import Runnable

__all__ = ["Runnable"]
