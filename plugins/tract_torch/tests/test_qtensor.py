"""Quantised weights: what they stand for, where they may be, and what models and archives hold of them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from tract_nnef.archive import Q4_0, Blocks, open_archive, read_tensor
from tract_torch.tensor_export import export_tensors_to_nnef
from tract_torch.weights.compress import (
    DEFAULT_COMPRESSION,
    dynamic_load_registry,
    fp_to_tract_q4_0_with_min_max_calibration,
    qscale_per_group_f16_min_max_calibration,
)
from tract_torch.weights.patch import patch_archive
from tract_torch.weights.qtensor import QScalePerGroupF16, QTensor, QTensorTractScaleOnly

import tract_core as tract
from tract_core.errors import InputError, ModelWarning

REGISTRY = DEFAULT_COMPRESSION
NOT_ONE = {"a": 3}


def by_hand(values: np.ndarray[Any, Any], percentile: float = 1) -> np.ndarray[Any, Any]:
    """Q4_0 of the specification, in float64, one group after the other."""
    found: list[np.ndarray[Any, Any]] = []
    for group in values.astype(np.float64).reshape(-1, 32):
        scale = float(np.float16(np.quantile(np.abs(group), percentile) / -8))
        codes = np.clip(np.floor(group / scale + 8.5), 0, 15) if scale else np.full(32, 8)
        found.append((codes - 8) * scale)
    return np.concatenate(found).reshape(values.shape)


@pytest.mark.parametrize("shape", [(3, 64), (4, 2, 16), (2, 8, 2, 2), (1, 32)])
@pytest.mark.parametrize("percentile", [1, 0.9])
def test_what_it_stands_for(shape: tuple[int, ...], percentile: float) -> None:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    values.view(-1)[:32] = 0
    found = fp_to_tract_q4_0_with_min_max_calibration(values, percentile)
    assert (found.shape, found.dtype, found.requires_grad) == (values.shape, torch.float32, False)
    assert found.u8_blob.nbytes == values.numel() // 2
    np.testing.assert_allclose(found.decompress(), by_hand(values.numpy(), percentile), rtol=1e-6)
    assert int(found.decompress_to_u8().max()) <= 15
    assert torch.equal(found + 1, found.decompress() + 1)  # whatever PyTorch computes gets the floats
    stored = found.stored()
    np.testing.assert_array_equal(stored.to_f32(), found.decompress())


def test_the_largest_of_a_group_stays_as_it_is() -> None:
    values = torch.zeros(1, 32)
    values[0, 3], values[0, 4] = 8, -1
    scheme = qscale_per_group_f16_min_max_calibration(values)
    assert float(scheme.scale) == -1  # so that 8 is the integer 0, and there is none for -8
    found = QTensorTractScaleOnly(values, scheme)
    assert found.decompress_to_u8()[0, 3:5].tolist() == [0, 9]
    assert found.decompress()[0, 3:5].tolist() == [8, -1]
    assert torch.equal(scheme.quantize_as_torch(values), found.decompress())


def test_other_numbers_of_bits_and_sizes_of_groups() -> None:
    values = torch.linspace(-1, 1, 48).reshape(3, 16)
    scheme = qscale_per_group_f16_min_max_calibration(values, n_bits=8, group_size=16)
    found = QTensor(values, scheme, torch.float16)
    assert found.dtype is torch.float16
    np.testing.assert_allclose(found.decompress().float(), values, atol=1 / 120)
    with pytest.raises(InputError, match="Q4_0 has 4 bits for each element"):
        QTensorTractScaleOnly(torch.ones(2, 32), qscale_per_group_f16_min_max_calibration(torch.ones(2, 32), n_bits=8))
    with pytest.raises(InputError, match="2 groups of 32, and there are 1 scales"):
        QTensorTractScaleOnly(torch.ones(2, 32), QScalePerGroupF16(32, torch.ones(1), 4))


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.ones(64), r"shape \[64\] cannot be Q4_0: it has 1 axes, wanted 2 to 4"),
        (torch.ones(2, 1, 1, 1, 32), "it has 5 axes"),
        (torch.ones(32, 3), r"its rows have 3 elements, wanted a multiple of 32"),
        (torch.ones(0, 32), "cannot be Q4_0"),
        (torch.ones(2, 32, dtype=torch.int32), "wanted one of floats"),
        (torch.full((2, 32), float("nan")), "no finite scale in f16"),
        (torch.full((2, 32), 1e6), "no finite scale in f16"),
    ],
)
def test_what_cannot_be_quantised(tensor: torch.Tensor, text: str) -> None:
    with pytest.raises(InputError, match=text):
        fp_to_tract_q4_0_with_min_max_calibration(tensor)


def test_it_cannot_be_changed_but_copied() -> None:
    found = fp_to_tract_q4_0_with_min_max_calibration(torch.randn(2, 32))
    before = found.decompress()
    with pytest.raises(InputError, match="would change a quantised tensor"):
        found.add_(1)
    with pytest.raises(InputError, match="would change a quantised tensor"):
        found.fill_(0)
    with pytest.raises(InputError, match="cannot be set"):
        found.data = torch.ones(2, 32)
    for other in (found.clone(), copy.deepcopy(found), pickle.loads(pickle.dumps(found)), found.detach(), found.data):
        assert type(other) is QTensorTractScaleOnly
        assert torch.equal(other.decompress(), before)
    assert found.half().dtype is torch.float16
    assert isinstance(found.half(), QTensor)
    assert "1 bytes" not in repr(found)
    assert "32 bytes of integers" in repr(found)


class Network(torch.nn.Module):
    """Layers of every kind that a registry quantises, and a shared table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 32)
        self.conv = torch.nn.Conv1d(32, 32, 2)
        self.image = torch.nn.Conv2d(32, 32, (1, 2), groups=2)
        self.one = torch.nn.Linear(32, 64)
        self.odd = torch.nn.Linear(64, 32, bias=False)
        self.head = torch.nn.Linear(32, 10)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.conv(self.table(tokens).mT)
        x = self.image(x.unsqueeze(2)).squeeze(2).mT
        return self.head(self.odd(torch.relu(self.one(x))))


