"""The same model gives the same bytes: in other processes, at other times, for other users, in other places."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys, time
sys.path.insert(0, {tests!r})
os.umask(int(sys.argv[2], 8))
clock = float(sys.argv[3])
time.time = lambda: clock
from cycles import small_model
import tract_core as tract
model = tract.Model.from_typed(small_model())
for name in ("m.tar", "m.nnef.tgz"):
    model.save(os.path.join(sys.argv[1], name))
tract.nnef().write_model_to_dir(model, os.path.join(sys.argv[1], "folder"))
"""


def digests(folder: Path, umask: str, clock: str, **environment: str) -> dict[str, str]:
    folder.mkdir()
    script = SCRIPT.format(tests=str(Path(__file__).parent))
    variables = {**os.environ, "TZ": "UTC", **environment}
    subprocess.run([sys.executable, "-c", script, str(folder), umask, clock], check=True, env=variables)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_cooks_are_alike(tmp_path) -> None:
    one = digests(tmp_path / "one", "022", "1000000000", PYTHONHASHSEED="1", USER="ada", LOGNAME="ada", HOME="/a")
    other = digests(
        tmp_path / "another place",
        "077",
        "1900000000",
        PYTHONHASHSEED="2",
        USER="grace",
        LOGNAME="grace",
        HOME="/g",
        TZ="Asia/Tokyo",
        LC_ALL="C",
    )
    assert one == other
    assert {"m.tar", "m.nnef.tgz", "folder/graph.nnef"} <= one.keys()
