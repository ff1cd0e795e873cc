"""The names of `tract_core.model`: the page about models and their lifecycle, and `Model`."""

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__, of="tract_core.model")
