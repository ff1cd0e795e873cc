"""What all tests of the compiler for GPUs share."""

from __future__ import annotations

import os

os.environ["TRACT_CHECK_PROGRAMS"] = "1"
