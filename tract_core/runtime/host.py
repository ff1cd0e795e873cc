"""Run single nodes by their NumPy meaning, on whatever runtime.

A `HostNode` is one node made ready: its operator, what it promises, and the code behind it. The interpreter has nothing
else; a runtime that compiles leaves to it the nodes for which it has no code. A `HostState` holds what its nodes keep.
All that must happen around the meaning of an operator happens here: sizes are put in the place of symbols, new symbols
get their values, results are compared with facts, time is looked at, and errors are told with the node's name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from tract_core.data import DatumType
from tract_core.data.text_bytes import text_bytes
from tract_core.dims import Dim, bind, symbols_of
from tract_core.errors import DimError, GraphError, RunError, TractError
from tract_core.frozen import frozen
from tract_core.limits import TOO_LARGE_HINT, check_room, check_run_time, check_texts, check_time, spending
from tract_core.model.session import BodyPlan, OpState, Session, TellingState
from tract_core.model.source import TypedSource
from tract_core.model.substitute import substitute_in, symbols_needed
from tract_core.plugins.keys import MEMORY, REFERENCE, STATE, Array, MemoryFn, ReferenceFn, StateFn
from tract_core.runtime.binding_plan import given_in_every_turn
from tract_core.runtime.by_parts import by_parts
from tract_core.runtime.returned import Promise, Wanted, are_arrays, is_right
from tract_core.runtime.schedule import execution_order

if TYPE_CHECKING:
    from tract_core.dims.definitions import Definitions
    from tract_core.model.fact import TypedFact
    from tract_core.model.graph import OutletId
    from tract_core.model.op import TypedOp
    from tract_core.model.typed import TypedModel, TypedNode
    from tract_core.plugins.registry import Registry

T = TypeVar("T")


@frozen
class HostRows:
    """What tables say of operators of one type: ``meaning``, ``memory`` and ``state`` are their rows there.

    ``owner``: the distribution that brought the code that runs them.
    """

    owner: str
    meaning: ReferenceFn | None
    memory: MemoryFn | None
    state: StateFn | None

    @staticmethod
    def of(registry: Registry, kind: type) -> HostRows:
        """The rows for a type."""
        meanings, states = registry[REFERENCE], registry[STATE]
        owner = states.owner(kind) or meanings.owner(kind) or "nobody"
        return HostRows(owner, meanings.find(kind), registry[MEMORY].find(kind), states.find(kind))


@frozen
class HostNode:
    """One node, made ready to run by its NumPy meaning, or by what runs operators with state.

    ``needs``: symbols that must have values before it runs, sorted. ``binds``: symbols that no input mentions and no
    node before it. ``late``: symbols of its sizes that may differ between runs of one binding of the inputs.
    ``makes_texts``: whether it gives texts, whose lengths only running it tells. ``definitions``: the symbols of the
    model that are names of longer sizes.
    """

    node: int
    name: str
    op: TypedOp
    inputs: tuple[OutletId, ...]
    needs: tuple[str, ...]
    promise: Promise
    binds: frozenset[str]
    late: frozenset[str]
    makes_texts: bool
    meaning: ReferenceFn | None
    memory: MemoryFn | None
    state: StateFn | None
    definitions: Definitions

    @staticmethod
    def prepare(
        model: TypedModel, node: TypedNode, given: frozenset[str], known: frozenset[str], rows: HostRows
    ) -> HostNode:
        """``given``: symbols that inputs surely give values; ``known``: what inputs and nodes before it mention.

        ``rows``: of the operator's type.
        """
        facts = tuple(model.output_facts(node))
        promise = Promise(rows.owner, facts)
        symbols = promise.symbols
        return HostNode(
            node=node.id,
            name=node.name,
            op=node.op,
            inputs=tuple(node.inputs),
            needs=tuple(sorted(symbols_needed(node.op))),
            promise=promise,
            binds=symbols - known,
            late=symbols - given,
            makes_texts=any(fact.datum_type is DatumType.STRING for fact in facts),
            meaning=rows.meaning,
            memory=rows.memory,
            state=rows.state,
            definitions=model.symbols.definitions,
        )

    @property
    def facts(self) -> tuple[TypedFact, ...]:
        """The facts of its outputs."""
        return self.promise.facts

    @property
    def place(self) -> str:
        """What messages call the node."""
        return f"node {self.name!r} ({self.op.name})"

    def run(self, host: HostState, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs. Raises RunError, or what else of ours the operator raises, with the node's name.

        The operator gets arrays that it cannot write to, as other nodes read them too.
        """
        return self.attempt(inputs, lambda: self._outputs(host, inputs))

    def attempt(self, inputs: Sequence[Array], work: Callable[[], T]) -> T:
        """What a function computes for the node. Raises RunError, or what else of ours it raises, with the node's name.

        ``inputs``: of the node, which the error for any other exception shows.
        """
        try:
            check_run_time()
            return work()
        except TractError as error:
            raise error.at(self.place) from error.__cause__
        except MemoryError as error:
            raise RunError(f"there is not enough memory: {error}", where=self.place, hint=TOO_LARGE_HINT) from error
        except Exception as error:
            raise self._failure(inputs, error) from error

    def bind_shapes(self, symbols: dict[str, int], shapes: Sequence[Sequence[int]]) -> None:
        """Give symbols the values that they have where the outputs have these shapes. Raises RunError."""
        for fact, shape in zip(self.promise.facts, shapes, strict=False):  # how many there are is checked elsewhere
            try:
                symbols.update(bind(fact.shape, shape, symbols))
            except DimError as error:
                shown = tuple(shape)
                raise RunError(f"the output has shape {shown}, {fact} was announced: {error}") from None
        self.definitions.complete(symbols)

    def _outputs(self, host: HostState, inputs: Sequence[Array]) -> tuple[Array, ...]:
        if self.op.makes_outputs:
            made = host.bytes_of(self)
            check_room(self._at_most(host, inputs, made))
        outputs = self._compute(host, [_read_only(array) for array in inputs])
        binds = self.op.announces or (self.late and not self.late <= host.session.symbols.keys())
        if binds and are_arrays(outputs):  # what is none is told next
            self.bind_shapes(host.session.symbols, [array.shape for array in outputs])
        host.check(self, outputs)
        if self.makes_texts:
            for array in outputs:
                check_texts(text_bytes(array))
        return outputs

    def _at_most(self, host: HostState, inputs: Sequence[Array], made: int) -> int:
        """How many bytes the outputs, of ``made`` bytes, take, with what they are computed of besides the inputs."""
        if self.op.by_element:
            return made
        if self.memory is not None:
            return self.memory(host.op_now(self), made, *inputs)
        return made + _working_bytes(inputs, made)

    def _failure(self, inputs: Sequence[Array], error: Exception) -> RunError:
        """The error for what the code behind the operator raised."""
        if isinstance(error, ValueError) and "read-only" in str(error):
            hint = f"other nodes read the same array, so that nobody may write to his inputs; {self.promise.hint}"
            return RunError(f"the operator writes to its inputs: {error}", where=self.place, hint=hint)
        found = "; ".join(f"{array.dtype}{list(array.shape)}" for array in inputs)
        hint = f"the inputs of the node were: {found or 'none'}"
        return RunError(f"{type(error).__name__}: {error}", where=self.place, hint=hint)

    def _compute(self, host: HostState, inputs: Sequence[Array]) -> tuple[Array, ...]:
        if self.state is not None:
            return host.state_of(self).run(host.session, inputs)
        assert self.meaning is not None  # whoever prepared the model refused it otherwise
        compute = partial(self.meaning, host.op_now(self))
        result: Any = by_parts(compute, inputs) if self.op.by_element and not self.makes_texts else compute(*inputs)
        return cast("tuple[Array, ...]", result) if isinstance(result, tuple) else (result,)


