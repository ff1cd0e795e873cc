"""`torch.compile` with the backend of this project, against PyTorch itself."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.utils import _pytree as pytree
from torch_networks import NETWORKS, Network

import tract_core as tract
from tract_core.errors import InputError, ModelWarning, TractError, Unsupported

RIGHT = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(autouse=True)
def _anew() -> Generator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(module: Any, *, dynamic: bool | None = None, **options: Any) -> Callable[..., Any]:
    return torch.compile(module, backend="tract", dynamic=dynamic, options={"fallback": False, **options})


def graphs() -> int:
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def tensors(value: Any) -> list[torch.Tensor]:
    return [one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def same(found: Any, wanted: Any) -> None:
    """Values within the tolerance; shapes, types and strides alike; what is no tensor, the same."""
    assert pytree.tree_structure(found) == pytree.tree_structure(wanted)
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
        if isinstance(other, torch.Tensor):
            assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())
            torch.testing.assert_close(one, other, equal_nan=True, **RIGHT)
        else:
            assert (type(one), one) == (type(other), other)


class Counting(nn.Module):
    """Convolution, normalisation, attention, and a counter of calls."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        self.calls += 1
        y = self.linear(F.gelu(self.norm(self.conv(x))).flatten(2).transpose(1, 2))
        found, _ = self.attention(y, y, y)
        return found, found[0], x.transpose(0, 1)


def test_pytorch_finds_it_by_name() -> None:
    assert "tract" in torch._dynamo.list_backends()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_network_and_what_it_changes(mode: Any) -> None:
    module = Counting().eval()
    call = compiled(module)
    with mode():
        for turn in range(3):
            x = torch.randn(2, 3, 9, 9)
            same(call(x), module(x))
            assert module.calls.item() == 2 * (turn + 1)


def test_four_batch_sizes_are_one_graph() -> None:
    module = Counting().eval()
    call = compiled(module, dynamic=True)
    made: list[int] = []
    with torch.no_grad():
        for batch in (2, 3, 7, 12):  # PyTorch itself tells batches of 16 from smaller ones in convolutions
            x = torch.randn(batch, 3, 9, 9)
            same(call(x), module(x))
            made.append(graphs())
    assert len(set(made)) == 1


@pytest.mark.parametrize("batch", [0, 1])
def test_no_row_and_one_row(batch: int) -> None:
    module = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
    call = compiled(module, dynamic=True)
    with torch.no_grad():
        for size in (3, batch):
            x = torch.randn(size, 4)
            same(call(x), module(x))


