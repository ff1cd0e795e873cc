"""What an export with its check takes of memory beyond the module, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[3] / "bench" / "bench_torch_memory.py"

MOST = 1.3
"""Times the weights."""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not say what is in memory")
@pytest.mark.parametrize("name", ["linear", "tied"])
def test_a_checked_export_takes_little_more_than_one_copy_of_the_weights(name: str) -> None:
    command = [sys.executable, str(BENCH), "--megabytes", "192", "--child", name, "checked"]
    found = json.loads(subprocess.check_output(command).splitlines()[-1])
    assert found["weights"] > 150 << 20
    assert found["private"] <= MOST
    assert found["peak"] <= MOST
