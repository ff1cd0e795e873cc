"""Tensors alone as files of NNEF, and weights put into an archive that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tract_torch
from tract_nnef.archive import open_archive, read_tensor
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing
from tract_torch.tensor_export import (
    export_tensors_from_disk_to_nnef,
    export_tensors_to_nnef,
    iter_torch_tensors_from_disk,
    torch_safe_load,
)
from tract_torch.weights.patch import patch_archive

import tract_core as tract
from tract_core.errors import InputError, Unsupported


def read(folder: Path, name: str) -> Any:
    return read_tensor(np.frombuffer((folder / f"{name}.dat").read_bytes(), np.uint8), name)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.bool, torch.complex64],
    ids=str,
)
def test_every_type_comes_back(tmp_path: Path, dtype: torch.dtype) -> None:
    tensor = torch.tensor([[1.5, 0, -3], [0.25, 7, 100]]).to(dtype).T  # which is not in order
    assert export_tensors_to_nnef({"layers.0.weight": tensor}, tmp_path) == tmp_path
    found = torch.from_numpy(read(tmp_path, "layers.0.weight").astype(np.complex128))
    assert torch.equal(found, tensor.to(torch.complex128))


def test_a_tensor_of_one_byte_floats(tmp_path: Path) -> None:
    tensor = torch.tensor([1.5, -448]).to(torch.float8_e4m3fn)
    export_tensors_to_nnef({"w": tensor}, tmp_path)
    assert read(tmp_path, "w").astype(np.float32).tolist() == [1.5, -448]


def test_the_same_tensors_give_the_same_bytes(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(5), "b": torch.zeros(0, 3), "c": torch.tensor(2.5)}
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        export_tensors_to_nnef(tensors, tmp_path / name)
    assert content(tmp_path / "one") == content(tmp_path / "other")
    assert read(tmp_path / "one", "c") == np.float32(2.5)


def test_quantised_tensors_say_what_they_stand_for(tmp_path: Path) -> None:
    (tmp_path / "graph.quant").write_text('"old": zero_point_linear_quantize(zero_point=0, scale=1.0, bits=8);\n')
    values = torch.tensor([0.0, 0.5, 1.0])
    unsigned = torch.quantize_per_tensor(values, 0.25, 3, torch.quint8)
    signed = torch.quantize_per_tensor(values, 0.5, 0, torch.qint8)
    export_tensors_to_nnef({"u": unsigned, "s": signed}, tmp_path)
    assert read(tmp_path, "u").tolist() == [3, 5, 7]
    old, *lines = (tmp_path / "graph.quant").read_text().splitlines()
    assert old.startswith('"old"')
    start = "zero_point_linear_quantize(zero_point = "
    assert lines == [
        f'"u": {start}3, scale = 0.25, bits = 8, signed = false, symmetric = false);',
        f'"s": {start}0, scale = 0.5, bits = 8, signed = true, symmetric = true);',
    ]


@pytest.mark.parametrize(
    ("name", "tensor", "kind", "text"),
    [
        ("a/b", torch.ones(2), InputError, "no name of a file"),
        (".a", torch.ones(2), InputError, "no name of a file"),
        ("w", torch.ones(2, device="meta"), InputError, "on the device 'meta', and has no values"),
        ("w", torch.eye(3).to_sparse(), Unsupported, r"layout is torch.sparse_coo(?s:.*)to_dense"),
        ("w", torch.ones([1] * 9), Unsupported, "9 axes"),
        ("w", torch.empty(1 << 32, dtype=torch.uint8), Unsupported, "it takes 4 GiB"),
        (
            "w",
            torch.quantize_per_channel(torch.ones(2, 2), torch.ones(2), torch.zeros(2), 0, torch.qint8),
            Unsupported,
            "graph.quant has one scale for a tensor",
        ),
    ],
    ids=["slash", "dot", "meta", "sparse", "axes", "4 GiB", "per channel"],
)
def test_what_is_refused_leaves_nothing(
    tmp_path: Path, name: str, tensor: torch.Tensor, kind: type[Exception], text: str
) -> None:
    (tmp_path / "before.dat").write_bytes(b"as it was")
    with pytest.raises(kind, match=rf"tensor '{name}': .*{text}"):
        export_tensors_to_nnef({"before": torch.ones(3), name: tensor}, tmp_path)
    assert content(tmp_path) == {"before.dat": b"as it was"}


def test_the_folder_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder"):
        export_tensors_to_nnef({"w": torch.ones(2)}, tmp_path / "missing")


@pytest.fixture(params=["weights.safetensors", "weights.pt", "weights.bin", "old.pth"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, torch.Tensor]]:
    """A file of weights, and what is in it."""
    tensors = {"a.weight": torch.randn(3, 4), "a.bias": torch.randn(4).bfloat16(), "steps": torch.tensor(7)}
    path = tmp_path / request.param
    if path.suffix == ".safetensors":
        pytest.importorskip("safetensors.torch").save_file(tensors, path)
    else:
        held = {**tensors, "epoch": 3}
        torch.save(held, path, _use_new_zipfile_serialization=path.stem != "old")
    return path, tensors


def test_tensors_from_disk(stored: tuple[Path, dict[str, torch.Tensor]], tmp_path: Path) -> None:
    path, tensors = stored
    found = dict(iter_torch_tensors_from_disk(path))
    assert sorted(found) == sorted(tensors)
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    names: list[str] = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    export_tensors_from_disk_to_nnef(
        path, tmp_path / "one", lambda name: name != "steps", lambda found: not names.extend(sorted(found))
    )
    assert names == ["a.bias", "a.weight"]
    export_tensors_to_nnef({name: tensors[name] for name in names}, tmp_path / "other")
    assert content(tmp_path / "one") == content(tmp_path / "other")


def test_what_was_found_can_be_refused(stored: tuple[Path, dict[str, torch.Tensor]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"fn_check_found_tensors refuses what was found: a\.bias"):
        export_tensors_from_disk_to_nnef(stored[0], tmp_path, lambda name: name == "a.bias", lambda _: False)
    with pytest.raises(InputError, match=r"no tensors were found\n.*filter_key wants none"):
        export_tensors_from_disk_to_nnef(stored[0], tmp_path, lambda _: False)
    assert not [*tmp_path.glob("*.dat")]


class Runs:
    """What is done when it is unpickled."""

    done = False

    def __reduce__(self) -> Any:
        return setattr, (Runs, "done", True)


def test_code_in_a_file_is_never_run_unasked(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2), "code": Runs()}, path)
    with pytest.raises(InputError, match=r"(?s)more than weights.*weights_only=False.*only for files that you trust"):
        dict(iter_torch_tensors_from_disk(path))
    assert not Runs.done
    assert torch_safe_load(path, weights_only=False)["w"].tolist() == [1, 1]
    assert Runs.done


def test_files_that_are_no_weights(tmp_path: Path) -> None:
    for name, text in (("w.npz", "ends in '.npz', wanted one of .safetensors"), ("w.pt", "it cannot be read|damaged")):
        (tmp_path / name).write_bytes(b"nothing")
        with pytest.raises(InputError, match=text):
            dict(iter_torch_tensors_from_disk(tmp_path / name))
    with pytest.raises(InputError, match="there is no such file"):
        dict(iter_torch_tensors_from_disk(tmp_path / "missing.pt"))
    torch.save(torch.ones(2), tmp_path / "one.pt")
    with pytest.raises(InputError, match="it holds a Tensor, wanted a dictionary"):
        dict(iter_torch_tensors_from_disk(tmp_path / "one.pt"))


class Network(torch.nn.Module):
    """A convolution, two normalisations (one of which does nothing yet), a recurrent part, and a shared matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.up = torch.nn.ConvTranspose2d(4, 4, 2)
        self.norm = torch.nn.BatchNorm2d(4)
        self.layers = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 8))
        self.table = torch.nn.Embedding(8, 4)
        self.table.weight = self.layers[1].weight

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        pooled = self.norm(self.up(self.conv(x))).mean((2, 3))
        return self.layers(pooled) + self.table(tokens).sum(-1, keepdim=True)