SHAPES: dict[str, Callable[[torch.Tensor], Any]] = {
    "the input itself": lambda x: (x, x + 1),
    "views of the input": lambda x: (x[1:], x.t(), x.view(-1), x[:, ::2], x * 2),
    "parts of the input": lambda x: (*x.chunk(2), *x.split(2), x.unbind(1)[1], x.exp()),
    "a view of a result": lambda x: (x.relu().t(), x.relu()),
    "parts of one result": lambda x: (*(x * 3).chunk(2, 1), (x * 3)[1:]),
    "one result twice": lambda x: (y := x.sin(), y, y.view(6, 4) if y.numel() == 24 else y),
    "stretched": lambda x: (x.sum(1, keepdim=True).expand(-1, 6), x.mean()),
    "nothing computed": lambda x: (x.t(), x.shape[0], None),
    "numbers and sizes": lambda x: {"a": x.cos(), "n": x.shape[0] * 2, "none": None, "one": 1.5},
    "without axes": lambda x: (x.sum(), x.max(), x.argmax()),
    "a constant": lambda x: (torch.ones(2, 3), x + torch.tensor([1.0, 2, 3, 4, 5, 6])),
    "clones": lambda x: (x.clone(), x.t().contiguous(), x.to(torch.float64)),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_outputs_lie_where_they_do_in_pytorch(name: str, dynamic: bool) -> None:
    function = SHAPES[name]
    call = compiled(function, dynamic=dynamic)
    for size in (4, 4, 6) if dynamic else (4, 4):
        x = torch.randn(size, 6)
        found, wanted = call(x), function(x)
        same(found, wanted)
        assert _sharing([x, *tensors(found)]) == _sharing([x, *tensors(wanted)])


def _sharing(given: list[torch.Tensor]) -> list[int]:
    """For each tensor, the place of the first one in the same memory."""
    memory = [one.untyped_storage().data_ptr() for one in given]
    return [memory.index(one) for one in memory]


def _written(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    y[1:].mul_(x[1:])
    return x * y


@pytest.mark.parametrize("dynamic", [False, True])
def test_inputs_that_are_written_to(dynamic: bool) -> None:
    call = compiled(_written, dynamic=dynamic)
    ours = [torch.randn(4, 3), torch.randn(4, 3)]
    theirs = [one.clone() for one in ours]
    for _ in range(3):
        same(call(*ours), _written(*theirs))
        same(ours, theirs)


def test_inputs_that_share_memory_and_are_written_to() -> None:
    call = torch.compile(_written_and_read, backend="tract")
    ours, theirs = torch.arange(20.0), torch.arange(20.0)
    with pytest.warns(ModelWarning, match="as_strided_scatter"):
        same(call(*_overlapping(ours)), _written_and_read(*_overlapping(theirs)))
    same(call(*_overlapping(ours)), _written_and_read(*_overlapping(theirs)))
    same(ours, theirs)


def _written_and_read(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * y


def _overlapping(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x[:12].view(4, 3), x[8:].view(4, 3)


def test_inputs_that_lie_otherwise() -> None:
    module = nn.Conv2d(3, 4, 3).eval()
    call = compiled(module)
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        for given in (x, x.to(memory_format=torch.channels_last), x.transpose(2, 3), x[:, :, ::1].expand(2, 3, 8, 8)):
            same(call(given), module(given))


def test_a_graph_that_breaks_runs_in_pieces() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * 2
        if y.sum() > 0:
            return y.cos()
        return y - 1

    call = compiled(function)
    for x in (torch.ones(4), -torch.ones(4)):
        same(call(x), function(x))
    assert graphs() == 3


def test_numbers_of_the_caller() -> None:
    def function(x: torch.Tensor, count: int, factor: float) -> torch.Tensor:
        return x[:count] * factor / (factor + 9) + torch.arange(count).unsqueeze(1) / count

    call = compiled(function, dynamic=True)
    x = torch.randn(9, 3)
    for count, factor in ((3, 0.5), (4, 1.5), (7, -2.0)):
        same(call(x, count, factor), function(x, count, factor))


def test_gradients_are_those_of_pytorch() -> None:
    ours, theirs = (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    call, x = torch.compile(ours, backend="tract"), torch.randn(5, 4)
    with pytest.warns(ModelWarning, match="gradients are wanted"):
        call(x).square().sum().backward()
    theirs(x).square().sum().backward()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, other.grad)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")  # without gradients it is a model
        same(call(x), theirs(x))


def test_gradients_without_a_fallback_are_refused() -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"gradients are wanted\n.*torch.no_grad"):
        compiled(nn.Linear(2, 2))(torch.ones(1, 2))


def test_what_is_missing_runs_in_pytorch_and_is_named() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x + 1).abs().sort().values

    x = torch.eye(3)
    with pytest.warns(ModelWarning, match="aten.linalg_eig") as told:
        same(torch.compile(function, backend="tract")(x), function(x))
    (line,) = told
    assert "\n" not in str(line.message)
    torch._dynamo.reset()
    with pytest.raises(Unsupported, match="linalg_eig"):
        compiled(function)(x)


DRAWS: dict[str, tuple[Any, str]] = {
    "dropout": (nn.Dropout(0.5), "dropout in training mode"),
    "rand": (lambda x: x + torch.rand(2, 8), "draws random numbers"),
    "bernoulli": (lambda x: torch.bernoulli(x * 0.5), "draws random numbers"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_those_of_pytorch(name: str) -> None:
    function, why = DRAWS[name]
    call = torch.compile(function, backend="tract")
    torch.manual_seed(3)
    with torch.no_grad(), pytest.warns(ModelWarning, match=why):
        found = call(torch.ones(2, 8))
    torch.manual_seed(3)
    same(found, function(torch.ones(2, 8)))


def _stepped(module: nn.Linear) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    with torch.enable_grad():
        module(torch.ones(3, 4)).sum().backward()
    optimizer.step()


CHANGES: dict[str, Callable[[nn.Linear], None]] = {
    "a step of training": _stepped,
    "load_state_dict": lambda module: module.load_state_dict(nn.Linear(4, 4).state_dict()),
    "written through data": lambda module: module.weight.data.mul_(2),
    "data replaced": lambda module: setattr(module.weight, "data", torch.ones(4, 4)),
    "another parameter": lambda module: setattr(module, "weight", nn.Parameter(torch.ones(4, 4))),
    "one element": lambda module: module.weight.__setitem__((0, 1), 7.0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_weights_that_change(name: str) -> None:
    module, x = nn.Linear(4, 4), torch.randn(2, 4)
    call = compiled(module)
    with torch.no_grad():
        before = call(x)
        CHANGES[name](module)
        same(call(x), module(x))
        assert not torch.equal(call(x), before)


def test_statistics_of_batches_in_training() -> None:
    ours, theirs = (nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    call = compiled(ours)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(4, 2, 6, 6)
            same(call(x), theirs(x))
            same(dict(ours.named_buffers()), dict(theirs.named_buffers()))


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats(kind: torch.dtype) -> None:
    module = nn.Linear(16, 8).to(kind).eval()
    x = torch.randn(3, 16, dtype=kind)
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(x), module(x), rtol=2e-2, atol=2e-2)


def test_autocast() -> None:
    module, x = nn.Linear(16, 8).eval(), torch.randn(3, 16)
    call = compiled(module)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found = call(x)
        torch.testing.assert_close(found, module(x), rtol=2e-2, atol=2e-2)
        assert found.dtype is torch.bfloat16


def test_what_is_no_number() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 3.4e38])

    def function(x: torch.Tensor) -> Any:
        return x.relu(), x * 2, x.clamp(-1, 1), x.isnan(), x.sign()

    same(compiled(function)(x), function(x))


def test_recurrent_layers_where_dynamo_lets_them_through() -> None:
    module = nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True).eval()
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        call = compiled(module, dynamic=True)
        for steps in (3, 6):
            x = torch.randn(2, steps, 4)
            same(call(x), module(x))
    assert graphs() >= 1


def test_threads() -> None:
    module = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 8)).eval()
    call, wrong = compiled(module), list[Any]()

    def use() -> None:
        with torch.no_grad():
            for _ in range(50):
                x = torch.randn(3, 32)
                if not torch.allclose(call(x), module(x), **RIGHT):
                    wrong.append(x)

    workers = [threading.Thread(target=use) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert not wrong


@pytest.mark.parametrize("runtime", ["reference", "cpu(threads=1)", tract.runtime_for_name("reference")])
def test_runtimes(runtime: Any) -> None:
    module, x = nn.Linear(4, 3).eval(), torch.randn(2, 4)
    with torch.no_grad():
        same(compiled(module, runtime=runtime)(x), module(x))


def test_transforms() -> None:
    module, x = nn.Linear(64, 8).eval(), torch.randn(4, 64)
    with torch.no_grad():
        found = compiled(module, transforms=["f32_to_f16(keep_io_types: true)"])(x)
        torch.testing.assert_close(found, module(x), rtol=1e-2, atol=1e-2)
        assert not torch.equal(found, module(x))
        torch._dynamo.reset()
        with pytest.raises(InputError, match=r"changes types of inputs or outputs\n.*keep_io_types"):
            compiled(module, transforms=["f32_to_f16"])(x)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"runtme": "cpu"}, r"there is no option 'runtme'\n.*'runtime'"),
        ({"runtime": 3}, "the option 'runtime' is int"),
        ({"fallback": "no"}, "the option 'fallback' is str"),
        ({"transforms": [3]}, "a transform is int"),
    ],
)
def test_wrong_options(options: dict[str, Any], wanted: str) -> None:
    with torch.no_grad(), pytest.raises(Exception, match=wanted):
        torch.compile(nn.Linear(2, 2), backend="tract", options=options)(torch.ones(1, 2))


