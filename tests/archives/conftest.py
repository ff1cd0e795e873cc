"""The archives of other writers: collected only when they are asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent

sys.path.insert(0, str(HERE.parents[1] / "plugins" / "tract_nnef" / "tests"))  # for the established engine


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.parent == HERE and "archives" not in config.option.markexpr else None
