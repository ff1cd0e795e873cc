"""Calls of the command ``tract``: the words of each version, how it ends, and this project's own."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from checked import archive_of
from tract_torch.check.assert_io import all_close_map_weights, assert_io, build_io
from tract_torch.errors import CheckError, CommandError
from tract_torch.established.tract_cli import TractCli
from tract_torch.tolerance import TractCheckTolerance

from tract_core.errors import InputError, MissingFile


def command(folder: Path, version: str = "0.23.9", body: str = "") -> TractCli:
    """A program that says what version it is, notes the words that it is called with, and does as told."""
    path = folder / f"tract-{version}"
    path.write_text(
        f"#!{sys.executable}\nimport json, sys, os, time\n"
        f"if sys.argv[1:] == ['--version']: print('tract {version}'); sys.exit()\n"
        f"json.dump(sys.argv[1:], open({str(folder / 'words.json')!r}, 'w'))\n{body}\n"
    )
    path.chmod(0o755)
    return TractCli(path)


NEW = ["--nnef-tract-core", "--nnef-tract-pulse", "--nnef-tract-extra", "--nnef-tract-transformers"]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (
            "0.17.9",
            "m.tar --nnef-tract-core --nnef-tract-pulse --input-bundle io.npz -O run --assert-output-bundle io.npz",
        ),
        (
            "0.20.19",
            "m.tar --nnef-tract-core --nnef-tract-pulse -O run --input-from-bundle io.npz"
            " --assert-output-bundle io.npz",
        ),
        (
            "0.21.7",
            "m.tar --nnef-tract-core --nnef-tract-pulse --nnef-tract-extra -O run --input-from-bundle io.npz"
            " --assert-output-bundle io.npz --approx super",
        ),
        (
            "0.23.9",
            f"m.tar {' '.join(NEW)} -O run --input-from-bundle io.npz --assert-output-bundle io.npz --approx ultra",
        ),
    ],
)
def test_the_words_go_by_the_version(tmp_path: Path, version: str, words: str) -> None:
    cli = command(tmp_path, version)
    assert cli.version == version
    assert not cli.is_own
    found = cli.assert_io_cmd_str("m.tar", "io.npz", TractCheckTolerance.ULTRA)
    assert found == [str(cli.tract_path), *words.split(), "--allow-float-casts"]


def test_the_words_of_two_files_and_of_saving(tmp_path: Path) -> None:
    cli = command(tmp_path)
    found = cli.assert_io_cmd_str("m.tar", input_bundle_path="in.npz", output_bundle_path="out.npz")
    assert found[-7:] == [
        *["--input-from-bundle", "in.npz", "--assert-output-bundle", "out.npz", "--approx", "exact"],
        found[-1],
    ]
    saved = cli.run_save_outputs_cmd_str("m.tar", "in.npz", "out.npz")
    assert saved[-6:-1] == ["run", "--input-from-bundle", "in.npz", "--save-outputs-npz", "out.npz"]
    with pytest.raises(TypeError, match="no file of outputs is given"):
        cli.assert_io_cmd_str("m.tar")


def test_how_it_ends_is_what_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also where nothing is said, and where something is said although all is well."""
    fails = command(tmp_path, body="sys.exit(3)")
    with pytest.raises(CheckError, match=r"m.tar: the command ended with 3: .*tract-0.23.9 m.tar"):
        fails.assert_io("m.tar", "io.npz")
    assert not fails.assert_io("m.tar", "io.npz", raise_exception=False)
    assert "the command ended with 3" in caplog.text
    crashes = command(tmp_path, "0.23.8", "os.kill(os.getpid(), 9)")
    with pytest.raises(CheckError, match="was ended by signal 9"):
        crashes.assert_io("m.tar", "io.npz")
    caplog.clear()
    warns = command(tmp_path, "0.23.7", "print('[WARN] Ignore unknown extension x\\n[ERROR] odd', file=sys.stderr)")
    with caplog.at_level(logging.WARNING):
        assert warns.assert_io("m.tar", "io.npz")
    assert "odd" in caplog.text
    assert "unknown extension" not in caplog.text
    says = command(tmp_path, "0.23.6", "print('[ERROR] output 0 differs', file=sys.stderr); sys.exit(1)")
    with pytest.raises(CheckError, match=r"\[ERROR\] output 0 differs"):
        says.assert_io("m.tar", "io.npz")


def test_it_may_not_take_for_ever(tmp_path: Path) -> None:
    child = "import subprocess; subprocess.run(['sleep', '30'])"  # which holds its standard error too
    slow = command(tmp_path, body=child)
    assert slow.version == "0.23.9"
    began = time.monotonic()
    with pytest.raises(CommandError, match=r"it took longer than 0.5 s: .*tract-0.23.9"):
        slow.assert_io("m.tar", "io.npz", timeout=0.5)
    assert time.monotonic() - began < 5


