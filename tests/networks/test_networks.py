"""Real networks, exported by PyTorch, against ONNX Runtime: as wired and decluttered, with fixed and symbolic sizes."""

from __future__ import annotations

from pathlib import Path

import exported_networks
import numpy as np
import onnx
import onnxruntime
import pytest
from exported_networks import NETWORKS, Network
from tract_onnx.frontend import OnnxLoader

import tract_core as tract
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.sizes import longest_size

pytestmark = pytest.mark.networks

RELATIVE = 1e-4


def worst_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, relative to the largest magnitude of the tensor."""
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-6))


def expected(path: Path, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, given)


def check(model: TypedModel, given: dict[str, np.ndarray], wanted: list[np.ndarray]) -> None:
    found = TypedSimplePlan(model).run([given[model.outlet_name(outlet)] for outlet in model.inputs])
    assert max(map(worst_error, found, wanted)) < RELATIVE


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_fixed_sizes(network: Network, exported) -> None:
    path = exported(network, False)
    given = exported_networks.arrays(network, network.sizes)
    wanted = expected(path, given)
    model = OnnxLoader().load(path).into_typed()
    check(model, given, wanted)
    model.declutter()
    model.check_consistency()
    check(model, given, wanted)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_symbolic_sizes(network: Network, exported) -> None:
    path = exported(network, True)
    wired, decluttered = OnnxLoader().load(path).into_typed(), OnnxLoader().load(path).into_typed().declutter()
    decluttered.check_consistency()
    assert max(len(longest_size(model)) for model in (wired, decluttered)) <= 200
    for sizes in (network.sizes, network.others):
        given = exported_networks.arrays(network, sizes)
        wanted = expected(path, given)
        check(wired, given, wanted)
        check(decluttered, given, wanted)
    fixed = substitute_in(decluttered, network.sizes).declutter()
    assert all(outlet.fact.shape.is_concrete for node in fixed.nodes for outlet in node.outputs)
    given = exported_networks.arrays(network, network.sizes)
    check(fixed, given, expected(path, given))


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_public_api(network: Network, exported) -> None:
    path = exported(network, True)
    given = exported_networks.arrays(network, network.others)
    runnable = tract.onnx().load(path).into_model().into_runnable()
    found = [tensor.to_numpy() for tensor in runnable.run(given)]
    assert max(map(worst_error, found, expected(path, given))) < RELATIVE


def last_weight(model: onnx.ModelProto) -> onnx.TensorProto:
    """The weights nearest to the outputs: nothing behind them can drown the difference."""
    floats = {
        t.name: t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT and np.prod(t.dims) > 8
    }
    return next(floats[name] for node in reversed(model.graph.node) for name in node.input if name in floats)


def with_one_wrong_weight(path: Path, place: int, folder: Path) -> Path:
    """The network with one of its last weights wrong."""
    model = onnx.load(path)
    tensor = last_weight(model)
    weights = onnx.numpy_helper.to_array(tensor).copy()
    weights.reshape(-1)[np.random.default_rng(place).integers(weights.size)] += 10 * np.abs(weights).max()
    tensor.CopyFrom(onnx.numpy_helper.from_array(weights, tensor.name))
    wrong = folder / f"wrong{place}.onnx"
    onnx.save(model, wrong)
    return wrong


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_one_wrong_weight_is_noticed(network: Network, exported, tmp_path: Path) -> None:
    path = exported(network, False)
    given = exported_networks.arrays(network, network.sizes)
    wanted = expected(path, given)
    for place in range(16):  # a weight that multiplies zeros makes no difference to anybody
        wrong = with_one_wrong_weight(path, place, tmp_path)
        theirs = expected(wrong, given)
        if max(map(worst_error, theirs, wanted)) > 10 * RELATIVE:
            break
    model = OnnxLoader().load(wrong).into_typed().declutter()
    check(model, given, theirs)
    with pytest.raises(AssertionError):
        check(model, given, wanted)


@pytest.mark.parametrize("opset", [17, 21, 23])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.name)
def test_written_again(network: Network, symbolic: bool, opset: int, exported, tmp_path: Path) -> None:
    """As a file of ONNX, which its checks take, and ONNX Runtime runs."""
    path, written = exported(network, symbolic), tmp_path / "written.onnx"
    tract.load(path).save(written, opset=opset)
    onnx.checker.check_model(written, full_check=True)
    for sizes in (network.sizes, network.others) if symbolic else (network.sizes,):
        given = exported_networks.arrays(network, sizes)
        pairs = zip(expected(written, given), expected(path, given), strict=True)
        assert max(worst_error(found, wanted) for found, wanted in pairs) < RELATIVE
