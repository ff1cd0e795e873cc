"""A model becomes a graph of ONNX, node by node, each after what it reads."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from tract_core.data import Constant, DatumType, SymbolicArray
from tract_core.dims import Dim
from tract_core.errors import Unsupported, Unwritable, together
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_onnx.writing.elements import code_of, value_info
from tract_onnx.writing.joining import Joining, needed, read_by
from tract_onnx.writing.quantized import Quantized
from tract_onnx.writing.sizes import Sizes
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

SHARED: Final = 64
"""Bytes of a constant up to which equal ones are held once."""

_SAME_SIZE: Final = ("Cast", "Reshape", "Squeeze", "Unsqueeze")
"""Operators behind which a size is the same."""

_STREAM: Final = frozenset({"pulse.delay", "states.kept"})
"""The properties that models have which go on from run to run: one in pulses, and one whose format says so."""

_HINT: Final = "write it as an archive (.nnef.tar), which has words for every operator"


class BodyInput:
    """Where an input of a body comes from: a tensor around it, by name; or the operator, as an input of the graph.

    ``axis``: a slice comes without that axis, which has size 1 in the body. ``fact``: of what comes, where it is not
    the one of the body's input, which it is brought to.
    """

    def __init__(self, around: str | None = None, *, axis: int | None = None, fact: TypedFact | None = None) -> None:
        self.around, self.axis, self.fact = around, axis, fact

    def bound(self, writer: GraphWriter, outlet: OutletId) -> list[onnx.ValueInfoProto]:
        """Bind the input of a body. Returns the inputs of the graph that it takes."""
        if self.around is not None:
            writer.bind(outlet, self.around)
            return []
        wanted = writer.model.outlet_fact(outlet)
        fact = self.fact or (wanted if self.axis is None else without_axis(wanted, self.axis))
        name = given = writer.free(writer.model.outlet_name(outlet))
        if self.axis is not None:
            name = writer.add("Unsqueeze", name, writer.constant(np.array([self.axis])))
        elif fact.rank != wanted.rank:
            name = writer.add("Reshape", name, writer.constant(np.array(wanted.shape, np.int64)))
        if fact.datum_type != wanted.datum_type:
            name = writer.add("Cast", name, to=code_of(wanted.datum_type))
        writer.bind(outlet, name)
        return [value_info(given, fact)]


class GraphWriter:
    """Writes one model."""

    def __init__(self, model: TypedModel, opset: int, outer: GraphWriter | None = None) -> None:
        """``outer``: of the graph that has this one as a body, in which its tensors are seen."""
        self.model, self.opset = model, opset
        self.held: dict[str, Constant] = {} if outer is None else outer.held
        self._nodes: list[onnx.NodeProto] = []
        self._names: dict[OutletId, str] = {}
        self._taken: set[str] = set() if outer is None else outer._taken
        self._small: dict[Any, str] = {} if outer is None else outer._small
        self._sizes = Sizes(self, None if outer is None else outer._sizes)
        self._where = ""
        self._wanted: dict[OutletId, str] = {}
        self._makers: dict[str, onnx.NodeProto] = {}
        self._bound: set[str] = set()
        self._facts: dict[str, TypedFact] = {}
        self._outer = outer
        self._states: dict[str, TypedFact] = {}
        self._kept: dict[str, onnx.ValueInfoProto] = {}
        self._lengths: dict[str, TypedFact] = {}
        self._positions: dict[Dim, str] = {}
        self._counts: dict[str, int] = {} if outer is None else outer._counts

    def write(self) -> onnx.GraphProto:
        """The graph, without the tensors that are `held`. Raises Unwritable, naming every node that cannot be said."""
        model = self.model
        self._wanted = {outlet: model.outlet_name(outlet) for outlet in [*model.inputs, *model.outputs]}
        self._taken |= set(self._wanted.values())
        for outlet in model.inputs:
            self.bind(outlet, self._wanted[outlet])
        self._all_nodes()
        inputs = [value_info(self._names[outlet], model.outlet_fact(outlet)) for outlet in model.inputs]
        inputs += [value_info(name, fact) for name, fact in {**self._states, **self._lengths}.items()]
        outputs = [value_info(name, model.outlet_fact(outlet)) for outlet, name in self._outputs()]
        outputs += [self._kept[name] for name in self._states]
        names = [one.name for one in outputs]
        nodes = self._with_quantized(Joining(self, self._nodes, names).joined(), names)
        read = {name for node in nodes for name in read_by(node)} | {*names}
        self.held = {name: value for name, value in self.held.items() if name in read}
        return helper.make_graph(nodes, "model", inputs, outputs)

    def write_body(self, ports: Sequence[BodyInput], ends: Sequence[int | None]) -> onnx.GraphProto:
        """The graph of a body. ``ports``: where its inputs come from; ``ends``: for each output, an axis that it loses.

        Raises Unwritable.
        """
        model = self.model
        self._wanted = {outlet: self.free(model.outlet_name(outlet)) for outlet in model.outputs}
        inputs: list[onnx.ValueInfoProto] = []
        for outlet, port in zip(model.inputs, ports, strict=True):
            inputs += port.bound(self, outlet)
        self._all_nodes()
        outputs: list[onnx.ValueInfoProto] = []
        for (outlet, name), axis in zip(self._outputs(), ends, strict=True):
            fact = model.outlet_fact(outlet)
            if axis is not None:
                axes = self.constant(np.array([axis]))
                outputs.append(value_info(self.add("Squeeze", name, axes), without_axis(fact, axis)))
            else:
                outputs.append(value_info(name, fact))
        nodes = Joining(self, self._nodes, [one.name for one in outputs]).joined()
        return helper.make_graph(nodes, self.free("body"), inputs, outputs)

    def inner(self, model: TypedModel) -> GraphWriter:
        """The writer of a body of this graph."""
        return GraphWriter(model, self.opset, self)

    def bind(self, outlet: OutletId, name: str) -> None:
        """A tensor of the model is the one of that name."""
        self._names[outlet] = name
        self._bound.add(name)
        self._facts[name] = self.model.outlet_fact(outlet)
        self._sizes.note(name, self.model.outlet_fact(outlet))

    def free(self, wanted: str) -> str:
        """``wanted``, with a number behind it where that is taken. It is taken from now on."""
        found = wanted
        while found in self._taken:
            self._counts[wanted] = self._counts.get(wanted, 0) + 1
            found = f"{wanted}_{self._counts[wanted]}"
        self._taken.add(found)
        return found

    def _all_nodes(self) -> None:
        model, refused = self.model, list[Unwritable]()
        for node_id in model.eval_order():
            node = model.nodes[node_id]
            with self._noting(node, refused):
                self._node(node)
        if len(refused) > 1:
            raise together(refused, Unwritable, f"{len(refused)} nodes cannot be written", hint=_HINT)
        if refused:
            raise refused[0]

    # --- what spellings ask for ---

    def fact(self, node: TypedNode, slot: int) -> TypedFact:
        """What is known of a tensor that the node reads."""
        return self.model.outlet_fact(node.inputs[slot])

    def tensor(self, node: TypedNode, slot: int) -> str:
        """The name of a tensor that the node reads."""
        return self.name_of(node.inputs[slot])

    def hold(self, value: Constant, where: str = "") -> str:
        """A tensor that is there, for the node ``where``, else the one that is written. Small equal ones are one."""
        if value.array.nbytes > SHARED or value.array.dtype.kind == "O":
            return self._held(value, f"{where or self._where}.constant")
        key = (value.datum_type, value.array.shape, value.array.tobytes())
        if key not in self._small:
            self._small[key] = self._held(value, "constant")
        return self._small[key]

    def hold_as(self, wanted: str, value: Constant) -> str:
        """A tensor that is there, by a name like that. Returns its name."""
        return self._held(value, wanted)

    def put(self, op_type: str, inputs: Sequence[str], outputs: int, attributes: dict[str, Any]) -> tuple[str, ...]:
        """A node. Returns the names of its results."""
        names = tuple(self.free(f"{self._where}.{op_type}") for _ in range(outputs))
        node = helper.make_node(op_type, [*inputs], [*names], name=names[0], **attributes)
        self._nodes.append(node)
        self._makers.update(dict.fromkeys(names, node))
        return names

    # --- what is kept between runs ---

    @property
    def is_stream(self) -> bool:
        """Whether the model goes on from run to run: it is one in pulses, or its format has states."""
        return self._outer.is_stream if self._outer is not None else not _STREAM.isdisjoint(self.model.properties)

    def state(self, wanted: str, fact: TypedFact) -> str:
        """An input for what is kept between runs. Raises Unwritable in a body."""
        if self._outer is not None:
            raise Unwritable("what a body keeps between runs has no words in ONNX", hint=_HINT)
        name = self.free(wanted)
        self._states[name] = fact
        self._facts[name] = fact
        self._sizes.note(name, fact)
        return name

    def keep(self, state: str, name: str, fact: TypedFact | None = None) -> None:
        """What the next run is given for a state. ``fact``: of that, where it is another than before."""
        kept = self.free(f"{state}_out")
        self._nodes.append(helper.make_node("Identity", [name], [kept], name=kept))
        self._kept[state] = value_info(kept, fact or self._states[state])

    def position(self, count: Dim) -> str:
        """How many there were before this run, of which each run has ``count``: one state for each number."""
        if count not in self._positions:
            before = self.state("position", TypedFact.of(DatumType.I64, (1,)))
            self.keep(before, self.add("Add", before, self.sizes([count])))
            self._positions[count] = before
        return self._positions[count]

    def length(self, symbol: str) -> str | None:
        """An input for a size that no tensor tells, as the length of a signal that has not ended; in streams alone."""
        if self._outer is not None:
            return self._outer.length(symbol)
        if not self.is_stream:
            return None
        name = self.free(symbol)
        self._lengths[name] = fact = TypedFact.of(DatumType.I64, (1,))
        self._facts[name] = fact
        return name

    # --- what joins ask for ---

    def known(self, name: str) -> TypedFact | None:
        """What is known of a tensor."""
        found = self._facts.get(name)
        return self._outer.known(name) if found is None and self._outer is not None else found

    def size(self, name: str) -> Dim | None:
        """The size that a tensor is."""
        seen = name
        while (maker := self._makers.get(seen)) is not None and maker.op_type in _SAME_SIZE:
            seen = maker.input[0]
        return self._sizes.told(seen)

    def equal(self, a: Dim, b: Dim) -> bool:
        """Whether two sizes are certainly the same."""
        return bool(self.model.known.same(a, b))

    def sizes(self, dims: Sequence[Dim]) -> str:
        """Sizes as one tensor. Raises Unwritable."""
        return self._sizes.vector(dims)

    # --- what sizes ask for ---

    def add(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        where, self._where = self._where, "size"
        try:
            (name,) = self.put(op_type, inputs, 1, attributes)
        finally:
            self._where = where
        return name

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A tensor that is there."""
        return self.hold(Constant(array))

    # --- nodes ---

    def _node(self, node: TypedNode) -> None:
        if isinstance(node.op, (TypedSource, Const)):
            return
        if isinstance(node.op, Identity):
            source = self.name_of(node.inputs[0])
            outlet = OutletId(node.id)
            if outlet not in self.model.outputs:
                self._names[outlet] = source
                return
        self._where = node.name
        begun = len(self._nodes)
        spell = self.model.registry[ONNX_WRITE].find(type(node.op))
        found = None if spell is None else spell(node.op, Spelling(self, node))
        if found is None:
            raise Unwritable(f"{node.op.name} has no words in version {self.opset} of ONNX's operators")
        results = (found,) if isinstance(found, str) else tuple(found)
        for outlet, name in zip(node.outlets(), results, strict=True):
            self._result(outlet, name, begun)

    @contextmanager
    def _noting(self, node: TypedNode, refused: list[Unwritable]) -> Generator[None]:
        """Inside, what cannot be said of a node is noted, and its results have names for those that read them."""
        try:
            yield
        except Unsupported as error:
            refused.append(Unwritable(error.problem, where=error.where or f"node {node.name!r}", hint=error.hint))
            for outlet in node.outlets():
                self.bind(outlet, node.name)

    def _result(self, outlet: OutletId, name: str, begun: int) -> None:
        """A tensor has its own name: that of the node that makes it, where it is one of those from ``begun`` on."""
        maker = next((one for one in self._nodes[begun:] if name in one.output), None)
        wanted = self._wanted.get(outlet) or self.free(self.model.outlet_name(outlet))
        if maker is None or name in self._bound:
            if outlet not in self.model.outputs:
                self.bind(outlet, name)
                return
            self._nodes.append(helper.make_node("Identity", [name], [wanted], name=wanted))
        else:
            for one in self._nodes[begun:]:
                _rename(one.input, name, wanted)
                _rename(one.output, name, wanted)
            maker.name, self._makers[wanted] = wanted, maker
        self.bind(outlet, wanted)

    def _with_quantized(self, nodes: list[onnx.NodeProto], outputs: Sequence[str]) -> list[onnx.NodeProto]:
        """The nodes, with quantised products as other engines know them."""
        if not any(node.op_type == "DequantizeLinear" for node in nodes):
            return nodes
        facts = {name: self.model.outlet_fact(outlet) for outlet, name in self._names.items()}
        return needed(Quantized(nodes, self, facts, outputs).arranged(), outputs)

    def name_of(self, outlet: OutletId) -> str:
        """The name of a tensor; a constant is held from now on."""
        if outlet not in self._names:
            op = self.model.nodes[outlet.node].op
            assert isinstance(op, Const), op  # everything else has a name before it is read
            if isinstance(op.value, SymbolicArray):
                self._names[outlet] = self._symbolic(op.value)
            else:
                self._names[outlet] = self._held(op.value, self.model.outlet_name(outlet))
        return self._names[outlet]

    def _symbolic(self, value: SymbolicArray) -> str:
        """Sizes that are elements."""
        flat = self.sizes(value.dims) if value.dims else self.constant(np.zeros(0, np.int64))
        shape = value.array.shape
        return flat if len(shape) == 1 else self.add("Reshape", flat, self.constant(np.array(shape, np.int64)))

    def _held(self, value: Constant, wanted: str) -> str:
        name = self.free(wanted)
        self.held[name] = value
        self._facts[name] = TypedFact.of(value.datum_type, value.array.shape)
        return name

    def _outputs(self) -> list[tuple[OutletId, str]]:
        """The outputs, each of a name of its own, which is that of no input and of no other output."""
        found: list[tuple[OutletId, str]] = []
        for outlet in self.model.outputs:
            name, wanted = self.name_of(outlet), self._wanted[outlet]
            if name != wanted or outlet in self.model.inputs or (outlet, wanted) in found:
                wanted = wanted if name != wanted else self.free(wanted)
                self._nodes.append(helper.make_node("Identity", [name], [wanted], name=wanted))
            found.append((outlet, wanted))
        return found


def without_axis(fact: TypedFact, axis: int) -> TypedFact:
    """What is known of a slice."""
    return fact.with_shape([size for place, size in enumerate(fact.shape) if place != axis])


def _rename(names: Any, before: str, after: str) -> None:
    for place, name in enumerate(names):
        if name == before:
            names[place] = after
