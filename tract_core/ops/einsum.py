"""Sums of products over named axes: matrix products, contractions, transpositions and outer products of any rank.

An axis that has size 1 in one input and another size elsewhere is stretched, as in a broadcast matrix product: archives
of the established engine rely on it. The axes mapping of such an operator gives the stretched axis its own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Final

import numpy as np

from tract_core.data import DatumType, DType
from tract_core.dims import Dim, broadcast, is_one, product
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.conditions import may_broadcast, may_equal
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.expect import arity, same_type, wide
from tract_core.ops.rounding import round_into
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

QUANTIZED_INPUTS: Final = ("a", "b", "bias", "a0", "a_scale", "b0", "b_scale", "c0", "c_scale")
"""What the inputs of the quantised form are, in order."""


@frozen
class EinSum(TypedOp):
    """The sum, over every axis that the output lacks, of the product of the inputs.

    ``axes``: names of the axes of each input and of the one output, as ``"mk,kn->mn"``. A name that is repeated in
    one input takes the diagonal. ``acc``: the type in which products are summed (one narrower than f32 is only a
    permission). Floats and complex numbers give the inputs' type, rounded once; integers give ``acc``, which wraps
    around.

    With ``q_output``, there are the nine inputs of `QUANTIZED_INPUTS`: two integer tensors with zero points and scales,
    a bias in units of ``a_scale * b_scale``, and the zero point and scale of the output, which is rounded (halves to
    even) and saturated into that type. Each parameter names the axes along which it varies; bias and scales vary along
    axes of the output only.
    """

    axes: AxesMapping
    acc: DatumType
    q_output: DType | None = None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The output's axes with their sizes. Raises FactError when ranks, sizes or types do not fit."""
        arity(self, inputs, len(self.axes.inputs))
        self._check_expression()
        self._check_types(inputs)
        sizes = self.sizes(inputs)
        shape = ShapeFact(sizes[name] for name in self.axes.outputs[0])
        return (TypedFact(self._output_type(inputs), shape),)

    def sizes(self, inputs: Sequence[TypedFact]) -> dict[str, Dim]:
        """The size of every axis by name. Raises FactError, naming the axis and both sizes, when they differ.

        An axis that is summed over stretches only from the number 1; of two symbols, neither may be 1 alone. The axes
        of a diagonal do not stretch.
        """
        found: dict[str, Dim] = {}
        for slot, (term, fact) in enumerate(zip(self.axes.inputs, inputs, strict=True)):
            if len(term) != fact.rank:
                raise FactError(f"EinSum {self.axes}: input {slot} is {fact}, of rank {fact.rank}, not {len(term)}")
            for name, size in zip(term, fact.shape, strict=True):
                known = found.setdefault(name, size)
                if known is size:
                    continue
                summed = name not in self.axes.outputs[0] and not is_one(known) and not is_one(size)
                stretches = not summed and term.count(name) == 1
                if not (may_broadcast(known, size) if stretches else may_equal(known, size)):
                    problem = f"axis {name} has size {size} in input {slot}, {known} in an earlier one"
                    raise FactError(f"EinSum {self.axes}: {problem}")
                found[name] = broadcast(known, size)
        return found

    def _output_type(self, inputs: Sequence[TypedFact]) -> DType:
        if self.q_output is not None:
            return self.q_output
        return self.acc if self.acc.is_integer() else inputs[0].datum_type

    def _check_expression(self) -> None:
        if len(self.axes.outputs) != 1:
            raise FactError(f"EinSum {self.axes}: one output is wanted, found {len(self.axes.outputs)}")
        output = self.axes.outputs[0]
        unknown = set(output).difference(*self.axes.inputs)
        if len(set(output)) < len(output) or unknown:
            wanted = "every axis of the output comes from an input, and stands there once"
            raise FactError(f"EinSum {self.axes}: {wanted}")
        if self.q_output is not None:
            self._check_parameters()

    def _check_parameters(self) -> None:
        if len(self.axes.inputs) != len(QUANTIZED_INPUTS):
            wanted, found = len(QUANTIZED_INPUTS), len(self.axes.inputs)
            raise FactError(f"EinSum with q_output takes {wanted} inputs, {found} were given")
        a, b, bias, a0, a_scale, b0, b_scale, c0, c_scale = self.axes.inputs
        if set(bias + a_scale + b_scale + c0 + c_scale) - set(self.axes.outputs[0]):
            raise FactError(f"EinSum {self.axes}: bias, scales and c0 may only vary along axes of the output")
        if set(a0) - set(a) or set(b0) - set(b):
            raise FactError(f"EinSum {self.axes}: a zero point may only vary along axes of its tensor")

    def _check_types(self, inputs: Sequence[TypedFact]) -> None:
        if self.q_output is not None:
            kinds = [fact.datum_type.storage for fact in inputs[:2]]
            fits = all(kind.is_integer() for kind in kinds) and self.acc.is_integer()
        elif self.acc.is_integer():
            fits = all(fact.datum_type.is_integer() for fact in inputs)
        else:
            same_type(self, inputs)
            same_kind = "is_complex" if self.acc.is_complex() else "is_float"
            fits = all(getattr(kind, same_kind)() for kind in (self.acc, inputs[0].datum_type))
        if not fits:
            found = ", ".join(fact.datum_type.short for fact in inputs)
            raise FactError(f"EinSum {self.axes} cannot sum products of {found} in {self.acc.short}")


