"""The modules of ``bench`` are scripts beside each other: its folder is on the path, as when they are run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
