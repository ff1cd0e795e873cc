"""``tract MODEL view``: what is written, what is said, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from base64 import b64decode
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper
from tract_view import opening
from viewed_models import layers, named, saved

from tract_core.cli.frame import app


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, layers(3, named))


def tract(*arguments: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == status, result.output
    return result


def piece(path: Path, name: str) -> Any:
    (found,) = re.findall(rf'id="piece-{name}">([A-Za-z0-9+/=]*)</script>', path.read_text())
    return json.loads(gzip.decompress(b64decode(found)))


def stages_in(path: Path) -> list[str]:
    return [stage["name"] for stage in piece(path, "summary")["stages"]]


def test_a_page_in_a_file_shows_every_stage(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = tract(model, "-t", "f32_to_f16", "view", "--html", page)
    assert result.output == ""
    assert stages_in(page) == ["load", "analyse", "type", "f32_to_f16", "optimize"]
    last = piece(page, "stage-4")
    assert {last["texts"][one[1]] for one in last["placings"]} == {"cpu"}
    assert last["times"] is None


def test_pass_ends_it_earlier(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    tract(model, "--pass", "load", "view", "--html", page)
    assert stages_in(page) == ["load"]


def test_attributes_of_a_file_are_those_that_it_gives(tmp_path: Path) -> None:
    """Not what the loader keeps beside them."""
    node = helper.make_node("Concat", ["x", "x"], ["y"], axis=-1)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, size]) for name, size in (("x", 3), ("y", 6))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    path, page = tmp_path / "m.onnx", tmp_path / "page.html"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    tract(path, "view", "--html", page)
    stage = piece(page, "stage-0")
    texts = [[stage["texts"][one] for one in listed] for listed in stage["attributes"]]
    assert texts == [[], ["axis", "-1"], []]


def test_a_profile_is_of_what_runs(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    tract(model, "-r", "reference", "view", "--html", page, "--profile", "--set", "N=2", "--max-loops", "3")
    times = piece(page, f"stage-{len(stages_in(page)) - 1}")["times"]
    assert times["runtime"] == "reference"
    assert len(times["parts"]) == 30
    assert times["groups"][0][0] == pytest.approx(times["nodes"])


def test_a_profile_wants_sizes(model: Path, tmp_path: Path) -> None:
    result = tract(model, "view", "--html", tmp_path / "page.html", "--profile", status=1)
    assert "has a size that is not known: N" in result.output
    assert list(tmp_path.iterdir()) == [model]


def test_a_profile_needs_what_runs(model: Path) -> None:
    result = tract(model, "--pass", "type", "view", "--profile", status=1)
    assert "--profile needs what runs, and --pass type ends before it" in result.output


def test_what_cannot_be_typed_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    node = helper.make_node("Mystery", ["x"], ["y"], name="odd", domain="nobody")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("nobody", 1)]
    path, page = tmp_path / "m.onnx", tmp_path / "page.html"
    onnx.save(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=opsets), path)
    result = tract(path, "view", "--html", page)
    assert "Warning: the model is shown as it is before 'type', which fails:" in result.output
    assert stages_in(page)[0] == "load"
    assert "'odd'" in piece(page, "summary")["remarks"][0]
    result = tract(path, "view", "--html", page, "--profile", status=1)
    assert "--profile needs a model that runs" in result.output


def test_json_for_model_explorer(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "explorer.json"
    tract(model, "view", "--model-explorer", file)
    found = json.loads(file.read_text())
    assert [graph["id"] for graph in found["graphs"]] == ["load", "analyse", "type", "optimize"]
    assert found["label"] == "model.onnx"


@pytest.mark.parametrize("flag", ["--html", "--model-explorer"])
def test_files_that_cannot_be_written(model: Path, tmp_path: Path, flag: str) -> None:
    result = tract(model, "view", flag, tmp_path / "nowhere" / "file", status=1)
    assert "it cannot be written" in result.output
    assert "Traceback" not in result.output


def test_ctrl_c_ends_the_server_with_130(model: Path) -> None:
    line = [sys.executable, "-m", "tract_core", str(model), "view", "--no-browser"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        with urllib.request.urlopen(f"{url}summary.json") as answer:
            assert json.loads(gzip.decompress(answer.read()))["title"] == "model.onnx"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "whoever knows this address can read the model" in told
    assert "Traceback" not in told


def test_the_address_is_in_no_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """All users see the arguments of all processes: the browser is given a file that only its user can read."""
    import webbrowser

    seen: list[str] = []
    monkeypatch.setattr(webbrowser, "open", seen.append)
    with opening.opened("http://127.0.0.1:1/token/"):
        (uri,) = seen
        assert "token" not in uri
        file = Path(uri.removeprefix("file://"))
        assert "token" in file.read_text()
        assert file.parent.stat().st_mode & 0o077 == 0 or os.name == "nt"
    assert not file.parent.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="screens are found otherwise there")
def test_no_browser_without_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.BackgroundBrowser("firefox"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    assert not opening.has_browser()
    monkeypatch.setenv("DISPLAY", ":0")
    assert opening.has_browser()
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1")
    assert not opening.has_browser()
    monkeypatch.delenv("SSH_CONNECTION")
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser("w3m"))  # it would take the terminal
    assert not opening.has_browser()
