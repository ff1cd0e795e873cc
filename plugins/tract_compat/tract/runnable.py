"""The names of `tract_core.runnable`."""

from tract_core.runnable import Runnable

__all__ = ["Runnable"]
