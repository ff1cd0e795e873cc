"""What becomes of kernels on each architecture: nothing is laid down in memory for want of registers."""

from __future__ import annotations

import pytest
from executed import kernels_of, one_node
from tract_cuda.language.arch import ARCHS, Arch, arch_named
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.static_facts import facts

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Div
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv
from tract_core.ops.elementwise import Erf, Exp, GeluExact, Sin
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import LogSoftmax, Softmax

pytestmark = pytest.mark.nvcc

REGISTERS = {
    "exp f32": 24,
    "gelu f16": 40,
    "erf f64": 40,
    "sin f32": 80,
    "division bf16": 48,
    "conversion": 40,
    "softmax 768 f32": 40,
    "softmax 768 f16": 48,
    "softmax of any size": 40,
    "log softmax, long": 64,
    "norm f16": 56,
    "sum across": 64,
    "argmax": 48,
    "sum in pieces": 48,
    "product in f64": 32,
    "largest of pieces": 96,
    "largest across": 40,
    "mean of bytes": 16,
    "softmax in pieces": 64,
    "norm of any size": 32,
    "norm f64": 32,
    "conv 3x3": 88,
    "conv 7x7 of 3 channels": 120,
    "conv of any size": 40,
    "conv in one dimension": 64,
    "conv f16": 160,
    "conv f16 of 3 channels": 120,
    "conv bf16 in groups": 160,
    "depthwise f32": 40,
    "depthwise f16, 5x5": 48,
    "window by window": 40,
}
"""How many registers kernels have at most, on any architecture."""


def conv(
    kind: str, channels: tuple[int, int], window: tuple[int, ...], image: str, *, group: int = 1, step: int = 1
) -> TypedModel:
    """A convolution with a bias. ``channels``: in and out; ``image``: the sizes of the spatial axes."""
    rank, (inputs, outputs) = len(window), channels
    pads = Explicit(tuple(one // 2 for one in window), tuple(one // 2 for one in window))
    spec = PoolSpec(DataFormat.NCHW, window, pads, (1,) * rank, (step,) * rank, inputs, outputs)
    weights = ",".join(map(str, (outputs, inputs // group, *window)))
    return one_node(Conv(spec, group=group), f"8,{inputs},{image},{kind}", f"{weights},{kind}", f"{outputs},{kind}")


MODELS = {
    "exp f32": lambda: one_node(Exp(), "N,f32"),
    "gelu f16": lambda: one_node(GeluExact(), "64,4096,f16"),
    "erf f64": lambda: one_node(Erf(), "N,f64"),
    "sin f32": lambda: one_node(Sin(), "64,64,f32"),
    "division bf16": lambda: one_node(Div(), "64,64,bf16", "64,1,bf16"),
    "conversion": lambda: one_node(Cast(DatumType.I8), "64,64,f32"),
    "softmax 768 f32": lambda: one_node(Softmax((1,)), "4096,768,f32"),
    "softmax 768 f16": lambda: one_node(Softmax((1,)), "4096,768,f16"),
    "softmax of any size": lambda: one_node(Softmax((1,)), "B,S,f32"),
    "log softmax, long": lambda: one_node(LogSoftmax((1,)), "8,100000,f32"),
    "norm f16": lambda: one_node(RmsNorm(1, 1e-5), "4096,4096,f16"),
    "sum across": lambda: one_node(Reduce((0,), Reducer.SUM), "512,4096,f16"),
    "argmax": lambda: one_node(Reduce((1,), Reducer.ARG_MAX_FIRST), "32,32000,f32"),
    "sum in pieces": lambda: one_node(Reduce((0,), Reducer.SUM), "16777216,f32"),
    "product in f64": lambda: one_node(Reduce((0, 2), Reducer.PROD), "8,64,A,f64"),
    "largest of pieces": lambda: one_node(Reduce((0,), Reducer.MAX), "16777216,f16"),
    "largest across": lambda: one_node(Reduce((1,), Reducer.ARG_MIN_LAST), "8,512,768,bf16"),
    "mean of bytes": lambda: one_node(Reduce((2, 3), Reducer.SUM), "8,64,7,7,u8"),
    "softmax in pieces": lambda: one_node(Softmax((0, 1)), "64,512,f16"),
    "norm of any size": lambda: one_node(RmsNorm(1, 1e-5), "A,B,f32"),
    "norm f64": lambda: one_node(RmsNorm(1, 1e-5), "16,1000,f64"),
    "conv 3x3": lambda: conv("f32", (64, 64), (3, 3), "56,56"),
    "conv 7x7 of 3 channels": lambda: conv("f32", (3, 64), (7, 7), "224,224", step=2),
    "conv of any size": lambda: conv("f32", (64, 128), (3, 3), "H,W"),
    "conv in one dimension": lambda: conv("f32", (80, 256), (3,), "300"),
    "conv f16": lambda: conv("f16", (64, 64), (3, 3), "56,56"),
    "conv f16 of 3 channels": lambda: conv("f16", (3, 64), (7, 7), "224,224", step=2),
    "conv bf16 in groups": lambda: conv("bf16", (128, 256), (3, 3), "28,28", group=2),
    "depthwise f32": lambda: conv("f32", (96, 96), (3, 3), "56,56", group=96),
    "depthwise f16, 5x5": lambda: conv("f16", (240, 240), (5, 5), "28,28", group=240, step=2),
    "window by window": lambda: conv("f32", (64, 128), (3, 3), "28,28", group=32),
}


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", MODELS)
def test_kernels_have_registers_enough(name: str, arch: Arch) -> None:
    for plan in kernels_of(MODELS[name]()):
        found = facts(written(plan, arch), arch)
        assert (found.spilled, found.stack) == (0, 0)
        assert found.registers <= REGISTERS[name]


def test_what_is_refused_is_said() -> None:
    arch = arch_named("sm_80")
    assert arch is not None
    with pytest.raises(RunError, match="ptxas refuses kernel k for sm_80: "):
        facts(Ptx("k", ".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n", 32, 0), arch)
