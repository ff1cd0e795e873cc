"""What is left where a check fails: a folder, or a compressed file of it, that runs the archive again."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch.check.assert_io
from checked import archive_of
from tract_torch.check.assert_io import (
    assert_io_and_debug_bundle,
    debug_dumper_pytorch_to_onnx_to_nnef,
    pytorch_to_onnx_to_tract_to_nnef,
)
from tract_torch.errors import CheckError, OnnxExportError
from tract_torch.established.tract_cli import TractCli
from tract_torch.export import export_model_to_nnef
from tract_torch.inference_target.tract import TractNNEF
from tract_torch.tolerance import TractCheckTolerance

import tract_core as tract
from tract_core.errors import InputError


class Scaled(torch.nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            self.layer.weight.fill_(by)
            self.layer.bias.fill_(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


X = torch.ones(4, 3)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Leave ONNX out, which has a test of its own."""
    folders: list[Path] = []

    def dumper(model: Any, test_input: Any, folder: Path, *_: Any) -> bool:
        folders.append(folder)
        return True

    monkeypatch.setattr(tract_torch.check.assert_io, "debug_dumper_pytorch_to_onnx_to_nnef", dumper)
    return folders


def fail(archive: Path, bundle: Path, **options: Any) -> CheckError:
    """The archive is of other weights than the module."""
    with pytest.raises(CheckError, match="output 'y': 8 of 8 elements differ") as raised:
        assert_io_and_debug_bundle(
            Scaled(3.0), X, archive, TractCli.own(), None, bundle, ["x"], ["y"], TractCheckTolerance.CLOSE, **options
        )
    return raised.value


def replay(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = folder / "torch_to_nnef" / "run.sh"
    return subprocess.run([script, *words], capture_output=True, text=True, check=False, cwd="/")


def test_a_folder_that_runs_again(tmp_path: Path, noted: list[Path]) -> None:
    archive = archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])
    error = fail(archive, tmp_path / "bundle")
    bundle = tmp_path / "bundle"
    assert noted == [bundle]
    assert f"a debug bundle is at {bundle}" in error.__notes__
    own = bundle / "torch_to_nnef"
    assert {path.name for path in own.iterdir()} >= {
        *("io_iso_error.log", "model.nnef.tar", "graph.nnef", "inputs.npz", "outputs.npz", "run.sh")
    }
    assert "8 of 8 elements differ" in (own / "io_iso_error.log").read_text()
    np.testing.assert_array_equal(np.load(own / "outputs.npz")["y"], np.full((4, 2), 10, np.float32))
    versions = (bundle / "versions").read_text()
    assert f"torch {torch.__version__.partition('+')[0]}" in versions
    assert "tract 0." in versions
    for words in ((), (str(TractCli.own().tract_path),)):
        found = replay(bundle, *words)
        assert found.returncode == 1, found.stderr
        assert "8 of 8 elements differ" in found.stderr
    np.savez(own / "outputs.npz", y=np.full((4, 2), 7, np.float32))
    assert replay(bundle).returncode == 0
    assert os.access(own / "run.sh", os.X_OK)


def test_another_command_is_called_as_the_engine_is(tmp_path: Path, noted: list[Path]) -> None:
    assert noted == []
    archive = archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])
    fail(archive, tmp_path / "bundle")
    other = tmp_path / "other tract"
    other.write_text('#!/bin/sh\necho "$@"\npwd\n')
    other.chmod(0o755)
    said = replay(tmp_path / "bundle", str(other)).stdout.splitlines()
    assert said[0] == (
        "model.nnef.tar --nnef-tract-core --nnef-tract-pulse --nnef-tract-extra --nnef-tract-transformers -O run "
        "--input-from-bundle inputs.npz --assert-output-bundle outputs.npz --allow-float-casts --approx close"
    )
    assert Path(said[1]).samefile(tmp_path / "bundle" / "torch_to_nnef")


@pytest.mark.parametrize("ending", [".tgz", ".tar.gz"])
def test_a_compressed_file(tmp_path: Path, noted: list[Path], ending: str) -> None:
    archive = archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])
    (tmp_path / f"bundle{ending}").write_text("what was there before")
    for number in range(2):
        fail(archive, tmp_path / f"bundle{ending}")
        path = tmp_path / f"bundle_{number}{ending}"
        assert path.read_bytes()[:2] == b"\x1f\x8b"
        with tarfile.open(path, "r:gz") as packed:
            packed.extractall(tmp_path / "out", filter="data")
        assert replay(tmp_path / "out" / f"bundle_{number}").returncode == 1
        assert not noted[-1].exists()
    assert (tmp_path / f"bundle{ending}").read_text() == "what was there before"


def test_nothing_is_written_over(tmp_path: Path, noted: list[Path]) -> None:
    archive = archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])
    (tmp_path / "bundle").mkdir()
    fail(archive, tmp_path / "bundle")
    fail(archive, tmp_path / "bundle")
    assert [path.name for path in noted] == ["bundle_0", "bundle_1"]
    assert not list((tmp_path / "bundle").iterdir())


