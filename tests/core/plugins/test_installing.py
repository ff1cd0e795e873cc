"""The line that installs a distribution of ours leads to where the core came from, and never to an index."""

from __future__ import annotations

import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from tract_core.plugins import installing
from tract_core.plugins.installing import how_to_install, how_to_upgrade


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """``noted(url, **more)``: what pip noted of where the core came from; nothing else of ours is installed."""

    def note(url: str | None, **more: object) -> None:
        info = tmp_path / "tract_core-0.1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tract-core\nVersion: 0.1.0\n")
        if url is not None:
            (info / "direct_url.json").write_text(json.dumps({"url": url, **more}))
        there = {"tract-core": Distribution.at(info)}

        def named(name: str) -> Distribution:
            if name not in there:
                raise installing.PackageNotFoundError(name)
            return there[name]

        monkeypatch.setattr(installing.Distribution, "from_name", staticmethod(named))

    return note


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("tract_onnx", "tract_nnef", "tract_torch"):
        folder = tmp_path / "my checkout" / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").touch()
    return tmp_path / "my checkout"


def test_from_a_checkout(noted, checkout: Path) -> None:
    noted(checkout.as_uri(), dir_info={"editable": True})
    assert how_to_install("tract-onnx") == f"pip install -e '{checkout}/plugins/tract_onnx'"
    noted(checkout.as_uri(), dir_info={})
    folder = f"{checkout}/plugins"
    assert how_to_install("tract-torch") == f"pip install '{folder}/tract_nnef' '{folder}/tract_torch'"
    assert how_to_upgrade("tract-onnx") == f"install a newer tract-onnx, as from {str(checkout)!r}"


def test_from_a_folder_of_wheels(noted, tmp_path: Path) -> None:
    for name in ("tract_core-0.1.0", "tract_onnx-0.1.0", "tract_onnx-0.1.1"):
        (tmp_path / f"{name}-py3-none-any.whl").touch()
    noted((tmp_path / "tract_core-0.1.0-py3-none-any.whl").as_uri(), archive_info={})
    assert how_to_install("tract-onnx") == f"pip install {tmp_path}/tract_onnx-0.1.1-py3-none-any.whl"


NOTES = [
    None,
    "",
    "https://example.org/tract_core-0.1.0-py3-none-any.whl",
    "file:///nothing/is/here",
    3,
]


@pytest.mark.parametrize("url", NOTES)
def test_from_elsewhere(noted, url) -> None:
    """As by ``--find-links``, of which pip notes nothing: no name is left for an index to look up."""
    noted(url)
    where = "where DIST is the folder of wheels that tract-core is from"
    assert how_to_install("tract-onnx") == f"pip install DIST/tract_onnx-*.whl, {where}"
    assert how_to_install("tract-torch") == f"pip install DIST/tract_nnef-*.whl DIST/tract_torch-*.whl, {where}"
    assert how_to_upgrade("tract-onnx") == "install a newer tract-onnx"


def test_a_checkout_without_the_plugin(noted, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    noted((tmp_path / "empty").as_uri(), dir_info={"editable": True})
    assert how_to_install("tract-onnx").startswith("pip install DIST/tract_onnx-*.whl")


def test_what_others_made_is_upgraded_by_its_name() -> None:
    assert how_to_upgrade("tract-soften") == "pip install --upgrade tract-soften"
