"""The typed model: a graph in which the element type and the shape of every tensor are known.

Nodes are added by *wiring*: the operator is asked for the facts of its outputs, integer values that are known are
carried along, and what the scope of symbols knows is applied to every size.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tract_core.data import Constant, Value, value_of
from tract_core.data.scratch import computed_of
from tract_core.dims import Dim, SymbolScope, TDim, is_symbolic, symbols_of
from tract_core.dims.theory import Theory
from tract_core.errors import FactError, GraphError, TractError
from tract_core.limits import DEFAULT_LIMITS, current_budget
from tract_core.model.conditions import Condition, noting, origin_or
from tract_core.model.fact import ShapeFact, TypedFact, check_sizes, in_type
from tract_core.model.graph import VACANT, Node, Outlet, OutletId
from tract_core.model.op import TypedOp, check_facts, check_operator
from tract_core.model.same import outline, same_model
from tract_core.model.substitute import substitute_in, symbols_announced, symbols_in, symbols_needed, symbols_told
from tract_core.model.typed_graph import TypedGraph, TypedNode
from tract_core.plugins.distributions import CORE
from tract_core.plugins.keys import COST, REFERENCE, STATE, SYMBOLIC

if TYPE_CHECKING:
    from tract_core.plugins.registry import Registry

_NO_SYMBOLS: Final = frozenset[str]()

EAGER_ELEMENTS = 4096
"""Integer tensors up to this many elements are computed while they are wired, so that shapes resolve early."""


class TypedModel(TypedGraph):
    """A model with completely determined types and shapes.

    ``registry``: the tables that are asked about operators; the one of the installed plugins unless a test says
    otherwise.
    ``remarks``: what wiring noticed and what does not keep the model from running, for whoever wants a report.
    """

    _may_tell: bool = False
    """Whether there was an operator whose state tells a size. Models in pickles of before have none."""

    def __init__(self, symbols: SymbolScope | None = None, registry: Registry | None = None) -> None:
        super().__init__(symbols)
        self._registry = registry
        self.remarks: list[TractError] = []
        self._simple: tuple[Theory, int, int] | None = None
        """By which knowledge, of which version, all sizes of how many nodes are simple."""

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same in the same way, whatever their nodes are called: see `same_model`."""
        return same_model(self, other) if isinstance(other, TypedModel) else NotImplemented

    def __hash__(self) -> int:
        return outline(self)

    def __getstate__(self) -> dict[str, Any]:
        # Tables do not travel: the other side has plugins of its own. What is known is found out again.
        return {**self.__dict__, "_registry": None, "_simple": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedModel:
        other = TypedModel(None, self._registry)
        memo[id(self)] = other
        for name, value in self.__getstate__().items():
            if name != "_registry":
                setattr(other, name, deepcopy(value, memo))
        return other

    @property
    def registry(self) -> Registry:
        """The tables that this model's passes ask."""
        if self._registry is None:
            from tract_core.plugins import default_registry

            self._registry = default_registry()
        return self._registry

    def empty_like(self) -> TypedModel:
        """A new model with the same scope of symbols, the same registry and the same limits."""
        other = TypedModel(self.symbols, self._registry)
        other.limits = self.limits
        return other

    def mapped(
        self,
        change_op: Callable[[TypedOp], TypedOp],
        change_fact: Callable[[TypedFact], TypedFact],
        symbols: SymbolScope | None = None,
    ) -> TypedModel:
        """A copy whose operators and facts went through a function. Ids and names stay, constants are shared."""
        copy = TypedModel(self.symbols if symbols is None else symbols, self._registry)
        copy.limits = self.limits
        for node in self.nodes:
            op = node.op if node.op is VACANT else change_op(node.op)
            outlets = [Outlet(change_fact(outlet.fact), dict(outlet.successors)) for outlet in node.outputs]
            copy.nodes.append(Node(node.id, node.name, op, list(node.inputs), outlets))
        copy._ids = self._ids.copy()
        copy.inputs, copy.outputs = list(self.inputs), list(self.outputs)
        copy.outlet_labels, copy.properties = dict(self.outlet_labels), dict(self.properties)
        copy.conditions, copy._may_tell = self.conditions.copy(), self._may_tell
        return copy

    def clone(self) -> TypedModel:
        """A copy that changes on its own. Ids and names stay, constants are shared."""
        return self.mapped(lambda op: op, lambda fact: fact, self.symbols.copy())

    def substitute(self, values: Mapping[str, Dim]) -> TypedModel:
        """A copy with symbols replaced in every operator and fact; the very same model when none of them occurs in it.

        Ids and names stay. What is asserted of the symbols is asserted of their values; raises DimError when that is
        false.
        """
        if not symbols_in(self) & values.keys():
            return self
        scope, values = self.symbols.substitute(values), self.symbols.definitions.substituted(values)[1]
        replaced = self.mapped(lambda op: substitute_in(op, values), lambda fact: fact.substitute(values), scope)
        replaced.conditions = self.conditions.substitute(values)
        return replaced

    def add_source(self, name: str, fact: TypedFact) -> OutletId:
        """Add an input to the model."""
        from tract_core.model.source import TypedSource

        self._have_symbols(fact.shape.symbols())
        outlet = OutletId(self.add_node(name, TypedSource(fact.without_value()), [fact]).id)
        self.inputs.append(outlet)
        return outlet

    def add_const(self, name: str, value: np.ndarray[Any, Any] | Value | Sequence[Dim] | Dim | float) -> OutletId:
        """Add a value that is known: an array, or sizes (an array of i64, symbolic or not)."""
        from tract_core.model.const import Const

        held = as_value(value)
        return OutletId(self.add_node(name, Const(held), [TypedFact.of_value(held)]).id)

    def add_node(
        self, name: str, op: TypedOp, facts: Iterable[TypedFact], inputs: Sequence[OutletId] = ()
    ) -> TypedNode:
        """As for any graph."""
        self._may_tell = self._may_tell or bool(op.tells)
        return super().add_node(name, op, facts, inputs)

    def wire_node(self, name: str, op: TypedOp, inputs: Sequence[OutletId]) -> tuple[OutletId, ...]:
        """Add an operator that reads ``inputs``; returns its outlets.

        What the operator wants of sizes that only a run knows becomes a condition of the model. Raises FactError when
        the inputs do not fit the operator, with the node's name and the facts of its inputs.
        """
        facts = [self.outlet_fact(outlet) for outlet in inputs]
        try:
            check_operator(op, self._called)
            with noting() as conditions:
                outputs = self.facts_for(op, facts)
            if conditions:
                self._rely_on(conditions, f"node {name!r} ({op.name})")
        except TractError as error:
            found = "; ".join(map(str, facts)) or "none"
            if error.hint is None:
                error.hint = f"inputs are: {found}"
            raise error.at(f"node {name!r} ({getattr(op, 'name', op)})") from None
        if op.announces or op.tells:
            self._have_symbols(symbols_announced(op) | symbols_told(op))
        return tuple(self.add_node(name, op, outputs, inputs).outlets())

    def _have_symbols(self, names: frozenset[str]) -> None:
        """Let symbols belong to the scope from the node on that binds them: of two equal ones the first one stays."""
        for name in sorted(names):
            if name not in self.symbols:
                self.symbols.add(name)

    def _called(self, kind: type) -> str:
        """What messages call a class: its name, and the distribution that it is from where that is not the core."""
        home = self.registry.home_of(kind)
        return kind.__name__ if home == CORE else f"{kind.__name__} of {home}"

    @contextmanager
    def noting_conditions(self, origin: str) -> Generator[None]:
        """Whatever is asked inside with `may_equal` and the like, and depends on a symbol, becomes a condition.

        All of it or, where some of it contradicts what is known, nothing.
        """
        with noting() as conditions:
            yield
        if conditions:
            self._rely_on(conditions, origin)

    def _rely_on(self, conditions: Sequence[Condition], origin: str) -> None:
        """Make all of them conditions of the model; none, and FactError, where one contradicts what is known."""
        before = len(self.conditions)
        try:
            for condition in conditions:
                self.require(condition, origin)
        except TractError:
            self.conditions.rewind(before)
            raise

    def require(self, condition: Condition, origin: str) -> None:
        """Let every run check ``condition``, unless it always holds. ``origin``: the node that wants it.

        Raises FactError where it contradicts the assertions or the other conditions.
        """
        answer = self.conditions.answer(condition, self.symbols)
        if answer is False:
            raise FactError(f"{condition}, which contradicts what else is known of {_listed(condition.symbols)}")
        if answer is None:
            self.conditions.add(condition, origin_or(origin))

    def facts_for(self, op: TypedOp, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The facts that ``op`` gives for these inputs in this model: sizes simplified, known values computed."""
        outputs = op.output_facts(inputs)
        if outputs.__class__ is not tuple or any(fact.__class__ is not TypedFact for fact in outputs) or not outputs:
            outputs = check_facts(op, outputs, self._called)
        for fact in outputs:
            check_sizes(fact.shape)
        if not all(fact.shape.is_concrete for fact in outputs):
            announced = symbols_announced(op) if op.announces else _NO_SYMBOLS
            outputs = tuple(self._simplify(fact, announced) for fact in outputs)
        if len(outputs) == 1 and outputs[0].value is None:
            value = self._value_of(op, inputs, outputs[0])
            if value is not None:
                fact = outputs[0]
                return (TypedFact(fact.datum_type, fact.shape, value),)
        return outputs

    def _simplify(self, fact: TypedFact, announced: frozenset[str]) -> TypedFact:
        shape = ShapeFact([dim if dim.__class__ is int else self.simplified(dim, announced) for dim in fact.shape])
        return fact if shape == fact.shape else TypedFact(fact.datum_type, shape, fact.value)

    @property
    def known(self) -> Theory:
        """What is known of sizes: what follows from the assertions of the scope and from the conditions."""
        return self.conditions.known(self.symbols)

    def simple_by(self, known: Theory) -> int:
        """How many nodes, the first ones, have sizes that are as simple as what is ``known`` makes them."""
        last = self._simple
        return last[2] if last is not None and last[0] is known and last[1] == known.version else 0

    def note_simple(self, known: Theory) -> None:
        """Take down that the sizes of all nodes are as simple as what is ``known`` makes them."""
        self._simple = known, known.version, len(self.nodes)

    def compact(self) -> None:
        """As for any graph."""
        self._simple = None
        super().compact()

    def rewire(self, node: TypedNode, op: TypedOp, inputs: Sequence[OutletId]) -> None:
        """As for any graph."""
        self._simple, self._may_tell = None, self._may_tell or bool(op.tells)
        super().rewire(node, op, inputs)

    def set_outlet_fact(self, outlet: OutletId, fact: TypedFact) -> None:
        """As for any graph."""
        self._simple = None
        super().set_outlet_fact(outlet, fact)

    def rewind(self, count: int) -> None:
        """As for any graph."""
        self._simple = None
        super().rewind(count)

    def simplified(self, dim: Dim, announced: frozenset[str] = _NO_SYMBOLS, *, is_size: bool = True) -> Dim:
        """What equals ``dim`` in every run, as simple as is known, with names for what would be too long.

        ``announced``: symbols that the node is to bind, which stay in its facts. ``is_size``: whether it is the size of
        an axis, not a value that is computed with and that may be negative.
        """
        known = self.known
        if announced or not is_size or dim.__class__ is int:
            simple = known.simplify_but(dim, announced)
            return simple if symbols_of(simple) & announced else self.symbols.named(simple, self.known, is_size=is_size)
        simple = known.found.get(dim)
        if simple is None:
            simple = known.found[dim] = self.symbols.named(known.simplify(dim), known)
        return simple

    def _value_of(self, op: TypedOp, inputs: Sequence[TypedFact], output: TypedFact) -> Value | None:
        if not inputs or not (output.datum_type.is_integer() or output.datum_type.is_bool()):
            return None
        if not op.pure or op.unpacks:
            return None
        values = [fact.value for fact in inputs]
        volume = output.shape.volume
        if None in values or is_symbolic(volume) or int(volume) > EAGER_ELEMENTS:
            return None
        if any(value.array.size > EAGER_ELEMENTS for value in values if value is not None):
            return None
        if not self.take_budget(op, inputs, output, freed=0):
            return None
        value = evaluate_values(self.registry, op, [value for value in values if value is not None])
        if value is None or value.array.shape != output.shape:
            return None
        by_numpy = all(isinstance(one, Constant) for one in values)
        if by_numpy and isinstance(value, Constant) and value.datum_type != output.datum_type.storage:
            return None  # numbers of another type than the operator promises, which the run reports
        return in_type(value, output.datum_type)

    def take_budget(self, op: TypedOp, inputs: Sequence[TypedFact], output: TypedFact, *, freed: int) -> bool:
        """Take what computing the value of ``output`` early costs from the budget of this work.

        ``freed``: bytes of the constants that it makes superfluous. Returns whether the budget allows it.
        """
        budget, volume = current_budget(), output.shape.volume
        limits = DEFAULT_LIMITS if budget is None else budget.limits
        total = sum((self.registry.answer(COST, op, inputs, (output,)) or {}).values())
        if is_symbolic(total) or is_symbolic(volume) or int(total) > limits.max_fold_ops:
            return False
        return budget is None or budget.take_bytes(int(volume) * output.datum_type.itemsize, freed)

    def eval_order(self, targets: Sequence[OutletId] | None = None) -> list[int]:
        """As for any graph, with the nodes that check something, or bind in a run what others or conditions mention."""
        wanted = list(self.outputs if targets is None else targets)
        wanted += [OutletId(node.id) for node in self.nodes if node.op.checks]
        order = self.order_of_edges(wanted)
        binders = [node for node in self.nodes if node.op.announces]
        tellers = [node for node in self.nodes if node.op.tells] if self._may_tell else []
        while binders or tellers:
            missing = self._unbound([self.nodes[node_id] for node_id in order])
            found = [node for node in binders if self.symbols_bound(node) & missing]
            found = found or [node for node in tellers if symbols_told(node.op) & missing][:1]
            if not found:
                break
            wanted += [OutletId(node.id) for node in found]
            order = self.order_of_edges(wanted)
        return order

    def _unbound(self, nodes: Sequence[TypedNode]) -> frozenset[str]:
        """The symbols that these nodes mention and that neither they nor the inputs bind."""
        mentioned = self.conditions.symbols.union(*(symbols_needed(node.op) for node in nodes))
        needed = self.symbols.definitions.roots(mentioned)
        bound = (self.symbols_bound(node) | symbols_told(node.op) for node in nodes)
        return needed.difference(self.symbols_of_inputs(), *bound)

    def must_stay(self, node: TypedNode) -> bool:
        """Whether ``node`` checks something, or binds a symbol that a condition or an operator elsewhere mentions."""
        if node.op.checks:
            return True
        bound, roots = self.symbols_bound(node) | self._told_by_none_but(node), self.symbols.definitions.roots
        if not bound:
            return False
        return not bound.isdisjoint(roots(self.conditions.symbols)) or any(
            bound & roots(symbols_needed(other.op)) for other in self.live_nodes() if other is not node
        )

    def _told_by_none_but(self, node: TypedNode) -> frozenset[str]:
        """The symbols that the state of ``node`` tells, and nothing else gives a value when a turn begins."""
        if not node.op.tells:
            return _NO_SYMBOLS
        others = (symbols_told(other.op) for other in self.live_nodes() if other is not node)
        return symbols_told(node.op).difference(self.symbols_of_inputs(), *others)

    def symbols_bound(self, node: TypedNode) -> frozenset[str]:
        """Names of the symbols that get their value when ``node`` runs, and not before."""
        announced = symbols_announced(node.op) if node.op.announces else _NO_SYMBOLS
        if not announced:
            return _NO_SYMBOLS
        return announced.difference(self.given_symbols(), *(fact.symbols() for fact in self.input_facts(node)))

    def constant(self, outlet: OutletId) -> np.ndarray[Any, Any] | None:
        """The value of an outlet, where it is known and free of symbols."""
        return self.outlet_fact(outlet).constant

    def given_symbols(self) -> frozenset[str]:
        """Names of the symbols that have values when the first node of a turn runs.

        They have them by the shapes of the inputs, or by what the state tells.
        """
        found = self.symbols_of_inputs()
        return self.symbols.definitions.with_known(found | self.told_symbols()) if self._may_tell else found

    def symbols_of_inputs(self) -> frozenset[str]:
        """Names of the symbols that the shapes of the model's inputs bind."""
        shapes = [self.outlet_fact(outlet).shape for outlet in self.inputs]
        return self.symbols.definitions.with_known(_NO_SYMBOLS.union(*(shape.symbols() for shape in shapes)))

    def told_symbols(self) -> frozenset[str]:
        """Names of the symbols that the states of nodes tell at the beginning of a turn."""
        nodes = self.live_nodes() if self._may_tell else ()
        return _NO_SYMBOLS.union(*(symbols_told(node.op) for node in nodes if node.op.tells))

    def is_interface(self, outlet: OutletId) -> bool:
        """Whether an outlet is an input or an output of the model."""
        return outlet in self.outputs or outlet in self.inputs

    def producer(self, outlet: OutletId) -> TypedNode:
        """The node that an outlet belongs to."""
        return self.nodes[outlet.node]

    def single_reader(self, outlet: OutletId) -> TypedNode | None:
        """The one node that reads an outlet, when there is exactly one reading input and it is no model output."""
        readers = self.outlet(outlet).successors
        if len(readers) != 1 or outlet in self.outputs:
            return None
        return self.nodes[next(iter(readers)).node]

    def is_impossible(self) -> bool:
        """Whether it was found out that every run is refused: sizes, or what operators want of them, contradict."""
        return len(self.conditions) > 0 and (
            self.conditions.cannot_hold(self.symbols) or any(map(self._is_impossible, self.live_nodes()))
        )

    def _is_impossible(self, node: TypedNode) -> bool:
        try:
            with noting() as conditions:
                node.op.output_facts(self.input_facts(node))
        except TractError:
            return True
        return any(self.conditions.answer(condition, self.symbols) is False for condition in conditions)

    def check_consistency(self) -> None:
        """Raise GraphError unless every edge is sound and every fact is what the operator says it is.

        Facts of a model that no run can satisfy contradict each other, which the runs report.
        """
        self.check_edges()
        self.eval_order()
        try:
            for node in self.live_nodes():
                self._check_facts(node)
        except TractError:
            if not self.is_impossible():
                raise

    def _check_facts(self, node: TypedNode) -> None:
        expected = node.op.output_facts(self.input_facts(node))
        if len(expected) != len(node.outputs):
            raise GraphError(f"{len(node.outputs)} outputs, its operator gives {len(expected)}", where=str(node))
        for outlet, fact in zip(node.outputs, expected, strict=True):
            if not outlet.fact.compatible_with(fact):
                raise GraphError(f"output is {outlet.fact}, its operator says {fact}", where=str(node))

    def declutter(self) -> TypedModel:
        """Bring the model to its normal form, in place; returns it."""
        from tract_core.model.declutter import declutter  # who only wires or runs models needs no rewriter

        return declutter(self)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def as_value(value: np.ndarray[Any, Any] | Value | Sequence[Dim] | Dim | float) -> Value:
    """Whatever can be a constant, as a `Constant` or a `SymbolicArray`."""
    if isinstance(value, Value):
        return value
    if isinstance(value, np.ndarray):
        return Constant(value)
    if isinstance(value, (Sequence, TDim)):
        return value_of(np.array(value, dtype=object))
    return Constant(np.array(value))


def evaluate_values(registry: Registry, op: TypedOp, values: Sequence[Value]) -> Value | None:
    """What ``op`` makes of known values, by its NumPy meaning or its symbolic one; ``None`` if neither can."""
    if registry[STATE].find(type(op)) is not None:
        return None
    try:
        if all(isinstance(value, Constant) for value in values):
            meaning = registry[REFERENCE].find(type(op))
            if meaning is None or symbols_needed(op):
                return None
            with np.errstate(all="ignore"):
                known = [value.array for value in values]
                result = meaning(op, *known)
            if not isinstance(result, np.ndarray | np.generic):
                return None
            return Constant(computed_of(known, np.asarray(result)))
        symbolic = registry[SYMBOLIC].find(type(op))
        if symbolic is None:
            return None
        found = cast("object", symbolic(op, *(value.array.astype(object) for value in values)))
        return None if found is None else value_of(np.asarray(found, dtype=object))
    except (TractError, ArithmeticError, LookupError, ValueError, TypeError, MemoryError):
        return None  # the value stays unknown here; the node reports the same problem when it runs
