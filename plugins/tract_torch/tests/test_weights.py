"""Weights of modules: replacing them, and the names that constants of models have."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch
import tract_torch
from tract_nnef.archive import open_archive, read_tensor
from tract_torch.weights.updater import ModTensorUpdater

import tract_core as tract
from tract_core.errors import InputError, Unsupported


class Tied(torch.nn.Module):
    """Two layers that share their weights, a buffer, and a tensor that is neither."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(3, 3)
        self.other = torch.nn.Linear(3, 3, bias=False)
        self.other.weight = self.one.weight
        self.register_buffer("mean", torch.zeros(3))
        self.plain = torch.ones(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.other(self.one(x)) + self.mean + self.plain


def test_names() -> None:
    parameters = ["one.weight", "one.bias", "other.weight"]
    assert ModTensorUpdater(Tied()).available_names == parameters
    assert sorted(ModTensorUpdater(Tied(), add_buffers=True).available_names) == sorted([*parameters, "mean"])
    every = ModTensorUpdater(Tied(), add_buffers=True, add_unregistred_tensor=True)
    assert sorted(every.available_names) == sorted([*parameters, "mean", "plain"])
    module = Tied()
    assert ModTensorUpdater(module).get_by_name("one.bias") is module.one.bias


def test_who_shares_a_tensor_gets_the_new_one_too() -> None:
    module, x = Tied(), torch.ones(1, 3)
    updater = ModTensorUpdater(module)
    updater.update_by_name("other.weight", torch.eye(3))
    assert isinstance(module.one.weight, torch.nn.Parameter)
    assert module.one.weight.requires_grad
    assert module.one.weight is module.other.weight
    assert torch.equal(module(x), x + module.one.bias + 1)
    updater.update_by_ref(module.one.weight, 2 * torch.eye(3))
    assert module.other.weight[0, 0] == 2
    updater.update_by_name("one.weight", torch.zeros(3, 3), tie_replacements=False)
    assert module.one.weight.sum() == 0
    assert module.other.weight[0, 0] == 2


def test_buffers_and_plain_tensors() -> None:
    module = Tied()
    updater = ModTensorUpdater(module, add_buffers=True, add_unregistred_tensor=True)
    updater.update_by_name("mean", torch.full((3,), 5.0))
    updater.update_by_name("plain", torch.full((3,), 7.0))
    assert module.mean[0] == 5
    assert "mean" in dict(module.named_buffers())
    assert module.plain[0] == 7
    assert len([*module.parameters()]) == 2


@pytest.mark.parametrize(
    ("new", "text"),
    [
        (torch.ones(2), r"'one.bias' has the shape \[3\], and what is put in its place has \[2\]"),
        (torch.ones(3).half(), "has the type torch.float32, .* torch.float16"),
        (torch.ones(3, device="meta"), "has the device cpu, .* meta"),
    ],
)
def test_tensors_have_to_be_alike(new: torch.Tensor, text: str) -> None:
    module = Tied()
    before = module.one.bias
    with pytest.raises(InputError, match=text):
        ModTensorUpdater(module).update_by_name("one.bias", new)
    with pytest.raises(InputError, match=text):
        ModTensorUpdater(module).update_by_ref(before, new)
    assert module.one.bias is before
    ModTensorUpdater(module).update_by_name("one.bias", new, enforce_tensor_consistency=False)
    assert module.one.bias.shape == new.shape


def test_names_and_tensors_that_are_not_there() -> None:
    updater = ModTensorUpdater(Tied())
    with pytest.raises(InputError, match=r"no tensor 'one.bais'\n.*did you mean 'one.bias'"):
        updater.update_by_name("one.bais", torch.ones(3))
    with pytest.raises(InputError, match="does not hold that tensor"):
        updater.update_by_ref(torch.ones(3), torch.ones(3))
    with pytest.raises(InputError, match=r"'other\.bias' is None"):
        updater.get_by_name("other.bias")


def test_a_parameter_that_is_not_set() -> None:
    module = Tied()
    ModTensorUpdater(module).update_by_name("other.bias", torch.full((3,), 2.0))
    assert isinstance(module.other.bias, torch.nn.Parameter)
    strict = ModTensorUpdater(Tied(), add_parameter_if_unset=False)
    with pytest.raises(InputError, match="what is put in its place is none"):
        strict.update_by_name("one.bias", torch.ones(3))


def test_gradients_may_be_switched_off_for_a_while() -> None:
    module = Tied()
    module.one.bias.requires_grad_(False)
    updater = ModTensorUpdater(module, disable_requires_grad=True)
    assert not any(one.requires_grad for one in module.parameters())
    updater.update_by_name("one.weight", torch.ones(3, 3))
    assert not module.one.weight.requires_grad
    updater.restore_require_grad()
    assert module.one.weight.requires_grad
    assert not module.one.bias.requires_grad


def test_an_updated_module_is_loaded_with_what_it_holds_then() -> None:
    module, x = Tied(), torch.randn(2, 3)
    ModTensorUpdater(module).update_by_name("one.weight", torch.randn(3, 3))
    (found,) = tract_torch.load(module, x).into_runnable().run([x])
    np.testing.assert_allclose(found, module(x).detach(), rtol=1e-5, atol=1e-6)


def test_parameters_are_kept_when_asked() -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).eval()
    x = torch.randn(1, 3, 5, 5)
    folded, kept = (tract_torch.load(network, x, keep_parameters=keep) for keep in (False, True))
    names = {node.name for node in kept.typed.live_nodes()}
    assert {name for name, value in network.state_dict().items() if value.is_floating_point()} <= names
    assert len([*folded.typed.live_nodes()]) < len([*kept.typed.live_nodes()])
    assert kept.input_names() == folded.input_names()
    for model in (folded, kept):
        for runtime in ("reference", "cpu"):
            (found,) = tract.runtime_for_name(runtime).prepare(model.clone()).run([x])
            np.testing.assert_allclose(found, network(x).detach(), rtol=1e-4, atol=1e-5)


def test_weights_of_bf16_stay_so_and_are_for_this_project_alone(tmp_path: Path) -> None:
    layer, x = torch.nn.Linear(64, 32).bfloat16(), torch.randn(3, 64).bfloat16()
    model = tract_torch.load(layer, x, keep_parameters=True)
    model.save(tmp_path / "m.nnef.tar")
    held = read_tensor(open_archive(tmp_path / "m.nnef.tar").content("weight.dat"), "weight")
    assert isinstance(held, np.ndarray)
    assert held.dtype == ml_dtypes.bfloat16
    given = x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    (found,) = tract.load(tmp_path / "m.nnef.tar").into_runnable().run([given])
    wanted = layer(x).detach().float()
    np.testing.assert_allclose(np.asarray(found).astype(np.float32), wanted, rtol=1e-2, atol=1e-2)
    with pytest.raises(Unsupported, match=r"(?s)elements of bf16, which other engines do not read.*f32 or f16"):
        tract.nnef().without_tract_py().write_model_to_tar(model, tmp_path / "other.nnef.tar")
    assert not (tmp_path / "other.nnef.tar").exists()
