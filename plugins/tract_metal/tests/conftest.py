"""These tests want MLX, which `requirements/test.txt` brings where there is a build of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("mlx.core", reason="wants MLX")

sys.path.append(str(Path(__file__).parent))
