"""Weights that lie in files: modules on the device ``meta`` become models without being read into memory."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import tract_torch
from tract_torch.tensor_export import export_tensors_to_nnef
from tract_torch.weights.offload import OffloadedTensor, init_empty_weights, t2n_load_checkpoint_and_dispatch

import tract_core as tract
from tract_core.errors import InputError


class Network(torch.nn.Module):
    """Two layers, of which the second shares a table with the first, a buffer, and a layer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(7, 6)
        self.body = torch.nn.Linear(6, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.head = torch.nn.Linear(6, 7, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.body(self.table(tokens))))


TOKENS = torch.tensor([1, 5, 0])


@pytest.fixture
def network() -> Network:
    torch.manual_seed(0)
    return Network().eval()


@pytest.fixture(params=["weights.safetensors", "weights.pt", "parts", "parts/model.safetensors.index.json"])
def stored(request: pytest.FixtureRequest, tmp_path: Path, network: Network) -> Path:
    """The weights of the network in one file, or in two; those that are shared are there once."""
    weights = {name: value for name, value in network.state_dict().items() if name != "head.weight"}
    path = tmp_path / request.param
    if path.name == "weights.pt":
        torch.save(weights, path)
        return path
    save = pytest.importorskip("safetensors.torch").save_file
    if path.name == "weights.safetensors":
        save(weights, path)
        return path
    (tmp_path / "parts").mkdir()
    files = {name: f"{int(name.startswith('norm'))}.safetensors" for name in weights}
    for file in set(files.values()):
        save({name: weights[name] for name in weights if files[name] == file}, tmp_path / "parts" / file)
    (tmp_path / "parts" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    return path


def run(model: tract.Model) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    (found,) = model.into_runnable().run([TOKENS])
    return np.asarray(found)


def test_a_module_without_weights_gets_them_from_files(stored: Path, network: Network, tmp_path: Path) -> None:
    with init_empty_weights():
        empty = Network().eval()
    assert all(value.is_meta for value in empty.state_dict().values())
    model = tract_torch.load(empty, TOKENS, weights=stored)
    np.testing.assert_allclose(run(model), network(TOKENS).detach(), rtol=1e-5, atol=1e-6)
    assert all(value.is_meta for value in empty.state_dict().values())
    assert empty.head.weight is empty.table.weight
    target = tract_torch.TractNNEF("0.23.8")
    path = tract_torch.export_model_to_nnef(empty, TOKENS, tmp_path / "m.nnef.tar", target, weights=stored)
    np.testing.assert_allclose(run(tract.load(path)), network(TOKENS).detach(), rtol=1e-5, atol=1e-6)


def test_weights_in_the_place_of_those_of_a_module(network: Network) -> None:
    other = {"body.bias": torch.randn(6)}
    model = tract_torch.load(network, TOKENS, weights=other)
    before = network.body.bias.detach().clone()
    network.load_state_dict(other, strict=False)
    np.testing.assert_allclose(run(model), network(TOKENS).detach(), rtol=1e-5, atol=1e-6)
    assert not torch.equal(before, network.body.bias)


def test_weights_that_do_not_fit(network: Network, tmp_path: Path) -> None:
    for weights, text in (
        ({"body.bais": torch.ones(6)}, r"(?s)no tensor 'body.bais', .*did you mean 'body.bias'"),
        ({"body.bias": torch.ones(5)}, r"'body.bias' is \[6\] of torch.float32 in the module, and \[5\] of"),
        ({"body.bias": torch.ones(6).half()}, r"\[6\] of torch.float16 in the weights"),
        (tmp_path, "the folder holds no files of weights"),
        (tmp_path / "x.index.json", "wanted one of .safetensors|no such file"),
    ):
        before = network.body.bias
        with pytest.raises(InputError, match=text):
            tract_torch.load(network, TOKENS, weights=weights)
        assert network.body.bias is before
    empty = Network().to("meta")
    with pytest.raises(InputError, match=r"on the device 'meta', and have no values: table\.weight, body.weight"):
        tract_torch.load(empty, TOKENS)
    program = torch.export.export(network, (TOKENS,))
    with pytest.raises(InputError, match="has its own weights"):
        tract_torch.load(program, weights={})


@pytest.mark.parametrize("place", ["t2n_auto", "t2n_offload_disk", "cpu"])
def test_a_checkpoint_is_put_into_a_module(stored: Path, network: Network, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "offloaded"
    folder.mkdir()
    with init_empty_weights():
        empty = Network().eval()
    found = t2n_load_checkpoint_and_dispatch(empty, stored, place, folder)
    assert found is empty
    assert empty.head.weight is empty.table.weight
    assert isinstance(empty.body.weight, OffloadedTensor) is (place == "t2n_offload_disk")
    assert torch.equal(empty(TOKENS), network(TOKENS))
    np.testing.assert_allclose(run(tract_torch.load(empty, TOKENS)), network(TOKENS).detach(), rtol=1e-5, atol=1e-6)
    assert len([*folder.iterdir()]) == (8 if place == "t2n_offload_disk" else 0)


def test_a_checkpoint_that_does_not_fit(network: Network, tmp_path: Path) -> None:
    for name, weights, strict, text in (
        ("less", {"body.bias": torch.ones(6)}, False, "there are no weights for table.weight"),
        ("more", {**network.state_dict(), "x": torch.ones(1)}, True, "the module holds no tensor 'x'"),
        ("other", {"body.bias": torch.ones(5)}, False, r"'body.bias' has the shape \[6\] in the module, and \[5\]"),
    ):
        torch.save(weights, tmp_path / f"{name}.pt")
        with pytest.raises(InputError, match=text):
            t2n_load_checkpoint_and_dispatch(Network().to("meta"), tmp_path / f"{name}.pt", strict=strict)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_a_tensor_in_a_file(tmp_path: Path, dtype: torch.dtype) -> None:
    values = torch.arange(12).reshape(3, 4).to(dtype).T
    held = OffloadedTensor.from_original_tensor(values, "w", tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(f"w_{str(dtype)[6:]}_")
    assert (held.shape, held.dtype) == (values.shape, dtype)
    assert torch.equal(held.reload(), values)
    assert type(held + 1) is torch.Tensor
    assert torch.equal(held + 1, values + 1)
    held.update_values(2 * values)
    assert torch.equal(held.reload(), 2 * values)
    held.update_values(values.T.double(), strict_shape=False, strict_dtype=False)
    assert torch.equal(held.plain().reshape(-1), values.T.reshape(-1))
    (tmp_path / "files").mkdir()
    export_tensors_to_nnef({"w": held}, tmp_path / "files")
    parameter = torch.nn.Parameter(held, requires_grad=False)
    del held
    gc.collect()
    assert path.exists()
    del parameter
    gc.collect()
    assert not path.exists()


def test_what_a_tensor_in_a_file_does_not_take(tmp_path: Path) -> None:
    held = OffloadedTensor.from_original_tensor(torch.ones(2, 3), "w", tmp_path)
    with pytest.raises(InputError, match=r"'w' has the shape \[2, 3\], the new values have \[3, 2\]"):
        held.update_values(torch.ones(3, 2))
    with pytest.raises(InputError, match=r"'w' is of torch.float32, the new values are of torch.float16"):
        held.update_values(torch.ones(2, 3).half())
    with pytest.raises(InputError, match="it has no values to write"):
        OffloadedTensor.from_original_tensor(torch.ones(2, device="meta"), "w", tmp_path)
    with pytest.raises(InputError, match="it cannot be written"):
        OffloadedTensor.from_original_tensor(torch.ones(2), "w", tmp_path / "missing")