def test_programs_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match=r"there is no command tract"):
        TractCli(tmp_path / "none")
    (tmp_path / "text").write_text("no program")
    with pytest.raises(CommandError, match="it cannot be started: Permission denied"):
        assert TractCli(tmp_path / "text").version
    odd = command(tmp_path, "of old")
    with pytest.raises(CommandError, match="says 'tract of old', wanted a version"):
        assert odd.version


def test_files_of_onnx_are_converted(tmp_path: Path) -> None:
    command(tmp_path).convert_onnx_to_nnef("m.onnx", "in.npz", "m.nnef.tgz")
    words = "m.onnx --nnef-tract-core --nnef-tract-pulse dump --input-from-bundle in.npz --nnef m.nnef.tgz"
    assert json.loads((tmp_path / "words.json").read_text()) == words.split()
    with pytest.raises(CommandError, match=r"(?s)the command ended with 1: .*no such operator"):
        command(tmp_path, "0.23.8", "sys.exit('no such operator')").convert_onnx_to_nnef("m.onnx", None, "m.nnef.tgz")


class Both(torch.nn.Module):
    def forward(self, pair: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": pair["x"] + pair["y"], "wide": pair["x"].float() * 2}


PAIR = ({"x": torch.rand(2, 3).half(), "y": torch.rand(3).half()},)


def test_inputs_and_outputs_are_saved_under_their_names(tmp_path: Path) -> None:
    module = Both().train()
    found = build_io(module, PAIR, tmp_path / "in.npz", tmp_path / "out.npz", ["p"], ["o"])
    assert found == (["p_x", "p_y"], ["o_sum", "o_wide"])
    assert module.training
    inputs, outputs = np.load(tmp_path / "in.npz"), np.load(tmp_path / "out.npz")
    assert inputs.files == ["p_x", "p_y"]
    assert inputs["p_x"].dtype == np.float32
    np.testing.assert_array_equal(outputs["o_wide"], PAIR[0]["x"].float() * 2)
    build_io(module, PAIR, io_npz_path=tmp_path / "io.npz")
    assert np.load(tmp_path / "io.npz").files == ["input_0_x", "input_0_y", "output_sum", "output_wide"]


class Twice(torch.nn.Module):
    def __init__(self, by: float = 2) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.by


@pytest.mark.parametrize("half", [False, True])
def test_this_projects_own_command(tmp_path: Path, half: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cli = TractCli.own()
    assert cli.is_own
    x = torch.randn(4).half() if half else torch.randn(4)
    archive = archive_of(Twice(), x, tmp_path, outputs=["y"])
    assert_io(Twice(), x, archive, cli, tmp_path / "io.npz", ["x"], ["y"])
    with pytest.raises(CheckError, match=r"output 'y': .* of 4 elements differ"):
        assert_io(Twice(2.1), x, archive, cli, None, ["x"], ["y"], TractCheckTolerance.APPROXIMATE)
    with pytest.raises(CheckError, match="no array in it names an input"):
        assert_io(Twice(), x, archive, cli, None, ["z"], ["y"])
    monkeypatch.setenv("T2N_CHECK_IO_RAISE_EXCEPTION", "0")
    assert_io(Twice(3), x, archive, cli, None, ["x"], ["y"])


def test_saved_files_are_enough(tmp_path: Path) -> None:
    cli, archive = command(tmp_path), tmp_path / "m.tar"
    archive.touch()
    both = {"input_bundle_path": tmp_path / "in.npz", "output_bundle_path": tmp_path / "out.npz"}
    assert_io(nnef_file_path=archive, tract_cli=cli, check_tolerance="close", **both)
    words = json.loads((tmp_path / "words.json").read_text())
    paths = str(both["input_bundle_path"]), str(both["output_bundle_path"])
    assert words[-7:-1] == ["--input-from-bundle", paths[0], "--assert-output-bundle", paths[1], "--approx", "close"]
    with pytest.raises(InputError, match="without a module, input_bundle_path and output_bundle_path have to be given"):
        assert_io(nnef_file_path=archive, tract_cli=cli)
    with pytest.raises(InputError, match=r"(?s)model is PosixPath, wanted a torch.nn.Module.*give everything by name"):
        assert_io(archive, cli, both["input_bundle_path"])  # pyright: ignore[reportArgumentType]: as others have it
    with pytest.raises(InputError, match="tract_cli is not given"):
        assert_io(Twice(), torch.rand(2), archive)


def test_weights_in_files_are_compared(tmp_path: Path) -> None:
    from tract_torch.tensor_export import export_tensors_to_nnef

    for name, by in (("a", 0.0), ("b", 1e-6), ("c", 1.0)):
        (tmp_path / name).mkdir()
        export_tensors_to_nnef({"w": torch.arange(6.0).reshape(2, 3) + by}, tmp_path / name)
    paths = [tmp_path / name / "w.dat" for name in "abc"]
    all_close_map_weights({paths[0]: paths[1]})
    with pytest.raises(CheckError, match=r"a/w.dat: its tensor is not that of .*c/w.dat: 6 of 6 elements differ"):
        all_close_map_weights({paths[1]: paths[0], paths[0]: paths[2]})
