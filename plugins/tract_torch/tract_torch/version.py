"""Which version of this distribution is installed."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

VERSION: Final = version("tract-torch")
__version__: Final = VERSION
