"""What becomes of the kernels of rows on each architecture: nothing is laid down in memory for want of registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from on_virtual import model_of
from tract_cuda.compile import compiled
from tract_cuda.language.arch import ARCHS, Arch
from tract_cuda.lowering import Target
from tract_cuda.program import launches_in
from tract_cuda.ptx import written
from tract_cuda.testing.static_facts import facts

from tract_core.model.typed import TypedModel
from tract_core.ops.cumsum import CumSum
from tract_core.ops.deconv import Deconv
from tract_core.ops.fft import Fft
from tract_core.ops.gather import Gather, GatherNd
from tract_core.ops.grid_sample import GridSample
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.lrn import Lrn
from tract_core.ops.pad import Pad, PadReflect
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.recurrent import LstmEpilogue
from tract_core.ops.resize import Resize, Sampling, Sizes
from tract_core.ops.scatter import ScatterNd
from tract_core.ops.topk import Topk

pytestmark = pytest.mark.nvcc

FOUR = PoolSpec(DataFormat.NCHW, (4, 4), strides=(2, 2))
CUBIC = Sampling(Interpolator.CUBIC)
IMAGE = "8,64,56,56,f32"

MODELS: dict[str, tuple[int, Callable[[], TypedModel]]] = {
    "rows of a table": (16, lambda: model_of(Gather(0), "50000,768,f16", "1,512,i64")),
    "slices": (24, lambda: model_of(GatherNd(1), "4,5,6,64,f32", "4,7,2,i64")),
    "sums of updates": (32, lambda: model_of(ScatterNd("add"), "1000,64,f32", "N,1,i64", "N,64,f32")),
    "mirror": (32, lambda: model_of(Pad(((0, 0), (0, 0), (1, 1), (1, 1)), PadReflect()), IMAGE)),
    "running sums f64": (56, lambda: model_of(CumSum(1), "8,100000,f64")),
    "best 50": (32, lambda: model_of(Topk(1, True, 50), "8,50000,f32", "i64", constants={1: np.array(50)})),
    "transform": (40, lambda: model_of(Fft(1), "8,1024,2,f32")),
    "local response": (40, lambda: model_of(Lrn(5), IMAGE)),
    "samples": (40, lambda: model_of(GridSample(Interpolator.LINEAR), IMAGE, "8,64,64,2,f32")),
    "cubic samples": (96, lambda: model_of(GridSample(Interpolator.CUBIC), "8,64,56,56,f16", "8,64,64,2,f32")),
    "resize of any size": (40, lambda: model_of(Resize((2, 3), Sizes((112, 112)), CUBIC), "8,64,H,W,f16")),
    "largest": (40, lambda: model_of(MaxPool(FOUR), IMAGE)),
    "mean": (40, lambda: model_of(SumPool(PoolSpec(DataFormat.NHWC, (3, 3))), "8,112,112,64,f16")),
    "deconvolution": (48, lambda: model_of(Deconv(FOUR), IMAGE, "32,64,4,4,f32", "32,f32")),
    "experts": (40, lambda: model_of(IndexedMatMul(), "S,1,4096,f32", "64,1024,4096,f32", "S,4,i64")),
    "gates": (48, lambda: model_of(LstmEpilogue(128), "8,512,f32", "8,128,f32")),
}
"""Models, and how many registers their kernels have at most, on any architecture."""


@pytest.mark.parametrize("arch", ARCHS, ids=lambda arch: arch.name)
@pytest.mark.parametrize("name", MODELS)
def test_kernels_have_registers_enough(name: str, arch: Arch) -> None:
    most, make = MODELS[name]
    kernels = {step.kernel for step in launches_in(compiled(make(), Target(arch, 132)).program.steps)}
    assert kernels
    for kernel in kernels:
        found = facts(written(kernel, arch), arch)
        assert (found.spilled, found.stack) == (0, 0)
        assert found.registers <= most
