"""Matrix products."""

from __future__ import annotations

from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum, accumulator, wire_matmul
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.ops.elementwise import times
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.linear")
def linear(call: Call, wire: NodeWiring) -> OutletId:
    """X times the transposed weights, plus a bias"""
    x, weight, bias = call.tensor("input"), call.tensor("weight"), call.optional("bias")
    rank = wire.rank(x)
    letters = "abcdefghij"[: rank - 1]
    outputs = "n" if wire.rank(weight) == 2 else ""
    axes = AxesMapping.parse(f"{letters}k,{outputs}k->{letters}{outputs}")
    product = wire.op(EinSum(axes, accumulator(wire.dtype(x))), x, weight)
    return product if bias is None else wire.binary(Add(), product, bias)


@aten(ROWS, "aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot")
def matmul(call: Call, wire: NodeWiring) -> OutletId:
    """The product of matrices, stacks of them, or vectors"""
    second = {"aten.mm.default": "mat2", "aten.bmm.default": "mat2", "aten.mv.default": "vec"}
    second |= {"aten.dot.default": "tensor"}
    return wire.through(wire_matmul, call.tensor("self"), call.tensor(second.get(call.name, "other")))


@aten(ROWS, "aten.addmm", "aten.baddbmm", "aten.addmv")
def addmm(call: Call, wire: NodeWiring) -> OutletId:
    """``beta`` times a tensor plus ``alpha`` times a product"""
    names = {
        "aten.addmm.default": ("mat1", "mat2"),
        "aten.baddbmm.default": ("batch1", "batch2"),
        "aten.addmv.default": ("mat", "vec"),
    }
    a, b = (call.tensor(name) for name in names[call.name])
    product = times(wire, wire.through(wire_matmul, a, b), call.value("alpha"))
    if call.value("beta") == 0:
        return product
    return wire.binary(Add(), times(wire, call.tensor("self"), call.value("beta")), product)
