"""The plugin seam: hooks, tables, and the registry that joins them.

The default registry is made when it is first asked for, from the plugins that are installed. The public names are those
in ``__init__.pyi``, and are imported when they are first used.
"""

from __future__ import annotations

from tract_core.public_names import public_names

__all__, __getattr__, __dir__ = public_names(__name__)  # pyright: ignore[reportUnsupportedDunderAll]: those of the stub
