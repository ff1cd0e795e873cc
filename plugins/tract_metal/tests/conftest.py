"""These tests want MLX, which `requirements/test.txt` brings where there is a build of it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("mlx") is None:
    collect_ignore_glob = ["test_*.py"]

sys.path.append(str(Path(__file__).parent))
