"""Functions in the text of LLVM that instructions are made of; each kernel brings those that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.frozen import frozen


@frozen
class Helper:
    """``result``: its type; ``arguments``: as declared; ``body``: blocks of LLVM. ``needs``: others that it calls.

    ``declares``: functions of elsewhere that it calls.
    """

    result: str
    arguments: str
    body: str
    needs: tuple[str, ...] = ()
    declares: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """The whole function."""
        return f"define internal {self.result} @{name}({self.arguments}) alwaysinline {{\n{self.body}\n}}\n"


HELPERS: Final[Mapping[str, Helper]] = {}