EXAMPLE = torch.linspace(-1, 1, 2 * 3 * 6 * 6).reshape(2, 3, 6, 6), torch.tensor([1, 5])


def archive_of(network: torch.nn.Module, path: Path) -> list[str]:
    model = tract_torch.load(network, EXAMPLE, keep_parameters=True)
    names = frozenset(network.state_dict())
    NnefWriter(how=Writing(held=names)).write(model.typed, path)
    return [name.removesuffix(".dat") for name in open_archive(path).names() if name.endswith(".dat")]


def output_of(path: Path) -> np.ndarray[Any, Any]:
    (found,) = tract.load(path).into_runnable().run([*EXAMPLE])
    return np.asarray(found)


def trained(network: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Other weights in the place of those of the network, by name."""
    torch.manual_seed(3)
    for value in network.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5)
    return {name: value for name, value in network.state_dict().items() if value.is_floating_point()}


def test_every_weight_has_its_name_in_the_archive(tmp_path: Path) -> None:
    network = Network().eval()
    labels = archive_of(network, tmp_path / "model.tar")
    found = {name for name, value in network.state_dict().items() if value.is_floating_point()}
    shared = {"table.weight", "layers.1.weight"}
    assert set(labels) - shared == found - shared
    assert len(shared.intersection(labels)) == 1


@pytest.mark.parametrize("ends", ["", ".tar", ".tgz"])
def test_an_archive_with_other_weights_gives_what_the_module_with_them_gives(tmp_path: Path, ends: str) -> None:
    network = Network().eval()
    labels = archive_of(network, tmp_path / f"old{ends}")
    before = output_of(tmp_path / f"old{ends}")
    np.testing.assert_allclose(before, network(*EXAMPLE).detach(), rtol=1e-4, atol=1e-5)
    weights = {name: value for name, value in trained(network).items() if name in labels}
    wanted = network(*EXAMPLE).detach().numpy()
    assert not np.allclose(before, wanted, atol=0.1)
    new = patch_archive(tmp_path / f"old{ends}", weights, tmp_path / f"new{ends}")
    np.testing.assert_allclose(output_of(new), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(output_of(tmp_path / f"old{ends}"), before)


def test_files_of_tensors_over_the_folder_of_an_archive(tmp_path: Path) -> None:
    network = Network().eval()
    labels = archive_of(network, tmp_path / "model")
    weights = trained(network)
    export_tensors_to_nnef({name: weights[name] for name in labels}, tmp_path / "model")
    np.testing.assert_allclose(output_of(tmp_path / "model"), network(*EXAMPLE).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "tensor", "text"),
    [
        ("conv.wieght", torch.ones(4, 3, 3, 3), r"no variable of that label\n.*did you mean 'conv.weight'"),
        ("conv.weight", torch.ones(4, 3, 3), r"the archive has \[4,3,3,3\] of f32, and this is \[4,3,3\] of f32"),
        ("conv.bias", torch.ones(4).half(), r"the archive has \[4\] of f32, and this is \[4\] of f16"),
        ("conv.bias", torch.quantize_per_tensor(torch.ones(4), 1, 0, torch.qint8), "its scale is in the graph"),
    ],
)
def test_weights_that_an_archive_does_not_take(tmp_path: Path, name: str, tensor: torch.Tensor, text: str) -> None:
    archive_of(Network().eval(), tmp_path / "old.tar")
    with pytest.raises((InputError, Unsupported), match=rf"(?s)tensor '{name}': .*{text}"):
        patch_archive(tmp_path / "old.tar", {name: tensor}, tmp_path / "new.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["old.tar"]