_REQUANTIZED: Final = 48
"""Bytes for each quantised sum: in f64, scaled, rounded, moved by the zero point and kept in bounds."""


@ROWS.row(REFERENCE, EinSum)
def reference(op: EinSum, *inputs: Array) -> Array:
    """Pairs contracted from left to right, each as a batched matrix product."""
    if op.q_output is not None:
        return _quantized(op, inputs)
    compute = computed_in(op, inputs)
    result = contract(op.axes, [x.astype(compute, copy=False) for x in inputs])
    if op.acc.is_integer():
        return result.astype(np.int64).astype(op.acc.numpy) if compute.kind == "f" else result
    return result.astype(inputs[0].dtype, copy=False)


def computed_in(op: EinSum, inputs: Sequence[Array]) -> np.dtype[np.generic]:
    """The type in which NumPy multiplies and adds.

    f64 for two inputs of 8 bits, whose products it sums exactly (up to 2**37 of them) and BLAS multiplies.
    """
    if not op.acc.is_integer():
        return wide(op.acc.numpy)
    narrow = len(inputs) <= 2 and all(x.dtype.itemsize == 1 for x in inputs)
    return np.dtype(np.float64) if narrow or op.q_output is not None else op.acc.numpy


def _quantized(op: EinSum, inputs: Sequence[Array]) -> Array:
    """round((sum((a - a0) * (b - b0)) + bias) * a_scale * b_scale / c_scale) + c0"""
    assert op.q_output is not None  # the caller asked
    terms: dict[str, str] = dict(zip(QUANTIZED_INPUTS, op.axes.inputs, strict=True))
    values: dict[str, Array] = dict(zip(QUANTIZED_INPUTS, inputs, strict=True))
    output = op.axes.outputs[0]

    def along_output(name: str) -> Array:
        return _aligned(values[name].astype(np.float64), terms[name], output)

    def centred(name: str) -> Array:
        zero = _aligned(values[f"{name}0"].astype(np.int64), terms[f"{name}0"], terms[name])
        return (values[name].astype(np.int64) - zero).astype(np.float64)

    pair = AxesMapping((terms["a"], terms["b"]), op.axes.outputs)
    total = contract(pair, [centred("a"), centred("b")]) + along_output("bias")
    scale = along_output("a_scale") * along_output("b_scale") / along_output("c_scale")
    return round_into(total * scale, along_output("c0"), op.q_output.storage)


def _aligned(x: Array, term: str, target: str) -> Array:
    """``x``, whose axes are ``term``, with an axis for every name in ``target``: of size 1 where ``x`` has none."""
    order = sorted(range(len(term)), key=lambda axis: target.index(term[axis]))
    return x.transpose(order).reshape([x.shape[term.index(name)] if name in term else 1 for name in target])


def contract(axes: AxesMapping, arrays: Sequence[Array]) -> Array:
    """The einsum of arrays of one type, summed in that type."""
    named = [_diagonal(x, term) for x, term in zip(arrays, axes.inputs, strict=True)]
    (output,) = axes.outputs
    array, term = named[0]
    for index, right in enumerate(named[1:], 1):
        kept = set(output).union(*(later for _, later in named[index + 1 :]))
        array, term = _pair((array, term), right, kept)
    array, term = _sum_out((array, term), set(output))
    return array.transpose([term.index(name) for name in output])


