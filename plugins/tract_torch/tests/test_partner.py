"""PyTorch beside a model: ``tract MODEL compare --with torch``."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from tract_torch.partner import run_in_torch

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import InputError, ModelError


class Spotter(torch.nn.Module):
    """A convolution, a mean over time, a linear layer, and a buffer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv1d(4, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 5)
        self.register_buffer("offset", torch.randn(8, 1))

    def forward(self, sound):
        return self.head((torch.relu(self.conv(sound)) + self.offset).mean(-1)).softmax(-1)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "spotter.pt2"
    time = torch.export.Dim("T", min=4, max=1000)
    torch.export.save(torch.export.export(Spotter(), (torch.randn(1, 4, 16),), dynamic_shapes=({2: time},)), path)
    return path


def compare(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert "Traceback" not in result.output
    return result


def length(path):
    (symbol,) = tract.load(path).input_fact(0).dim(2).symbols()
    return ("-R", "--set", f"{symbol}=20")


def test_the_tensors_are_those_of_the_module(program):
    sound = np.random.default_rng(0).standard_normal((1, 4, 16)).astype(np.float32)
    found = run_in_torch(program, {"sound": sound})
    module = Spotter().eval()
    with torch.no_grad():
        wanted = module(torch.from_numpy(sound))
        hidden = torch.relu(module.conv(torch.from_numpy(sound)))
    np.testing.assert_allclose(found["output_0"], wanted.numpy(), rtol=1e-6)
    np.testing.assert_allclose(found["relu"], hidden.numpy(), rtol=1e-6)


@pytest.mark.parametrize("runtime", ["cpu", "reference"])
def test_a_program_is_compared_node_by_node(program, runtime):
    result = compare(program, "-r", runtime, "compare", "--with", "torch", *length(program), "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["compared"] >= 3
    assert "output_0" in [one["name"] for one in content["tensors"] if one["compared"]]


def test_an_archive_is_compared_with_the_program_that_it_was_made_from(program, tmp_path):
    tract.load(program).save(tmp_path / "spotter.nnef.tar")
    flags = ("compare", "--with", "torch", "--original", program, *length(program))
    assert compare(tmp_path / "spotter.nnef.tar", *flags).exit_code == 0
    halved = compare(tmp_path / "spotter.nnef.tar", "-t", "f32_to_f16", *flags)
    assert halved.exit_code == 0, halved.output
    assert "numbers in f16 are up to 0.1% apart" in halved.output


def test_what_it_cannot_run(program, tmp_path):
    with pytest.raises(
        InputError, match=r"called \*\.pt2\n  hint: name the one that MODEL was made from with --original"
    ):
        run_in_torch(tmp_path / "model.onnx", {})
    with pytest.raises(InputError, match="the program wants the inputs sound, which have no value"):
        run_in_torch(program, {"x": np.zeros(3)})
    (tmp_path / "broken.pt2").write_bytes(b"PK")
    with pytest.raises(ModelError, match="is no file of torch"):
        run_in_torch(tmp_path / "broken.pt2", {})
    with pytest.raises(tract.TractError, match="PyTorch fails: "):
        run_in_torch(program, {"sound": np.zeros((1, 3, 16), np.float32)})
