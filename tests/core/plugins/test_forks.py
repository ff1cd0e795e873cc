"""A process that is forked while another thread asks plugins can ask them too."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKING = """
import os, threading, time, warnings

from tract_core.plugins import default_registry
from tract_core.ops.einsum import EinSum
from tract_core.plugins.keys import COST

warnings.simplefilter("ignore")  # about forks with threads
asked = threading.Event()

def ask():
    with default_registry()._asking():
        asked.set()
        time.sleep(0.3)

asking = threading.Thread(target=ask)
asking.start()
asked.wait()
child = os.fork()
if child == 0:
    os._exit(0 if default_registry()[COST].find(EinSum) else 1)
asking.join()
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_fork_waits_until_the_tables_are_filled() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True, timeout=20)