_Named = tuple[Array, str]
"""An array, and the name of each of its axes."""


def _diagonal(x: Array, term: str) -> _Named:
    unique = "".join(dict.fromkeys(term))
    if unique == term:
        return x, term
    return np.einsum(x, [unique.index(name) for name in term], list(range(len(unique)))), unique


def _pair(left: _Named, right: _Named, kept: set[str]) -> _Named:
    """The product of two arrays, summed over the axes that are not ``kept``, as one batched matrix product."""
    left, right = _unstretch(left, right), _unstretch(right, left)
    (a, left_term), (b, right_term) = _sum_out(left, kept | set(right[1])), _sum_out(right, kept | set(left[1]))
    shared = [name for name in left_term if name in right_term]
    batch = [name for name in shared if name in kept]
    inner = [name for name in shared if name not in kept]
    rows = [name for name in left_term if name not in shared]
    columns = [name for name in right_term if name not in shared]
    a = a.transpose([left_term.index(name) for name in [*batch, *rows, *inner]])
    b = b.transpose([right_term.index(name) for name in [*batch, *inner, *columns]])
    lead, split, tail = a.shape[: len(batch)], a.shape[len(batch) : len(batch) + len(rows)], b.shape[len(shared) :]
    if inner:
        depth = a.shape[len(batch) + len(rows) :]
        a = a.reshape((*lead, _size(split), _size(depth)))
        found = np.matmul(a, b.reshape((*lead, _size(depth), _size(tail))))
    else:
        found = a.reshape((*lead, _size(split), 1)) * b.reshape((*lead, 1, _size(tail)))
    return found.reshape((*lead, *split, *tail)), "".join([*batch, *rows, *columns])


def _unstretch(x: _Named, other: _Named) -> _Named:
    """``x`` without the axes of size 1 that ``other`` has at another size."""
    array, term = x
    sizes = dict(zip(other[1], other[0].shape, strict=True))
    drop = [axis for axis, name in enumerate(term) if array.shape[axis] == 1 and sizes.get(name, 1) != 1]
    return array.squeeze(tuple(drop)), "".join(name for axis, name in enumerate(term) if axis not in drop)


def _sum_out(x: _Named, kept: set[str]) -> _Named:
    array, term = x
    drop = tuple(axis for axis, name in enumerate(term) if name not in kept)
    if not drop:
        return x
    return np.asarray(array.sum(axis=drop, dtype=array.dtype)), "".join(name for name in term if name in kept)