def _working_bytes(inputs: Sequence[Array], made: int) -> int:
    """What a meaning may need besides its outputs, of so many bytes: a copy of the largest tensor.

    Of floats that are narrower than f32, there are one in f32 and what is computed of it.
    """
    copies = [2 * _WIDE // one.itemsize if one.dtype.kind in "fV" and one.itemsize < _WIDE else 1 for one in inputs]
    sizes = [one.nbytes * count for one, count in zip(inputs, copies, strict=True)]
    return max(made * max([1, *copies]), *sizes, 0)


_WIDE: Final = 4
"""Bytes of the floats in which narrower ones are computed."""


def host_nodes(model: TypedModel) -> list[HostNode]:
    """Every node that the outputs of a model need, but for its inputs, in an order of execution.

    Raises UntypableModel where nodes need sizes that only come out of each other, LimitExceeded when time is up.
    """
    definitions = model.symbols.definitions
    given, known, found = given_in_every_turn(model), model.given_symbols(), list[HostNode]()
    rows: dict[type, HostRows] = {}
    for node_id in execution_order(model):
        check_time()
        node = model.nodes[node_id]
        if not isinstance(node.op, TypedSource):
            kind = type(node.op)
            if kind not in rows:
                rows[kind] = HostRows.of(model.registry, kind)
            found.append(HostNode.prepare(model, node, given, known, rows[kind]))
            if found[-1].binds:
                known = definitions.with_known(known | found[-1].binds)
    return found


def _read_only(array: Array) -> Array:
    """The array, or a view on it that nobody can write to."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class HostState:
    """What the nodes of one running model keep between turns. Used by one thread at a time."""

    def __init__(self, model: TypedModel, plan_of: Callable[[TypedModel], BodyPlan]) -> None:
        """``plan_of``: who runs the bodies of operators (`Bodies`)."""
        self.session = Session(model.registry, plan_of)
        self._states: dict[int, OpState] = {}
        self._concrete: dict[int, tuple[tuple[int, ...], TypedOp]] = {}
        self._wanted: dict[int, tuple[Wanted, ...]] = {}
        self._bytes: dict[int, int] = {}
        self._bound: Mapping[str, int] | None = None
        self._before: dict[int, Any] = {}

    def begins_as_before(self, symbols: Mapping[str, int]) -> bool:
        """Whether the turn before had the same values of symbols, so that what was checked then holds."""
        return symbols == self._bound

    def begin(self, symbols: Mapping[str, int]) -> None:
        """A turn begins, with these values of symbols; `Turn.begin` comes here."""
        if symbols != self._bound:
            self._bound, self._wanted, self._bytes = symbols, {}, {}
        self.session.symbols = dict(symbols)

    def reset(self) -> None:
        """Nodes keep nothing from the turns so far."""
        self._states, self._before = {}, {}

    def tell(self, nodes: Iterable[HostNode], known: Mapping[str, int]) -> dict[str, int]:
        """The values of symbols in the turn that begins, as the states of ``nodes`` tell them, with what is ``known``.

        Raises RunError, naming both, where one tells another value than the one before it.
        """
        found, by = dict(known), dict[str, str]()
        for node in nodes:
            state = cast("TellingState", self.state_of(node))
            dims, sizes = [getattr(node.op, name) for name in node.op.tells], node.attempt((), partial(_told, state))
            if len(sizes) != len(dims):
                raise RunError(f"its state tells {len(sizes)} sizes, wanted {len(dims)}", where=node.place)
            self._before[node.node] = state.freeze()
            try:
                more = bind(dims, sizes, found)
            except DimError:
                raise _other_value(node, dims, sizes, found, by) from None
            by.update(dict.fromkeys(more.keys() - found.keys(), node.place))
            found = more
        return found

    def end(self, *, failed: bool) -> None:
        """The turn is over. Where it failed, what tells sizes is as it was when it began."""
        before, self._before = self._before, {}
        for number, content in before.items() if failed else ():
            self._states[number].thaw(content)

    def state_of(self, node: HostNode) -> OpState:
        """What a node keeps; made when the node first runs."""
        found = self._states.get(node.node)
        if found is None:
            assert node.state is not None  # only asked for nodes that have one
            found = self._states[node.node] = node.state(node.op, self.session)
        return found

    def op_now(self, node: HostNode) -> TypedOp:
        """The operator with symbols replaced by their values; the last one is kept, as sizes rarely change."""
        if not node.needs:
            return node.op
        try:
            values = tuple(self.session.symbols[symbol] for symbol in node.needs)
        except KeyError as error:
            raise RunError(f"the value of symbol {error.args[0]} is not known when the node runs") from None
        cached = self._concrete.get(node.node)
        if cached is None or cached[0] != values:
            cached = (values, substitute_in(node.op, self.session.symbols))
            self._concrete[node.node] = cached
        return cached[1]

    def bytes_of(self, node: HostNode) -> int:
        """How much memory the outputs of a node will take, as far as that is known before it runs."""
        found = self._bytes.get(node.node)
        if found is None:
            wanted = node.promise.now(self.session.symbols)
            sizes = ((kind, [size for size in shape if size is not None], shape) for kind, shape in wanted)
            found = sum(prod(known) * kind.itemsize for kind, known, shape in sizes if len(known) == len(shape))
            if not node.late:
                self._bytes[node.node] = found
        return found

    def check(self, node: HostNode, outputs: tuple[Array, ...]) -> None:
        """Raises RunError where a node did not compute what its facts say. What they say is kept between turns."""
        wanted = self._wanted.get(node.node)
        if wanted is None:
            wanted = node.promise.now(self.session.symbols)
            if not node.late:
                self._wanted[node.node] = wanted
        if not is_right(outputs, wanted):
            node.promise.check(outputs, wanted)

    def freeze(self) -> dict[int, Any]:
        """What each node keeps, by the node's id: a snapshot that can be pickled and that later turns do not change."""
        return {node: state.freeze() for node, state in self._states.items()}

    def thaw(self, frozen: Mapping[int, Any], nodes: Iterable[HostNode]) -> None:
        """Go back to a snapshot, which stays as it is. Raises GraphError where it is of other nodes than these."""
        by_id = {node.node: node for node in nodes}
        if not frozen.keys() <= by_id.keys():
            raise GraphError("the frozen state belongs to another model")
        self._states = {}
        for node, content in frozen.items():
            self.state_of(by_id[node]).thaw(copy.deepcopy(content))


def _told(state: TellingState) -> list[int]:
    return list(map(index, state.told()))


def _other_value(
    node: HostNode, dims: Sequence[Dim], sizes: Sequence[int], found: Mapping[str, int], by: Mapping[str, str]
) -> RunError:
    """The error for sizes that a state tells and that do not fit the values that symbols have."""
    names = sorted(frozenset[str]().union(*map(symbols_of, dims)) & found.keys())
    values = " and ".join(f"{name} is {found[name]} by {by.get(name, 'the model around it')}" for name in names)
    wanted = ", ".join(map(str, dims))
    problem = f"its state holds {', '.join(map(str, sizes))} positions, wanted {wanted}"
    hint = "operators that share a symbol grow together: give each one its own, or reset the state"
    return RunError(f"{problem}, where {values}" if values else problem, where=node.place, hint=hint)


class Bodies:
    """The plans of the bodies of a model's operators, each made once, however many states run it."""

    def __init__(self, make: Callable[[TypedModel], BodyPlan]) -> None:
        self._make = make
        self._plans: dict[int, tuple[TypedModel, BodyPlan]] = {}

    def __call__(self, body: TypedModel) -> BodyPlan:
        """The plan of a body. Raises what making it raises, LimitExceeded among it, as when a model is prepared."""
        found = self._plans.get(id(body))
        if found is None:
            with spending(body.limits.for_rewriting):
                made = self._make(body)
            found = self._plans.setdefault(id(body), (body, made))  # the body is kept, as its id is the key
        return found[1]
