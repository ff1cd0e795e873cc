"""Sums of products: matrix products where they are such, else Einsum."""

from __future__ import annotations

from math import prod

from tract_core.data import DatumType
from tract_core.dims import Dim, is_one, product
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_onnx.writing.integers import BYTES, bytes_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@frozen
class Roles:
    """The axes of a product of two factors, by name.

    ``batch``: of both and of the result; ``left``, ``right``: of one and of the result; ``summed``: of both alone.
    """

    batch: str
    left: str
    right: str
    summed: str


@ROWS.row(ONNX_WRITE, EinSum)
def einsum(op: EinSum, node: Spelling) -> str | None:
    """MatMul, or Einsum"""
    if op.q_output is not None:
        return _quantized(op, node)
    roles = _roles(op, node)
    kinds = [node.fact(slot).datum_type for slot in range(len(op.axes.inputs))]
    if op.acc.is_integer():
        if roles is not None and op.acc is DatumType.I32:
            left, right = bytes_of(node, 0), bytes_of(node, 1)
            if left is not None and right is not None and left[2] == right[2] == 1:
                zeros = [] if all(kind in BYTES for kind in kinds) else [left[1], right[1]]
                pointwise = _pointwise(op, node, [left[0], right[0]], *zeros)
                if pointwise is not None:
                    return pointwise
                return _product(op, node, roles, "MatMulInteger", [left[0], right[0]], *zeros)
        inputs = [node.cast(name, op.acc) for name in node.inputs]
    else:
        inputs = node.inputs
    pointwise = _pointwise(op, node, inputs) if node.fact().datum_type.is_float() else None
    if pointwise is not None:
        return pointwise
    if roles is not None:
        return _product(op, node, roles, "MatMul", inputs)
    return _general(op, node, inputs)


def _pointwise(op: EinSum, node: Spelling, inputs: list[str], *zeros: str) -> str | None:
    """Conv with a kernel of one place, of data whose channels are in front of places; ConvInteger of bytes.

    ``zeros``: the zero points of both, where they have any.
    """
    out = op.axes.outputs[0]
    if len(op.axes.inputs) != 2:
        return None
    op_type = "Conv" if node.fact().datum_type.is_float() else "ConvInteger"
    for slot, (term, data) in enumerate((op.axes.inputs, op.axes.inputs[::-1])):
        shape = node.fact(slot).shape
        own = [axis for axis, name in enumerate(term) if is_one(shape[axis]) and name not in data + out]
        kernel = "".join(name for axis, name in enumerate(term) if axis not in own)
        if len(kernel) != 2 or len(data) < 3 or len(set(data)) < len(data):
            continue
        summed = data[1]
        order = {kernel: [0, 1], kernel[::-1]: [1, 0]}.get(f"{out[1]}{summed}") if len(out) == len(data) else None
        if order is None or summed in out or out != data[0] + out[1] + data[2:] or out[1] in data:
            continue
        weights = node.transposed(node.without_axes(inputs[slot], own), order)
        places = list(range(2, len(data)))
        points = [zeros[1 - slot], zeros[slot]] if zeros else []
        kernel_of = node.with_axes(weights, places)
        return node.add(op_type, inputs[1 - slot], kernel_of, *points, kernel_shape=[1] * len(places))
    return None


def _quantized(op: EinSum, node: Spelling) -> str | None:
    """QLinearMatMul, where there is no bias and each factor has one scale"""
    bias = node.fact(2).constant
    plain = EinSum(AxesMapping(op.axes.inputs[:2], op.axes.outputs), op.acc)
    roles = _roles(plain, node)
    has_bias = bias is None or bias.any()
    if has_bias or any(op.axes.inputs[3:]) or roles is None or len(roles.left) != 1 or len(roles.right) != 1:
        return None
    a, b, _, a0, a_scale, b0, b_scale, c0, c_scale = node.inputs
    left = _matrix(node, 0, a, roles.batch, (roles.left, roles.summed), term=op.axes.inputs[0])
    right = _matrix(node, 1, b, roles.batch, (roles.summed, roles.right), term=op.axes.inputs[1])
    if len(roles.summed) != 1:
        return None
    made = node.add("QLinearMatMul", left, a_scale, a0, right, b_scale, b0, c_scale, c0)
    order = roles.batch + roles.left + roles.right
    return node.transposed(made, [order.index(name) for name in op.axes.outputs[0]])


