"""What becomes of kernels on each architecture: nothing is laid down in memory for want of registers."""

from __future__ import annotations

import pytest
from executed import kernels_of, one_node
from tract_cuda.language.arch import ARCHS, Arch, arch_named
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.static_facts import facts, ptxas

from tract_core.data import DatumType
from tract_core.errors import RunError
from tract_core.ops.binary import Div
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Erf, Exp, GeluExact, Sin
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import LogSoftmax, Softmax

pytestmark = pytest.mark.skipif(ptxas() is None, reason="wants ptxas, as in the wheel nvidia-cuda-nvcc")

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
}
"""How many registers kernels have at most, on any architecture."""

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