TOKENS = torch.tensor([[1, 5, 2, 9, 0]])


@pytest.mark.parametrize(
    ("method", "count"),
    [
        ("min_max_q4_0", 2),
        ("min_max_q4_0_with_embeddings", 4),
        ("min_max_q4_0_with_embeddings_99", 4),
        ("min_max_q4_0_all", 6),
    ],
)
def test_the_entries_of_the_registry(tmp_path: Path, method: str, count: int) -> None:
    torch.manual_seed(0)
    network = Network().eval()
    found = DEFAULT_COMPRESSION[method](network, tokenizer=None, export_dirpath=tmp_path)
    assert found is network
    parameters = dict(network.named_parameters(remove_duplicate=False))
    quantised = [name for name, value in parameters.items() if isinstance(value, QTensor)]
    assert len(quantised) == count
    assert network.head.weight is network.table.weight
    wanted = network(TOKENS).detach()
    for keep in (False, True):
        model = tract_torch.load(network, TOKENS, keep_parameters=keep)
        for runtime in ("reference", "cpu"):
            (got,) = tract.runtime_for_name(runtime).prepare(model.clone()).run([TOKENS])
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert all(isinstance(parameters[name], QTensor) for name in quantised)
    model.save(tmp_path / "model.nnef.tar")
    archive = open_archive(tmp_path / "model.nnef.tar")
    blocks = [name for name in archive.names() if name.endswith("weight.dat") and is_q4_0(archive.content(name))]
    assert len(blocks) == len({id(parameters[name]) for name in quantised})
    (got,) = tract.load(tmp_path / "model.nnef.tar").into_runnable().run([TOKENS])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def is_q4_0(content: Any) -> bool:
    found = read_tensor(content, "w")
    return isinstance(found, Blocks) and found.format is Q4_0


