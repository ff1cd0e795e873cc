"""One node that is being written: what it reads, by name, and the means to say what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tract_core.data import Constant, DatumType, DType
from tract_core.data.containers import ItemFact
from tract_core.dims import Dim
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_onnx.writing.elements import code_of, type_of


class GraphBeingWritten(Protocol):
    """The graph that a node is written to, as far as what spells the node may ask: see `writing.graph`."""

    @property
    def opset(self) -> int:
        """The version of the operators that may be used."""
        ...

    @property
    def held(self) -> dict[str, Constant]:
        """The tensors that are there, by name."""
        ...

    @property
    def model(self) -> TypedModel:
        """The model that the node is of."""
        ...

    def name_of(self, outlet: OutletId) -> str:
        """The name of a tensor in front of the node."""
        ...

    def fact(self, node: TypedNode, slot: int) -> TypedFact:
        """What is known of a tensor that the node reads."""
        ...

    def tensor(self, node: TypedNode, slot: int) -> str:
        """The name of a tensor that the node reads."""
        ...

    def hold(self, value: Constant) -> str:
        """A tensor that is there. Returns its name."""
        ...

    def put(self, op_type: str, inputs: Sequence[str], outputs: int, attributes: dict[str, Any]) -> tuple[str, ...]:
        """A node. Returns the names of its results."""
        ...

    def sizes(self, dims: Sequence[Dim]) -> str:
        """Sizes as one tensor. Raises Unwritable."""
        ...

    def inner(self, model: TypedModel) -> Any:
        """The writer of a body."""
        ...

    @property
    def is_stream(self) -> bool:
        """Whether the model goes on from run to run."""
        ...

    def state(self, wanted: str, fact: TypedFact) -> str:
        """An input for what is kept between runs. Raises Unwritable in a body."""
        ...

    def keep(self, state: str, name: str, fact: TypedFact | None = None) -> None:
        """What the next run is given for a state."""
        ...

    def position(self, count: Dim) -> str:
        """How many there were before this run, of which each run has ``count``."""
        ...


class Spelling:
    """A node, and the graph that it is written to."""

    def __init__(self, writer: GraphBeingWritten, node: TypedNode) -> None:
        self._writer = writer
        self.node = node

    @property
    def opset(self) -> int:
        """The version of the operators that may be used."""
        return self._writer.opset

    @property
    def model(self) -> TypedModel:
        """The model that it is of, to look at what is in front of it."""
        return self._writer.model

    def name_of(self, outlet: OutletId) -> str:
        """The name of a tensor in front of it."""
        return self._writer.name_of(outlet)

    @property
    def inputs(self) -> list[str]:
        """The names of what it reads."""
        return [self.input(slot) for slot in range(len(self.node.inputs))]

    def input(self, slot: int = 0) -> str:
        """The name of a tensor that it reads."""
        return self._writer.tensor(self.node, slot)

    def fact(self, slot: int = 0) -> TypedFact:
        """What is known of a tensor that it reads."""
        return self._writer.fact(self.node, slot)

    def result(self, slot: int = 0) -> TypedFact:
        """What is known of a result."""
        return self.node.outputs[slot].fact

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node of ONNX with one result, whose name is returned. An empty name stands for an input that is missing."""
        (name,) = self._writer.put(op_type, inputs, 1, attributes)
        return name

    def value(self, name: str) -> Constant | None:
        """A tensor that is there."""
        return self._writer.held.get(name)

    def several(self, op_type: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """A node of ONNX with so many results."""
        return self._writer.put(op_type, inputs, count, attributes)

    def constant(self, array: Any, kind: DType | None = None) -> str:
        """A tensor that is there. ``kind``: of a Python number, its type."""
        made = np.asarray(array) if kind is None else np.asarray(array, kind.storage.numpy)
        return self._writer.hold(Constant(made))

    def held(self, value: Constant) -> str:
        """A constant that the operator holds."""
        return self._writer.hold(value)

    def body(self, model: TypedModel, ports: Sequence[Any], ends: Sequence[int | None] | None = None) -> Any:
        """A graph for an attribute: see `writing.graph`, which has the words for where its inputs come from."""
        return self._writer.inner(model).write_body(ports, ends or [None] * len(model.outputs))

    @property
    def is_stream(self) -> bool:
        """Whether the model goes on from run to run, as one in pulses does."""
        return self._writer.is_stream

    def state(self, label: str, fact: TypedFact) -> str:
        """An input for what is kept between runs, which is 0 at first. Raises Unwritable in a body."""
        return self._writer.state(f"{self.node.name}.{label}", fact)

    def keep(self, state: str, name: str, fact: TypedFact | None = None) -> None:
        """A tensor is what the next run is given for a state: an output of that name, with ``_out`` behind it.

        ``fact``: what is known of it, where that is not what is known of the state.
        """
        self._writer.keep(state, name, fact)

    def position(self, count: Dim) -> str:
        """The position in a stream at which this run begins, i64 of shape [1]. ``count``: of positions in each run."""
        return self._writer.position(count)

    def empty_sequence(self, kind: DType) -> str:
        """A sequence without elements."""
        return self.add("SequenceEmpty", dtype=code_of(kind))

    def no_value(self, item: ItemFact) -> str:
        """An optional that holds nothing."""
        return self.add("Optional", type=type_of(item.datum_type, item.shape))

    def ints(self, values: Sequence[int]) -> str:
        """Numbers, as i64 of shape [count]."""
        return self.constant(np.array(values, np.int64))

    def sizes(self, dims: Sequence[Dim]) -> str:
        """Sizes, as i64 of shape [count]. Raises Unwritable for a symbol that no tensor tells."""
        return self._writer.sizes(dims)

    def cast(self, name: str, kind: DType) -> str:
        """A tensor in another type."""
        return self.add("Cast", name, to=code_of(kind))

    def as_i64(self, slot: int) -> str:
        """A tensor of integers that it reads, as i64, which is what sizes are already."""
        is_there = self.fact(slot).datum_type in (DatumType.I64, DatumType.TDIM)
        return self.input(slot) if is_there else self.cast(self.input(slot), DatumType.I64)

    def where(self, condition: str, yes: str, no: str, kind: DType) -> str:
        """A choice, element by element; of booleans in words of logic, as ONNX Runtime has no kernel for them."""
        if not kind.is_bool():
            return self.add("Where", condition, yes, no)
        taken = self.add("And", condition, yes)
        return self.add("Or", taken, self.add("And", self.add("Not", condition), no))

    def transposed(self, name: str, order: Sequence[int]) -> str:
        """A tensor with its axes in another order."""
        order = list(order)
        if order == sorted(order):
            return name
        known = self.value(name)
        return self.constant(known.array.transpose(order)) if known else self.add("Transpose", name, perm=order)

    def reshaped(self, name: str, shape: Sequence[Dim]) -> str:
        """A tensor in another shape."""
        known = self.value(name)
        if known is not None and all(isinstance(size, int) for size in shape):
            return self.constant(known.array.reshape([size for size in shape if isinstance(size, int)]))
        return self.add("Reshape", name, self.sizes(shape), **({"allowzero": 1} if 0 in shape else {}))

    def with_axes(self, name: str, axes: Sequence[int]) -> str:
        """A tensor with new axes of size 1, at these places of the result."""
        known = self.value(name)
        if known is not None and axes:
            return self.constant(np.expand_dims(known.array, tuple(axes)))
        return self.add("Unsqueeze", name, self.ints(axes)) if axes else name

    def without_axes(self, name: str, axes: Sequence[int]) -> str:
        """A tensor without axes of size 1."""
        known = self.value(name)
        if known is not None and axes:
            return self.constant(known.array.squeeze(tuple(axes)))
        return self.add("Squeeze", name, self.ints(axes)) if axes else name
