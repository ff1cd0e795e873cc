"""One invocation of an operator: its arguments, by the names in its declaration, and the means to add nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import numpy as np

from tract_core.data import Constant, DatumType, DType, QuantizedType, SymbolicArray
from tract_core.data.blocks import Blocks
from tract_core.dims import Dim
from tract_core.errors import CorruptModel, FactError
from tract_core.frontend.node import (
    ELEMENT_TYPE,
    FLAG,
    INTEGER,
    INTEGERS,
    NUMBER,
    NUMBERS,
    SIZE,
    SIZES,
    TEXT,
    TEXTS,
    AttributeKind,
    Attributes,
    Inputs,
)
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.ops.wiring import wire_cast, wire_reshape, wire_squeeze, wire_unsqueeze
from tract_core.plugins.keys import Array
from tract_nnef.reading import values
from tract_nnef.reading.quantized import wire_real
from tract_nnef.reading.values import Misfit, Value, shown
from tract_nnef.syntax import ast

T = TypeVar("T")
Params = ParamSpec("Params")
Found = TypeVar("Found")


class Tensors(Protocol):
    """What lies beside a document: the values of variables, and whatever else its operators name."""

    def tensor(self, label: str) -> Array:
        """The tensor of a label, read-only. Raises ModelError where there is none, or where it cannot be read."""
        ...

    def stored(self, label: str) -> Array | Blocks:
        """The same, in blocks where it is kept so."""
        ...

    def submodel(self, label: str) -> TypedModel:
        """The model inside the archive that has a label. Raises ModelError."""
        ...

    def resource(self, label: str, key: str) -> Value:
        """What the JSON file of a label has at a path such as ``$.a.b[0]``. Raises ModelError."""
        ...


class Fragments(Protocol):
    """The operators that a document may use, of which those that read it ask for its own."""

    def fragment(self, name: str) -> ast.Fragment | None:
        """A fragment of the document."""
        ...


class DocumentBeingRead(Protocol):
    """The document that a call is in, as far as what wires the call may ask: see `tract_nnef.documents.reader`."""

    @property
    def model(self) -> TypedModel:
        """The model that is made of it."""
        ...

    @property
    def operators(self) -> Fragments:
        """The operators that it may use."""
        ...

    @property
    def tensors(self) -> Tensors:
        """What lies beside it."""
        ...

    def tensor(self, label: str) -> Array:
        """The tensor of a label. Raises ModelError."""
        ...

    def quantized(self, name: str) -> QuantizedType | None:
        """What ``graph.quant`` says of a tensor."""
        ...

    def body(self, name: str, lines: Sequence[str], properties: Iterable[tuple[str, str]]) -> TypedModel:
        """The body that is written as a fragment of that name. Raises ModelError."""
        ...

    def fragment(self, name: str, facts: Sequence[TypedFact], lines: Sequence[str] = ()) -> TypedModel:
        """A fragment as a model, whose inputs have these ``facts``. Raises ModelError."""
        ...


class Call(Attributes, Inputs[str]):
    """An invocation that is being wired.

    ``name``: of the operator. ``item``: the type in its angle brackets, or the one that it has without. ``node``: what
    the node that gives the result will be called. ``targets``: the names that the results are assigned to, as the file
    has them. ``reader``: the document that it is in. ``wire``: what adds nodes of it.
    """

    def __init__(
        self,
        reader: DocumentBeingRead,
        name: str,
        node: str,
        *,
        targets: Sequence[str],
        arguments: Mapping[str, Value],
        item: str = "",
    ) -> None:
        self.reader = reader
        self.model: TypedModel = reader.model
        self.wire = NodeWiring(reader.model, node)
        self.name = name
        self.item = item
        self.node = node
        self.targets = targets
        self._arguments = arguments

    word = "argument"

    # --- arguments ---

    def value(self, name: str) -> Value:
        """An argument as it is."""
        return self._arguments[name]

    def written(self, name: str) -> Value:
        """An argument with constants written out, and what an array of one holds."""
        return values.single(self._about(self.about(name), values.written, self._arguments[name], self.model))

    @property
    def operator(self) -> str:
        """Its name."""
        return self.name

    @property
    def names(self) -> Collection[str]:
        """Those of all arguments, as each has a value."""
        return self._arguments

    def has(self, name: str) -> bool:
        """Whether an argument that may be left out is there: declarations have ``= false`` for what is optional."""
        return self._arguments[name] is not False

    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        """An argument as one of a kind."""
        if not self.has(name) and kind is not FLAG:
            return None
        return self._about(self.about(name), _READ[kind], self._arguments[name], self.model)

    @property
    def wiring(self) -> NodeWiring:
        """What adds the operator's nodes."""
        return self.wire

    def input(self, slot: str, kind: DType | None = None) -> OutletId:
        """A tensor; what is written as a value is a constant of that ``kind``, else as `values.literal` says."""
        return self._tensor(slot, self._arguments[slot], kind)

    def optional_input(self, slot: str, kind: DType | None = None) -> OutletId | None:
        """A tensor that may be left out."""
        return self.input(slot, kind) if self.has(slot) else None

    def tensor(self, slot: str, kind: DType | None = None) -> Wired:
        """A tensor, for arithmetic."""
        return Wired(self.wire, self.input(slot, kind))

    def inputs(self, name: str) -> list[OutletId]:
        """An array of tensors; a single one is one too."""
        given = self._arguments[name]
        return [self._tensor(name, one, None) for one in (given if values.is_array(given) else [given])]

    def aligned(self, *names: str) -> list[OutletId]:
        """Tensors of one rank and one element type.

        Axes of size 1 are added behind those of a lower rank. What is written as a value, and constants, take the type
        of the tensors that are computed. Quantised tensors stay so if all are of one type, else they become real.
        """
        return self.together([self._arguments[name] for name in names])

    def together(self, given: Sequence[Value]) -> list[OutletId]:
        """The same of values."""
        kind = self._common_type(given)
        tensors = [self._as_type(self._tensor("an operand", value, kind), kind) for value in given]
        return self.ranked(tensors)

    def ranked(self, tensors: Sequence[OutletId]) -> list[OutletId]:
        """All of them at the highest rank among them."""
        ranks = [self.rank(tensor) for tensor in tensors]
        return [self.with_rank(tensor, max(ranks)) for tensor in tensors] if len(set(ranks)) > 1 else list(tensors)

    def _common_type(self, given: Sequence[Value]) -> DType | None:
        """The element type that operands are brought to; ``None`` for the natural one of what is written."""
        facts = [self.fact(value) for value in given if isinstance(value, OutletId)]
        computed = list(dict.fromkeys([fact.datum_type for fact in facts if fact.value is None]))
        if computed:
            mixed = len(computed) > 1 or len(facts) < len(given)
            return DatumType.F32 if mixed and any(kind.is_quantized() for kind in computed) else computed[0]
        known = [fact.datum_type for fact in facts]
        if not known and any(isinstance(one, float) for one in given):
            return DatumType.F32
        return next((kind for kind in known if kind.is_float()), next(iter(known), None))

    def _as_type(self, x: OutletId, kind: DType | None) -> OutletId:
        """A constant in that type, a quantised tensor as real numbers where it is another; else the tensor itself."""
        fact = self.fact(x)
        if kind is None or fact.datum_type == kind:
            return x
        if fact.datum_type.is_quantized():
            return self.real(x)
        if fact.value is None or not kind.is_number():
            return x
        if fact.constant is not None and kind.is_integer() and (fact.constant != np.trunc(fact.constant)).any():
            raise CorruptModel(f"{self.name}: a constant with fractions meets a tensor of {kind.short}")
        return self.op(Cast(kind), x)

    def real(self, x: OutletId) -> OutletId:
        """The real numbers that a quantised tensor stands for, in f32; any other tensor as it is."""
        return wire_real(self.model, self.node, x)

    def with_rank(self, x: OutletId, rank: int) -> OutletId:
        """A tensor with axes of size 1 added behind its own. A constant stays one."""
        shape = self.shape(x)
        if len(shape) == rank:
            return x
        array = self.model.constant(x)
        if array is not None:
            return self.constant_array(array.reshape((*array.shape, *[1] * (rank - len(shape)))))
        return wire_unsqueeze(self.model, self.unique("rank"), x, range(len(shape), rank))

    def whole(self, name: str) -> OutletId:
        """A tensor of integers; what is of another type is converted to i64, as the tract engines do."""
        x = self.input(name)
        return x if self.dtype(x).is_integer() else self.op(Cast(DatumType.I64), x)

    def without_axes(self, x: OutletId) -> OutletId:
        """A tensor of one element as one of rank 0. A constant stays one."""
        array = self.model.constant(x)
        if not self.rank(x):
            return x
        if array is not None and array.size == 1:
            return self.constant_array(array.reshape(()))
        return wire_squeeze(self.model, f"{self.node}.rank", x, range(self.rank(x)))

    def array(self, name: str) -> Array:
        """The value of a tensor. Raises CorruptModel for one that is computed."""
        x = self.input(name)
        found = self.model.constant(x)
        if found is None:
            raise CorruptModel(
                f"{self.name}: a constant is wanted for {name!r}, found {self.fact(x)}, which is computed"
            )
        return found

    def announced(self, count: int) -> tuple[Dim, ...] | None:
        """What ``announced`` says of sizes that only a run can tell; ``None`` where the file is of another engine.

        The engines name such sizes anew whenever they read a file. Here they keep their names.
        """
        if not self.has("announced"):
            return None
        found = self.dims("announced")
        if len(found) != count:
            raise CorruptModel(f"{self.name}: announced has {len(found)} sizes, wanted {count}")
        return found

    def computed(self, name: str, kind: DatumType = DatumType.I64) -> OutletId | None:
        """An array of numbers as a tensor, where only a run can tell all of them; ``None`` where all are known."""
        given = self._about(self.about(name), values.written, self._arguments[name], self.model)
        if isinstance(given, OutletId):
            x = wire_cast(self.model, self.unique(name), given, kind)
            return x if self.rank(x) else self._as_list(x)
        if not values.is_array(given) or not any(isinstance(one, OutletId) for one in given):
            return None
        parts = [self._as_list(self._tensor(name, one, kind)) for one in given]
        parts = [wire_cast(self.model, self.unique(name), part, kind) for part in parts]
        return parts[0] if len(parts) == 1 else self.op(TypedConcat(0), *parts)

    def _as_list(self, x: OutletId) -> OutletId:
        """A tensor of one element as a list of one."""
        return wire_reshape(self.model, self.unique("element"), x, (1,))

    def pairs(self, name: str) -> tuple[tuple[Dim, Dim], ...]:
        """An array of pairs of sizes."""
        return self._about(self.about(name), values.pairs, self._arguments[name], self.model)

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """The number of an axis; negative ones count from the end. Raises CorruptModel for one outside of the rank."""
        return self.check_axis(self.integer(name, default), rank)

    def axes(self, name: str, rank: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Numbers of axes. Raises CorruptModel for one outside of the rank, and for one that is there twice."""
        found = tuple(self.check_axis(axis, rank) for axis in self.integers(name, default))
        if len(set(found)) < len(found):
            raise CorruptModel(f"{self.about(name)} {list(found)} has an axis twice")
        return found

    def check_axis(self, axis: int, rank: int) -> int:
        """The axis, counted from the front. Raises CorruptModel outside of the rank."""
        if not -rank <= axis < rank:
            raise CorruptModel(f"{self.name}: axis {axis} is outside of a tensor of {rank} axes")
        return axis % rank

    # --- what is known of tensors ---

    def fact(self, x: OutletId) -> TypedFact:
        """Type, shape, and value where known."""
        return self.model.outlet_fact(x)

    def shape(self, x: OutletId) -> ShapeFact:
        """The sizes, outermost first."""
        return self.fact(x).shape

    def rank(self, x: OutletId) -> int:
        """The number of axes."""
        return self.fact(x).rank

    def dtype(self, x: OutletId) -> DType:
        """The element type."""
        return self.fact(x).datum_type

    def quantized(self, target: int = 0) -> QuantizedType | None:
        """What ``graph.quant`` says of a result."""
        return self.reader.quantized(self.targets[target]) if target < len(self.targets) else None

    # --- nodes ---

    def op(self, op: TypedOp, *inputs: OutletId) -> OutletId:
        """Add an operator of one output."""
        return self.ops(op, *inputs)[0]

    def ops(self, op: TypedOp, *inputs: OutletId) -> tuple[OutletId, ...]:
        """Add an operator."""
        return self.wire.ops(op, *inputs)

    def unique(self, what: str) -> str:
        """A name for a node that is wired on the way."""
        return self.model.unique_name(f"{self.node}.{what}")

    def source(self, fact: TypedFact) -> OutletId:
        """Add an input of the model."""
        return self.model.add_source(self.node, fact)

    def constant(self, value: Value, kind: DType | None = None) -> OutletId:
        """Add a constant, as `values.literal` makes it."""
        return self._tensor("a constant", value, kind)

    def constant_array(self, array: Array | Constant) -> OutletId:
        """Add a constant."""
        return self.model.add_const(f"{self.node}.const", array)

    def constant_sizes(self, sizes: Sequence[Dim]) -> OutletId:
        """Add a list of sizes, which may have symbols in them."""
        return self.model.add_const(f"{self.node}.sizes", tuple(sizes))

    def _tensor(self, name: str, value: Value, kind: DType | None) -> OutletId:
        if isinstance(value, OutletId):
            return value
        about = self.about(name) if name in self._arguments else f"{name} of {self.name}"
        held = self._about(about, values.literal, value, kind)
        if held is None:
            raise CorruptModel(f"{about} is {shown(value)}, wanted a tensor")
        const = self.model.add_const(f"{self.node}.{name}", held)
        if isinstance(held, SymbolicArray) and kind not in (None, DatumType.I64, DatumType.TDIM):
            return self.op(Cast(kind), const)
        return const

    def _about(
        self,
        about: str,
        read: Callable[Concatenate[Value, Params], Found],
        value: Value,
        *more: Params.args,
        **named: Params.kwargs,
    ) -> Found:
        """What ``read`` makes of a value; errors say what it is ``about``."""
        try:
            return read(value, *more, **named)
        except Misfit as error:
            verb = "has" if values.is_array(value) else "is"
            raise CorruptModel(f"{about} {verb} {error.found}, wanted {error.wanted}") from None
        except (CorruptModel, FactError) as error:
            raise CorruptModel(f"{about}: {error.problem}", where=error.where, hint=error.hint) from None


_READ: Final[Mapping[AttributeKind[Any], Callable[[Value, TypedModel], Any]]] = {
    INTEGER: values.integer,
    INTEGERS: values.integers,
    NUMBER: values.number,
    NUMBERS: values.numbers,
    TEXT: values.text,
    TEXTS: values.texts,
    FLAG: values.flag,
    SIZE: values.size,
    SIZES: values.sizes,
    ELEMENT_TYPE: values.element_type,
}
"""How arguments of each kind are read."""
