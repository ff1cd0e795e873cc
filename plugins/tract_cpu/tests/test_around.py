"""Products of images with the channels last are written where a `Pad`, or a convolution, wants elements around them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from tract_cpu.compile import LaidOut, after
from tract_cpu.lay_out.layout import Inside, Own
from tract_cpu.plan import CpuPlan
from tract_cpu.target import Target

from tract_core.data import Constant, DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.einsum import EinSum
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, Valid

RNG = np.random.default_rng(5)
PADS = ((0, 0), (1, 1), (0, 2), (0, 0))


def image_network(fact: str, channels: int, *, pads: bool, both: bool, shown: bool) -> TypedModel:
    """A product, and a convolution of each channel behind it.

    ``pads``: whether a `Pad` is between them, else the windows reach out. ``both``: whether a sum reads the product
    too; ``shown``: whether it is an output too.
    """
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    wire = NodeWiring(model, "n")
    weights, windows = weights_of(channels)
    product = source = wire.op(EinSum(AxesMapping.parse("nhwi,ic->nhwc"), DatumType.F32), x, wire.const(weights))
    padding = Explicit((1, 0), (1, 2))
    if pads:
        source, padding = wire.op(Pad(PADS, PadConstant(Constant(np.float32(1.5)))), product), Valid()
    pool = PoolSpec(DataFormat.NHWC, (3, 3), padding)
    bias = wire.const(np.zeros(channels, "f4"))
    found = wire.op(Conv(pool, KernelFormat.HWIO, channels), source, wire.const(windows), bias)
    outputs = [wire.op(Add(), found, product)] if both else [found]
    model.set_outputs([*outputs, *([product] if shown else [])])
    return model.declutter()


def weights_of(channels: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(channels)
    return rng.standard_normal((8, channels)).astype("f4"), rng.standard_normal((3, 3, 1, channels)).astype("f4")


def computed(x: np.ndarray, channels: int, *, pads: bool, both: bool, shown: bool) -> list[np.ndarray]:
    """The same, in float64."""
    weights, windows = (one.astype("f8") for one in weights_of(channels))
    product = np.einsum("nhwi,ic->nhwc", x.astype("f8"), weights)
    seen = sliding_window_view(np.pad(product, PADS, constant_values=1.5 if pads else 0.0), (3, 3), (1, 2))
    found = np.einsum("nhwcab,abc->nhwc", seen, windows[:, :, 0])
    return [found + product if both else found, *([product] if shown else [])]


HOW = [
    {"pads": pads, "both": both, "shown": shown}
    for pads in (False, True)
    for both in (False, True)
    for shown in (False, True)
]


@pytest.mark.parametrize("how", HOW, ids=lambda how: "-".join(name for name, said in how.items() if said) or "plain")
@pytest.mark.parametrize("fact", ["N,5,W,8,f32", "2,3,14,8,f32", "N,1,13,8,f32", "N,H,31,8,f32", "1,4,7,8,f32"])
@pytest.mark.parametrize("channels", [32, 20, 1])
def test_images_are_as_in_float64(channels, fact, how, isa) -> None:
    plan = CpuPlan(image_network(fact, channels, **how), isa)
    for n, h, w in ((2, 3, 13), (1, 1, 40), (0, 2, 2), (3, 2, 1)):
        sizes = {"N": n, "H": h, "W": w}
        shape = [sizes[one] if one in sizes else int(one) for one in fact.split(",")[:4]]
        x = RNG.standard_normal(shape).astype("f4")
        for found, wanted in zip(plan.spawn().run([x]), computed(x, channels, **how), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("pads", "width", "place"), [(True, 14, Inside), (False, 14, Own), (True, 7, None), (False, 7, None)]
)
def test_rows_that_are_long_are_written_among_others(pads, width, place, isa) -> None:
    channels = 4 * isa.lanes(32)
    found = after(
        "lay_out", image_network(f"1,5,{width},8,f32", channels, pads=pads, both=False, shown=False), Target(isa, 1)
    )
    assert isinstance(found, LaidOut)
    product = next(node for node in found.model.nodes if isinstance(node.op, EinSum))
    where = found.layout.plain[product.outlets()[0]]
    if place is None:
        assert where == Own()
    else:
        assert isinstance(where, place)
        assert where == Own(PADS) if place is Own else True


def test_a_flat_convolution_copies_nothing(isa) -> None:
    """Channels that are last, in whole blocks, are read and written where they lie."""
    model = image_network("2,5,14,8,f32", 4 * isa.lanes(32), pads=False, both=False, shown=False)
    kernels = [step.kernel.name for step in CpuPlan(model, isa).program.steps]
    assert sorted(kernels) == ["border", "depthwise", "matmul"]