def test_weights_of_f16() -> None:
    layer = torch.nn.Linear(64, 32).half()
    x = torch.randn(3, 64).half()
    DEFAULT_COMPRESSION["min_max_q4_0"](layer)
    assert layer.weight.dtype is torch.float16
    (got,) = tract_torch.load(layer, x).into_runnable().run([x])
    np.testing.assert_allclose(got, layer(x).detach(), rtol=1e-2, atol=1e-2)


def test_weights_that_do_not_fit_stay_and_are_named() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(64, 3), torch.nn.Linear(3, 2))
    with pytest.warns(ModelWarning, match=r"1.weight: a tensor of shape \[2, 3\] cannot be Q4_0"):
        DEFAULT_COMPRESSION["min_max_q4_0"](network)
    assert isinstance(network[0].weight, QTensor)
    assert not isinstance(network[1].weight, QTensor)


def test_what_is_shared_with_other_layers_stays() -> None:
    network = Network()
    DEFAULT_COMPRESSION["min_max_q4_0"](network)
    assert not isinstance(network.head.weight, QTensor)
    assert isinstance(network.one.weight, QTensor)


def test_a_module_moves_with_its_quantised_weights() -> None:
    layer = DEFAULT_COMPRESSION["min_max_q4_0"](torch.nn.Linear(32, 4))
    weight: Any = layer.weight
    again = copy.deepcopy(layer.to("cpu"))
    x = torch.randn(2, 32)
    assert torch.equal(again(x), layer(x))
    other = torch.nn.Linear(32, 4)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.weight, weight.decompress())


def test_files_of_quantised_tensors(tmp_path: Path) -> None:
    found = fp_to_tract_q4_0_with_min_max_calibration(torch.randn(4, 8, 2, 2))
    path = found.write_in_file(tmp_path, "w")
    assert path == tmp_path / "w.dat"
    (tmp_path / "other").mkdir()
    export_tensors_to_nnef({"w": found}, tmp_path / "other")
    assert path.read_bytes() == (tmp_path / "other" / "w.dat").read_bytes()
    read = read_tensor(np.frombuffer(path.read_bytes(), np.uint8), "w")
    assert isinstance(read, Blocks)
    np.testing.assert_array_equal(read.to_f32(), found.decompress())


def test_quantised_weights_are_put_into_an_archive(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = DEFAULT_COMPRESSION["min_max_q4_0_all"](Network().eval())
    tract_torch.load(network, TOKENS, keep_parameters=True).save(tmp_path / "old.nnef.tar")
    other = DEFAULT_COMPRESSION["min_max_q4_0_all"](Network().eval())
    weights = {name: value for name, value in other.named_parameters() if isinstance(value, QTensor)}
    biases = {name: value for name, value in network.named_parameters() if not isinstance(value, QTensor)}
    other.load_state_dict(biases, strict=False)
    patch_archive(tmp_path / "old.nnef.tar", weights, tmp_path / "new.nnef.tar")
    (got,) = tract.load(tmp_path / "new.nnef.tar").into_runnable().run([TOKENS])
    np.testing.assert_allclose(got, other(TOKENS).detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match=r"the archive has \[64,32\] of q4_0, and this is \[64,32\] of f32"):
        patch_archive(tmp_path / "old.nnef.tar", {"one.weight": torch.ones(64, 32)}, tmp_path / "new.nnef.tar")


def test_registries_by_their_paths() -> None:
    assert dynamic_load_registry("tract_torch.weights.compress.DEFAULT_COMPRESSION") is DEFAULT_COMPRESSION
    assert dynamic_load_registry(f"{__name__}.REGISTRY") is DEFAULT_COMPRESSION
    for path, text in (
        ("REGISTRY", "no dotted path"),
        ("no_such_package.REGISTRY", "there is no module 'no_such_package'"),
        ("tract_torch.weights.compress.DEFAULT_COMPRESION", r"(?s)has no .*did you mean 'DEFAULT_COMPRESSION'"),
        (f"{__name__}.NOT_ONE", "it is a dict, wanted a dictionary of functions"),
    ):
        with pytest.raises(InputError, match=text):
            dynamic_load_registry(path)
