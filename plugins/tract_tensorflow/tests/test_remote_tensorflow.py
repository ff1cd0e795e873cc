"""Models at addresses of TensorFlow's file systems: copied by another Python, whose TensorFlow is a fake one here.

``TRACT_TENSORFLOW_IO=PYTHON``, one that has tensorflow-io, has `test_with_tensorflow_io` use the real one.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from graphdef_builder import content, node, placeholder
from saved_model_cases import unpack
from tract_tensorflow.remote.fetch import VARIABLE, fetch_model, main

import tract_core as tract
from tract_core.errors import InputError, LimitExceeded, ModelError, PluginError
from tract_core.limits import LoadLimits

REAL = os.environ.get(VARIABLE, "")

FAKE = """
import os, shutil, sys, types
ROOT = {root!r}
def local(address):
    scheme, _, path = address.partition("://")
    if scheme != "fake":
        raise NotImplementedError(f"File system scheme {{scheme!r}} not implemented")
    return os.path.join(ROOT, path)
class Files:
    isdir = staticmethod(lambda address: os.path.isdir(local(address)))
    listdir = staticmethod(lambda address: [one + "/" for one in os.listdir(local(address))] + {more!r})
    GFile = staticmethod(lambda address, mode: open(local(address), mode))
def program():
    {first}
    sys.stderr.write("a long story of libraries")
    sys.modules["tensorflow"] = types.SimpleNamespace(io=types.SimpleNamespace(gfile=Files))
    sys.modules["tensorflow_io"] = None
    script, sys.argv[:] = sys.argv[2], sys.argv[2:]
    import runpy
    runpy.run_path(script, run_name="__main__")
program()
"""


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def python(tmp_path):
    """Makes a program that plays the Python of the other environment, over a folder of models."""

    def make(first="pass", more=()):
        (tmp_path / "fake.py").write_text(FAKE.format(root=str(tmp_path / "far"), first=first, more=list(more)))
        launcher = tmp_path / "python"
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{tmp_path / "fake.py"}" "$@"\n')
        launcher.chmod(0o755)
        return launcher

    if sys.platform == "win32":
        pytest.skip("the program is a script of a Unix shell")
    unpack("dense", tmp_path / "far" / "dense")
    (tmp_path / "far" / "plain.pb").write_bytes(content(placeholder("x", 2), node("Neg", "y", "x")))
    return make


def test_a_saved_model_is_copied(python, tmp_path, capsys):
    (tmp_path / "far" / "dense" / "keras_metadata.pb").write_bytes(b"of another program")
    path = fetch_model("fake://dense", tmp_path / "near", python=python())
    assert path == tmp_path / "near"
    wanted = tract.load(tmp_path / "far" / "dense").typed
    assert tract.load(path).typed == wanted
    assert sorted(one.name for one in path.iterdir()) == ["saved_model.pb", "variables"]
    words = ["fake://dense/", str(tmp_path / "again"), "--python", str(python())]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'again'}\n"


def test_a_file_is_copied_by_the_python_that_the_environment_names(python, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(python()))
    path = fetch_model("fake://plain.pb", tmp_path / "near")
    assert path == tmp_path / "near" / "plain.pb"
    assert path.read_bytes() == (tmp_path / "far" / "plain.pb").read_bytes()


@pytest.mark.parametrize(
    ("address", "most", "kind", "message"),
    [
        ("fake://dense", 100, LimitExceeded, "more than 100 bytes.*\n.*--max-bytes"),
        ("fake://absent", 10**9, ModelError, "fake://absent: cannot be copied: FileNotFoundError"),
        ("moon://dense", 10**9, ModelError, "'moon' not implemented.*tensorflow-io is not in use"),
    ],
)
def test_nothing_is_left_of_what_cannot_be_copied(python, tmp_path, address, most, kind, message):  # noqa: PLR0917 - fixtures and parameters
    with pytest.raises(kind, match=message):
        fetch_model(address, tmp_path / "near", python=python(), limits=LoadLimits(max_bytes=most))
    assert not (tmp_path / "near").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["../up", "..", ".", "a/b", "a\\b", "C:", "\n", "x" * 300])
def test_names_that_lead_elsewhere(python, tmp_path, name):
    with pytest.raises(ModelError, match="a file is called "):
        fetch_model("fake://dense", tmp_path / "near", python=python(more=[name]))
    assert not (tmp_path / "near").exists()


@pytest.mark.parametrize(
    ("first", "kind", "message"),
    [
        ("import time; time.sleep(60)", LimitExceeded, "longer than 1 seconds"),
        ("sys.exit('no room')", PluginError, "ends with status 1: no room"),
        ("print(7); sys.exit(0)", PluginError, "ends with status 0"),
    ],
)
def test_a_python_that_does_not_do_it(python, tmp_path, first, kind, message):
    with pytest.raises(kind, match=message):
        fetch_model("fake://dense", tmp_path / "near", python=python(first), limits=LoadLimits(deadline_s=1))
    assert not (tmp_path / "near").exists()


def test_what_is_wrong_before(python, tmp_path, capsys):
    with pytest.raises(InputError, match="wanted an address, as s3://bucket/model"):
        fetch_model("dense", tmp_path / "near", python=python())
    (tmp_path / "near").mkdir()
    with pytest.raises(InputError, match="near"):
        fetch_model("fake://dense", tmp_path / "near", python=python())
    with pytest.raises(PluginError, match="there is no such Python"):
        fetch_model("fake://dense", tmp_path / "new", python=tmp_path / "absent")
    assert main(["fake://dense", str(tmp_path / "new")]) == 1
    said = capsys.readouterr().err
    assert "nothing says which Python has tensorflow-io" in said
    assert 'tensorflow-io/bin/pip install "tensorflow-io==0.37.1" "tensorflow~=2.16.0"' in said
    assert "export TRACT_TENSORFLOW_IO=" in said


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):  # noqa: A002 - the name in the standard library
        pass


@pytest.mark.skipif(not REAL, reason=f"{VARIABLE} names no Python with tensorflow-io")
def test_with_tensorflow_io(tmp_path):
    """A SavedModel through TensorFlow's own file system, a file through that of tensorflow-io for HTTP."""
    far = unpack("dense", tmp_path / "far" / "dense")
    path = fetch_model(f"file://{far}", tmp_path / "near", python=REAL)
    assert tract.load(path).typed == tract.load(far).typed
    graph = tmp_path / "far" / "plain.pb"
    graph.write_bytes(content(placeholder("x", 2), node("Neg", "y", "x")))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path / "far"))) as there:
        threading.Thread(target=there.serve_forever, daemon=True).start()
        path = fetch_model(f"http://127.0.0.1:{there.server_port}/plain.pb", tmp_path / "one", python=REAL)
        there.shutdown()
    (found,) = tract.load(path).into_runnable("reference").run([np.ones(2, np.float32)])
    np.testing.assert_array_equal(found.numpy(), [-1, -1])
    assert isinstance(path, Path)
    with pytest.raises(ModelError, match="cannot be copied"):
        fetch_model(f"file://{tmp_path}/absent", tmp_path / "two", python=REAL)
