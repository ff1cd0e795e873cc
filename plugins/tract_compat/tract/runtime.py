"""The names of `tract_core.runtime`."""

from tract_core.runtime import Runtime, runtime_for_name

__all__ = ["Runtime", "runtime_for_name"]
