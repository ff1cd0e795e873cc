"""Matrix products."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Ge, Le, Min
from tract_core.ops.einsum import EinSum, accumulator, wire_matmul
from tract_core.ops.elementwise import GeluApproximate
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import computed_in, times
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()


@aten(ROWS, "aten.linear")
def linear(call: Call, wire: NodeWiring) -> OutletId:
    """X times the transposed weights, plus a bias"""
    x, weight, bias = call.input("input"), call.input("weight"), call.optional_input("bias")
    rank = wire.rank(x)
    letters = "abcdefghij"[: rank - 1]
    outputs = "n" if wire.rank(weight) == 2 else ""
    axes = AxesMapping.parse(f"{letters}k,{outputs}k->{letters}{outputs}")
    if call.kind is DatumType.F16 and call.lowering.linear_in_f32:
        x, weight = (wire.cast(one, DatumType.F32) for one in (x, weight))
    product = wire.cast(wire.op(EinSum(axes, accumulator(wire.dtype(x))), x, weight), call.kind)
    return product if bias is None else wire.binary(Add(), product, bias)


@aten(ROWS, "aten.mm", "aten.bmm", "aten.matmul", "aten.mv", "aten.dot", "aten.vdot", "aten._int_mm")
def matmul(call: Call, wire: NodeWiring) -> OutletId:
    """The product of matrices, stacks of them, or vectors"""
    second = {"aten.mm.default": "mat2", "aten.bmm.default": "mat2", "aten.mv.default": "vec"}
    second |= {"aten.dot.default": "tensor", "aten._int_mm.default": "mat2"}
    found = wire.through(wire_matmul, call.input("self"), call.input(second.get(call.name, "other")))
    return wire.cast(found, call.kind)  # narrow integers are summed in wider ones, and wrap around


_FACTORS: Final = {
    "addmm": ("mat1", "mat2"),
    "_addmm_activation": ("mat1", "mat2"),
    "baddbmm": ("batch1", "batch2"),
    "addbmm": ("batch1", "batch2"),
    "addmv": ("mat", "vec"),
}


@aten(ROWS, "aten.addmm", "aten.baddbmm", "aten.addbmm", "aten.addmv")
def addmm(call: Call, wire: NodeWiring) -> Wired:
    """``beta`` times a tensor plus ``alpha`` times a product, computed in f32 where the floats are narrower"""
    name, kind = call.name.split(".")[1], call.kind
    a, b = (wire.cast(call.input(factor), computed_in(kind)) for factor in _FACTORS[name])
    if name == "addbmm":
        product = wire.op(EinSum(AxesMapping.parse("bij,bjk->ik"), accumulator(wire.dtype(a))), a, b)
    else:
        product = wire.through(wire_matmul, a, b)
    product = times(Wired(wire, product), call.value("alpha"))
    beta = call.value("beta")
    if beta:  # by 0, even what is not a number is nothing
        product = times(call.tensor("self").cast(product.dtype), beta) + product
    return product.broadcast(call.shape()).cast(kind)


@aten(ROWS, "aten._addmm_activation")
def addmm_activation(call: Call, wire: NodeWiring) -> Wired:
    """The same, and relu or gelu of it"""
    found = addmm(call, wire)
    return found.op(GeluApproximate()) if call.flag("use_gelu") else found.maximum(0)


@aten(ROWS, "aten._grouped_mm", "transformers.grouped_mm_fallback")
def grouped_mm(call: Call, wire: NodeWiring) -> OutletId:
    """Rows (T, K), each times the matrix of its group, of (G, K, N)

    Those before ``offs[0]`` are of the first group, those from there before ``offs[1]`` of the second, and so on; rows
    behind all groups are 0. A matrix is taken for each row, as transformers does with experts in ``batched_mm``.
    """
    x, weights = (call.input(name) for name in (("input", "weight") if call.has("weight") else ("self", "mat2")))
    if call.has("bias") or not call.has("offs") or (wire.rank(x), wire.rank(weights)) != (2, 3):
        raise Unsupported("groups of other than rows, or with a bias, are not supported", hint="give rows and offs")
    place, last = steps(wire, 0, wire.shape(x)[0]), wire.shape(weights)[0] - 1
    passed = wire.binary(Ge(), wire.unsqueeze(place, [1]), wire.unsqueeze(wire.i64(call.input("offs")), [0]))
    group = wire.squeeze(wire.op(Reduce((1,), Reducer.SUM), wire.i64(passed)), [1])
    own = wire.op(Gather(0), weights, wire.binary(Min(), group, wire.const(last)))
    axes = AxesMapping.parse("tk,tkn->tn")
    found = wire.cast(wire.op(EinSum(axes, accumulator(wire.dtype(x))), x, own), call.kind)
    inside = wire.unsqueeze(wire.binary(Le(), group, wire.const(last)), [1])
    return wire.select(inside, found, wire.scalar(0, found))


@aten(ROWS, "aten._trilinear")
def trilinear(call: Call, wire: NodeWiring) -> OutletId:
    """The sum over axes of a product of three tensors, each with axes of size 1 put where the others have more"""
    names = ("i1", "i2", "i3")
    rank = wire.rank(call.input("i1")) + len(call.integers("expand1"))
    letters = "abcdefghijklmnop"[:rank]
    terms = ["".join(c for c in letters if letters.index(c) not in call.integers(f"expand{n}")) for n in (1, 2, 3)]
    result = "".join(letter for letter in letters if letters.index(letter) not in call.integers("sumdim"))
    axes = AxesMapping.parse(f"{','.join(terms)}->{result}")
    return wire.op(EinSum(axes, accumulator(call.kind)), *(call.input(name) for name in names))
