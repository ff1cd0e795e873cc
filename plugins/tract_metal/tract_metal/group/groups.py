"""The kinds of groups that there are: what one call of MLX computes, or several that belong together."""

from __future__ import annotations

from tract_core.compile.groups import Group
from tract_core.frozen import frozen


@frozen
class Single(Group):
    """One node."""