def _general(op: EinSum, node: Spelling, inputs: list[str]) -> str:
    """Einsum, in letters of the alphabet. An axis that is stretched loses its size of 1."""
    letters = {name: chr(ord("a") + place) for place, name in enumerate(op.axes.names)}
    sizes = op.sizes([node.fact(slot) for slot in range(len(inputs))])
    terms: list[str] = []
    for slot, term in enumerate(op.axes.inputs):
        shape = node.fact(slot).shape
        gone = [
            axis
            for axis, name in enumerate(term)
            if is_one(shape[axis]) and not is_one(sizes[name]) and term.count(name) == 1
        ]
        inputs[slot] = node.without_axes(inputs[slot], gone)
        terms.append("".join(letters[name] for axis, name in enumerate(term) if axis not in gone))
    output = "".join(letters[name] for name in op.axes.outputs[0])
    return node.add("Einsum", *inputs, equation=f"{','.join(terms)}->{output}")


def _roles(op: EinSum, node: Spelling) -> Roles | None:
    """The roles of the axes, where there are two factors without diagonals."""
    if len(op.axes.inputs) != 2:
        return None
    a, b, out = *op.axes.inputs, op.axes.outputs[0]
    if len(set(a)) < len(a) or len(set(b)) < len(b):
        return None
    roles = Roles(
        "".join(name for name in out if name in a and name in b),
        "".join(name for name in out if name in a and name not in b),
        "".join(name for name in out if name in b and name not in a),
        "".join(name for name in a if name in b and name not in out),
    )
    sizes = op.sizes([node.fact(0), node.fact(1)])
    stretched = [
        name
        for slot, term in enumerate(op.axes.inputs)
        for axis, name in enumerate(term)
        if node.fact(slot).shape[axis] != sizes[name]
    ]
    own = [
        node.fact(slot).shape[term.index(name)]
        for slot, (term, other) in enumerate(((a, b), (b, a)))
        for name in term
        if name not in other and name not in out
    ]
    sums_first = any(not is_one(size) for size in own) and not node.fact().datum_type.is_float()
    fits = roles.summed and not set(stretched) - set(roles.batch) and not sums_first
    return roles if fits else None


def _product(op: EinSum, node: Spelling, roles: Roles, op_type: str, inputs: list[str], *more: str) -> str:
    """A product of matrices, for which axes of one role are made one; those of the left stay if there is no batch."""
    a, b, out = *op.axes.inputs, op.axes.outputs[0]
    stays = not roles.batch and len(roles.left) > 1
    sides = (roles.left, roles.summed)
    left = _matrix(node, 0, inputs[0], roles.batch, sides, term=a, stays=stays)
    right = _matrix(node, 1, inputs[1], roles.batch, (roles.summed, roles.right), term=b)
    made = node.add(op_type, left, right, *more)
    sizes = op.sizes([node.fact(0), node.fact(1)])
    order = roles.batch + roles.left + roles.right
    if len(roles.right) != 1 or (len(roles.left) != 1 and not stays):
        made = _arranged(node, made, [sizes[name] for name in order])
    return node.transposed(made, [order.index(name) for name in out])


def _matrix(
    node: Spelling, slot: int, name: str, batch: str, sides: tuple[str, str], *, term: str, stays: bool = False
) -> str:
    """A factor with the axes of the batch in front, and two axes behind them. Axes that only it has are summed.

    ``stays``: whether those of the first side stay as they are.
    """
    order = batch + sides[0] + sides[1]
    shape = dict(zip(term, node.fact(slot).shape, strict=True))
    own = [axis for axis, one in enumerate(term) if one not in order]
    if own and all(is_one(shape[term[axis]]) for axis in own):
        name = node.without_axes(name, own)
    elif own:
        name = node.add("ReduceSum", name, node.ints(own), keepdims=0)
    left = "".join(one for one in term if one in order)
    moved = node.transposed(name, [left.index(one) for one in order])
    if len(sides[1]) == 1 and (stays or len(sides[0]) == 1):
        return moved
    lead, merged = (batch + sides[0], sides[1:]) if stays else (batch, sides)
    return _arranged(
        node, moved, [*(shape[one] for one in lead), *(product(shape[one] for one in side) for side in merged)]
    )


def _arranged(node: Spelling, name: str, shape: list[Dim]) -> str:
    """A tensor in another shape; one size that is a symbol need not be computed."""
    unknown = [place for place, size in enumerate(shape) if not isinstance(size, int)]
    if len(unknown) == 1 and prod(size for size in shape if isinstance(size, int)):
        shape = [-1 if place in unknown else size for place, size in enumerate(shape)]
    return node.reshaped(name, shape)
