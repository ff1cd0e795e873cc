"""What a file says about types and shapes, as partial facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

import onnx

from tract_core.analysis.wire import LONGEST_PREFIX
from tract_core.data.stored import check_rank, checked_shape
from tract_core.dims import Dim, SymbolScope, parse_dim, symbol, symbols_of
from tract_core.errors import CorruptModel, DimError, TractError
from tract_core.limits import limits_now
from tract_core.model.fact import InferenceFact
from tract_core.texts import printable
from tract_onnx.containers import container_type
from tract_onnx.tensors import element_type

UNKNOWN_SIZES = frozenset({"", "?"})
"""Names that files give to sizes which nobody knows."""


class FactReader:
    """Reads the declarations of one graph. The sizes that its inputs name become symbols of ``scope``.

    ``own_symbols``: names that several sizes of inputs bear say nothing; each of these sizes has a symbol of its own.
    """

    def __init__(self, scope: SymbolScope, inputs: Iterable[onnx.ValueInfoProto], *, own_symbols: bool = False) -> None:
        self._scope = scope
        dims = [dim for info in inputs for dim in info.type.tensor_type.shape.dim if dim.HasField("dim_param")]
        self._names = {printable(dim.dim_param) for dim in dims} - UNKNOWN_SIZES
        self._shared = frozenset(self._named_twice(dims) if own_symbols else ())

    def input_fact(self, info: onnx.ValueInfoProto) -> InferenceFact:
        """The fact of an input. Raises ModelError with the input's name."""
        try:
            fact = self._fact(info)
        except TractError as error:
            raise error.at(f"input {info.name[:200]!r}") from None
        if fact.shape is None:
            return fact
        shape = tuple(self._own(f"{info.name[-LONGEST_PREFIX:]}_{axis}", dim) for axis, dim in enumerate(fact.shape))
        for name in sorted(frozenset[str]().union(*(symbols_of(dim) for dim in shape if dim is not None))):
            self._scope.add(name)
        return InferenceFact(fact.datum_type, shape)

    def _own(self, prefix: str, dim: Dim | None) -> Dim | None:
        """``dim``, or where it has a name that others have too, a symbol that no other size has."""
        if dim is None or not symbols_of(dim) & self._shared:
            return dim
        while prefix in self._names:
            prefix += "_"
        return self._scope.new_symbol(prefix)

    def _named_twice(self, dims: Iterable[onnx.TensorShapeProto.Dimension]) -> Iterator[str]:
        """The symbols that occur in more than one of ``dims``; what cannot be read is refused with its input."""
        counts = Counter[str]()
        for dim in dims:
            with suppress(TractError):
                size = self._dim(dim)
                counts.update(symbols_of(0 if size is None else size))
        return (name for name, count in counts.items() if count > 1)

    def inner_fact(self, info: onnx.ValueInfoProto) -> InferenceFact:
        """The fact of a tensor inside the graph, or of an output: only sizes that are numbers, or that an input names.

        Exporters invent names for the others, which say nothing about how they depend on the inputs.
        """
        if not info.type.HasField("tensor_type"):
            return InferenceFact()
        try:
            fact = self._fact(info)
        except TractError as error:
            raise error.at(f"tensor {info.name[:200]!r}") from None
        if fact.shape is None:
            return fact
        known = self._scope.names
        shape = tuple(None if dim is None or not symbols_of(dim) <= set(known) else dim for dim in fact.shape)
        return InferenceFact(fact.datum_type, shape)

    def _fact(self, info: onnx.ValueInfoProto) -> InferenceFact:
        kind = info.type.WhichOneof("value")
        if kind is None:
            return InferenceFact()
        if kind != "tensor_type":
            return InferenceFact(container_type(info.type), ())
        tensor = info.type.tensor_type
        datum_type = element_type(tensor.elem_type) if tensor.elem_type else None
        if not tensor.HasField("shape"):
            return InferenceFact(datum_type, None)
        check_rank(len(tensor.shape.dim), limits_now())
        return InferenceFact(datum_type, tuple(self._dim(dim) for dim in tensor.shape.dim))

    def _dim(self, dim: onnx.TensorShapeProto.Dimension) -> Dim | None:
        if dim.HasField("dim_value"):
            if dim.dim_value < -1:
                raise CorruptModel(f"a size is {dim.dim_value}")
            return None if dim.dim_value == -1 else dim.dim_value
        try:
            return None if dim.dim_param in UNKNOWN_SIZES else self._named(printable(dim.dim_param))
        except DimError as error:
            raise CorruptModel(error.problem, hint="rename the size when exporting") from None

    def _named(self, name: str) -> Dim:
        """The size of that name: an expression, as ``past + new``, where the inputs have sizes ``past`` and ``new``.

        Any text is a name. What steers a terminal in it was escaped, so that the symbol can be shown wherever it goes.
        """
        if name.isidentifier():
            return symbol(name)
        try:
            parsed = parse_dim(name)
        except DimError:
            return symbol(name)
        if isinstance(parsed, int):
            return parsed if parsed >= 0 else symbol(name)
        return parsed if symbols_of(parsed) <= self._names else symbol(name)


def announced_fact(tensor: onnx.TensorProto | onnx.SparseTensorProto) -> InferenceFact:
    """What a constant whose elements cannot be read says about its type and shape; nothing, when that is wrong too."""
    elements = tensor.values if isinstance(tensor, onnx.SparseTensorProto) else tensor
    try:
        return InferenceFact(element_type(elements.data_type), checked_shape(tensor.dims))
    except TractError:
        return InferenceFact()
