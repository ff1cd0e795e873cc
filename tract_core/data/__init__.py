"""Element types and the values that are known before a model runs.

The public names, in ``__init__.pyi``, are imported when they are first used.
"""

from __future__ import annotations

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__)