def test_an_archive_that_is_a_folder(tmp_path: Path, noted: list[Path]) -> None:
    archive = tmp_path / "m.nnef"
    tract.nnef().write_model_to_dir(tract.load(archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])), archive)
    fail(archive, tmp_path / "bundle")
    assert (noted[0] / "torch_to_nnef" / "model.nnef" / "graph.nnef").is_file()
    assert replay(tmp_path / "bundle").returncode == 1


def test_there_is_none_where_all_is_well(tmp_path: Path, noted: list[Path]) -> None:
    archive = archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])
    assert_io_and_debug_bundle(
        Scaled(2.0), X, archive, TractCli.own(), None, tmp_path / "bundle", ["x"], ["y"], TractCheckTolerance.CLOSE
    )
    assert not (tmp_path / "bundle").exists()
    assert noted == []


def test_a_bundle_that_cannot_be_written_hides_no_error(
    tmp_path: Path, noted: list[Path], caplog: pytest.LogCaptureFixture
) -> None:
    archive = archive_of(Scaled(2.0), X, tmp_path, outputs=["y"])
    fail(archive, archive / "bundle")
    assert "could not be written" in caplog.text
    assert noted == []


def test_the_exporter_leaves_one_of_the_inputs_that_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noted: list[Path]
) -> None:
    """Those of a size that is not the example's."""

    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            size = 4 if torch.compiler.is_exporting() else x.shape[0]
            return torch.where(torch.arange(x.shape[0]) < size, x, 0.0)

    target = TractNNEF(None, dynamic_axes={"x": {0: "S"}})
    with pytest.raises(CheckError, match=r"seed 0 at S=5: output 'y': 1 of 5 elements differ"):
        export_model_to_nnef(
            Masked(),
            torch.rand(4),
            tmp_path / "m.nnef.tar",
            target,
            ["x"],
            ["y"],
            debug_bundle_path=tmp_path / "bundle",
        )
    assert not (tmp_path / "m.nnef.tar").exists()
    own = tmp_path / "bundle" / "torch_to_nnef"
    assert np.load(own / "inputs.npz")["x"].shape == (5,)
    assert "1 of 5 elements differ" in replay(tmp_path / "bundle").stderr
    assert noted == [tmp_path / "bundle"]


def test_the_exporter_asks_a_binary_too(tmp_path: Path, noted: list[Path]) -> None:
    def target(version: str, status: int) -> TractNNEF:
        path = tmp_path / "tract"
        path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo tract {version} && exit 0\nexit {status}\n")
        path.chmod(0o755)
        return TractNNEF("0.23.9", specific_tract_binary_path=path)

    def export(target: TractNNEF) -> None:
        export_model_to_nnef(Scaled(1.0), X, tmp_path / "m.nnef.tar", target, debug_bundle_path=tmp_path / "bundle.tgz")

    with pytest.raises(InputError, match=r"is tract 0.22.1, the archive is for 0.23.9"):
        export(target("0.22.1", 0))
    with pytest.raises(CheckError, match="the command ended with 4"):
        export(target("0.23.9", 4))
    assert not (tmp_path / "m.nnef.tar").exists()
    assert (tmp_path / "bundle_0.tgz").is_file()
    export(target("0.23.9", 0))
    assert (tmp_path / "m.nnef.tar").is_file()
    assert len(noted) == 2


needs_onnx = pytest.mark.skipif(
    not all(tract_torch.check.assert_io.importlib.util.find_spec(name) for name in ("onnxscript", "onnx")),
    reason="needs onnx and onnxscript",
)


@needs_onnx
def test_the_way_by_onnx(tmp_path: Path) -> None:
    module = Scaled(2.0).train()
    assert debug_dumper_pytorch_to_onnx_to_nnef(module, X, tmp_path, None)
    assert module.training
    assert (tmp_path / "model_exported_by_torch.onnx").is_file()
    archive = tmp_path / "tract_onnx_converted_model" / "onnx_converted_by_tract_model.nnef.tgz"
    (found,) = tract.load(archive).into_runnable().run([X])
    np.testing.assert_array_equal(np.asarray(found), np.full((4, 2), 7, np.float32))
    pytorch_to_onnx_to_tract_to_nnef(module, X, tmp_path / "b.onnx", tmp_path / "b.nnef.tgz", TractCli.own())
    assert (tmp_path / "b.nnef.tgz").is_file()


class Data(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


def test_what_onnx_does_not_take_is_noted(tmp_path: Path) -> None:
    assert not debug_dumper_pytorch_to_onnx_to_nnef(Data(), X, tmp_path, None, raise_export_error=False)
    log = (tmp_path / "tract_onnx_converted_model" / "tract_convert_error.log").read_text()
    with pytest.raises(OnnxExportError, match="ONNX") as raised:
        debug_dumper_pytorch_to_onnx_to_nnef(Data(), X, tmp_path, None)
    assert log.startswith(str(raised.value)[:30])


def test_onnxscript_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tract_torch.check.assert_io.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(OnnxExportError, match=r"(?s)with the package onnxscript only.*pip install onnxscript"):
        pytorch_to_onnx_to_tract_to_nnef(Scaled(1.0), X, tmp_path / "m.onnx", tmp_path / "m.nnef.tgz")