def test_a_mode_of_another_compiler() -> None:
    with torch.no_grad(), pytest.raises(Exception, match="mode='max-autotune' is one of PyTorch's own compiler"):
        torch.compile(nn.Linear(2, 2), backend="tract", mode="max-autotune")(torch.ones(1, 2))


def test_a_runtime_that_is_not_there() -> None:
    with torch.no_grad(), pytest.raises(TractError, match="quantum"):
        compiled(nn.Linear(2, 2), runtime="quantum")(torch.ones(1, 2))


ANCHORS = {"fcos", "retinanet"}
"""Networks whose sizes are divided by sizes: the distance of anchors is that of the image through that of a grid."""


def check(network: Network, *, dynamic: bool | None, fallback: bool = False) -> None:
    """At its three sizes, a network gives what it does in PyTorch, and nothing of it runs there but by ``fallback``."""
    module = network.module()
    call = compiled(module, dynamic=dynamic, fallback=fallback)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        for sizes in network.sizes:
            given = network.given(sizes)
            found, wanted = tensors(call(**given)), tensors(module(**given))
            assert [(one.shape, one.dtype, one.stride()) for one in found] == [
                (one.shape, one.dtype, one.stride()) for one in wanted
            ]
            errors = [
                float((one.double() - other.double()).abs().max() / other.double().abs().max().clamp_min(1e-6))
                for one, other in zip(found, wanted, strict=True)
                if one.numel()
            ]
            assert max(errors) < network.tolerance, (sizes, errors)


@pytest.mark.parametrize("network", [one for one in NETWORKS if one.small], ids=str)
def test_small_networks(network: Network) -> None:
    check(network, dynamic=True)


@pytest.mark.networks
@pytest.mark.parametrize("dynamic", [None, True], ids=["first fixed", "dynamic"])
@pytest.mark.parametrize("network", [one for one in NETWORKS if not one.small], ids=str)
def test_networks(network: Network, dynamic: bool | None) -> None:
    if dynamic and str(network) in ANCHORS:
        with pytest.warns(
            ModelWarning, match=r"a graph runs in PyTorch: .*cannot say the size .*the divisor is no number"
        ):
            check(network, dynamic=dynamic, fallback=True)
    else:
        check(network, dynamic=dynamic)