def _size(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


@ROWS.row(MEMORY, EinSum)
def memory(op: EinSum, made: int, *inputs: Array) -> int:
    """The factors in the type in which they are multiplied, and the products of pairs on the way to the output."""
    kind = computed_in(op, inputs)
    count = len(inputs) if op.q_output is None else 2
    factors, terms = inputs[:count], op.axes.inputs[:count]
    sizes = _sizes(terms, factors)
    (output,) = op.axes.outputs
    copied = sum(one.size for one in factors if one.dtype != kind)
    most = max(_steps(terms, output, sizes), default=0) * kind.itemsize
    total = prod(sizes.get(name, 1) for name in output)
    if op.q_output is not None:
        return 2 * kind.itemsize * copied + max(most, total * _REQUANTIZED) + made
    rounded = made + (8 * total if op.acc.is_integer() else 0) if copied else 0
    return kind.itemsize * copied + max(most, made) + rounded


def _sizes(terms: Sequence[str], arrays: Sequence[Array]) -> dict[str, int]:
    """The size of each axis, which is that of any input that is not stretched along it."""
    found: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        for name, size in zip(term, array.shape, strict=True):
            found[name] = size if found.get(name, 1) == 1 else found[name]
    return found


def _steps(terms: Sequence[str], output: str, sizes: Mapping[str, int]) -> Iterator[int]:
    """For each pair of factors, elements of what is there: the last product, both in another order, and the new one."""

    def elements(names: str) -> int:
        return prod(sizes[name] for name in names)

    left, before = "".join(dict.fromkeys(terms[0])), 0
    for index, term in enumerate(terms[1:], 1):
        right = "".join(dict.fromkeys(term))
        kept = set(output).union(*terms[index + 1 :])
        a, b = (_without(one, kept | set(other)) for one, other in ((left, right), (right, left)))
        shared = [name for name in a if name in b]
        batch, inner = ("".join(name for name in shared if (name in kept) is wanted) for wanted in (True, False))
        rows, columns = ("".join(name for name in one if name not in shared) for one in (a, b))
        moved = sum(
            elements(one)
            for one, order, whole in ((a, batch + rows + inner, left), (b, batch + inner + columns, right))
            if one != whole or (one != order and len(one) > 2)
        )
        left = batch + rows + columns
        yield before + moved + elements(left)
        before = elements(left)
    yield before + elements(_without(left, set(output)))


def _without(term: str, kept: set[str]) -> str:
    return "".join(name for name in term if name in kept)


@ROWS.row(COST, EinSum)
def cost(op: EinSum, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One multiply-add per combination of indices, for each pair from left to right; additions for a single input."""
    sizes = op.sizes(inputs)
    terms = op.axes.inputs[:2] if op.q_output is not None else op.axes.inputs
    kind = f"FMA({op.acc.name})"
    if len(terms) == 1:
        only = op.axes.with_output(0, "").names
        return {kind: _volume(only, sizes)} if set(only) - set(op.axes.outputs[0]) else {}
    total: Dim = 0
    left = terms[0]
    for index, right in enumerate(terms[1:], 1):
        kept = set(op.axes.outputs[0]).union(*terms[index + 1 :])
        total = total + _volume(left + right, sizes)
        left = "".join(name for name in dict.fromkeys(left + right) if name in kept)
    return {kind: total}


def _volume(names: str, sizes: Mapping[str, Dim]) -> Dim:
    return product(sizes[name] for name in dict.fromkeys(names))


@ROWS.row(AXES, EinSum)
def axes(op: EinSum, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The operator's own mapping; a stretched axis is an axis of its own in that input."""
    sizes = op.sizes(inputs)
    mapping = op.axes
    for slot, fact in enumerate(inputs):
        for axis, size in enumerate(fact.shape):
            term = mapping.inputs[slot]
            if is_one(size) and not is_one(sizes.get(term[axis], 1)):
                mapping = mapping.with_input(slot, term[:axis] + mapping.free_name() + term[axis + 1 :])
    return mapping


def accumulator(kind: DType) -> DatumType:
    """The type in which products of ``kind`` are summed by default: f32 for narrow floats, i32 for narrow integers."""
    kind = kind.storage
    if kind.is_float():
        return DatumType.from_numpy(wide(kind.numpy))
    if kind.is_integer() and kind.itemsize < 4:
        return DatumType.I32
    return kind


def matmul_axes(a: int, b: int) -> AxesMapping:
    """The mapping of NumPy's ``matmul`` for operands of these ranks. Raises FactError for rank 0."""
    if not a or not b:
        raise FactError(f"a matrix product wants operands of rank 1 or more, found ranks {a} and {b}")
    names = iter(letters())
    batch = "".join(next(names) for _ in range(max(a, b, 2) - 2))
    m, k, n = (next(names) for _ in range(3))
    rows, columns = (m if a > 1 else ""), (n if b > 1 else "")
    left = batch[len(batch) - max(a - 2, 0) :] + rows + k
    right = batch[len(batch) - max(b - 2, 0) :] + k + columns
    return AxesMapping((left, right), (batch + rows + columns,))


def wire_matmul(model: TypedModel, name: str, a: OutletId, b: OutletId) -> OutletId:
    """NumPy's ``matmul`` of two outlets of one type, summed in the type that `accumulator` gives."""
    facts = model.outlet_fact(a), model.outlet_fact(b)
    op = EinSum(matmul_axes(facts[0].rank, facts[1].rank), accumulator(facts[0].datum_type))
    inner = facts[0].shape[-1], facts[1].shape[-2 if facts[1].rank > 1 else 0]
    with model.noting_conditions(f"node {name!r} (MatMul)"):
        if not may_equal(*inner):
            raise FactError(f"a matrix product wants inner sizes that are equal, found {facts[0]} and {facts[1]}")
    (result,) = model.wire_node(name, op, [a, b])
    return result
