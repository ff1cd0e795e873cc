"""Loops that end when a condition says so."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar, Final

import numpy as np

from tract_core.data import Container, DType, OptionalType
from tract_core.data.containers import compatible_types, forget_symbols, join_types
from tract_core.dims import Dim, bind, dim_max, evaluate, same_dim, symbols_of
from tract_core.errors import FactError, LimitExceeded, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.bodies import OpWithBodies, body_cost, from_outside, own_symbols, sizes_outside
from tract_core.model.conditions import may_equal, noting
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.session import Session
from tract_core.model.typed import TypedModel
from tract_core.ops.optional import OptionalConstruct
from tract_core.ops.scan import forgetful
from tract_core.ops.wiring import fresh_size, has_one_element, wire_one, wire_reshape
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

MAX_ITERATIONS: Final = 1 << 32
"""Iterations of a loop whose condition never becomes false: more would take days."""

MAX_ROUNDS: Final = 1000
"""How often bodies are wired in all, for one loop and the loops inside it, to find out which sizes change."""

MAX_ATTEMPTS: Final = 32
"""How often the body of one loop is wired for that. Networks need it two or three times; where each carried value is
handed on to the next, every one of them takes an attempt more."""


@frozen
class Loop(OpWithBodies):
    """Run ``body`` until its first output is false, and at most as often as input 0 says.

    Inputs: the highest number of iterations (one integer), whether to begin at all (one boolean), ``carried`` values
    that the iterations hand on, and values that every iteration sees. The body takes the number of the iteration (an
    integer, from 0), the carried values and the others, and gives: whether to go on (one boolean), the carried values
    for the next iteration, ``last`` values of which only those of the last iteration count, and values to collect.
    Outputs: the carried values at the end, the last values, then each collected value of all iterations along a new
    first axis. A run without iterations has no last values, so it is refused unless ``last`` is 0.

    ``count``: the number of iterations. ``shapes``: the sizes of each output. Where only the run can tell one of these
    numbers, it is a symbol, which `wire_loop` makes. Iterations hand on nothing but the carried values.
    """

    body: TypedModel
    carried: int
    count: Dim
    shapes: tuple[tuple[Dim, ...], ...]
    last: int = 0
    announces: ClassVar[tuple[str, ...]] = ("count", "shapes")

    @property
    def keeps(self) -> bool:
        """Each turn begins anew, in the body too."""
        return False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Carried, last and collected values, in ``shapes``. Raises FactError when inputs and body do not fit."""
        outside = self.sizes(inputs)
        outer = _symbols(inputs)
        facts = [self.body.outlet_fact(outlet).substitute(outside) for outlet in self.body.outputs]
        _check_condition(facts[0])
        found: list[TypedFact] = []
        for start, end in zip(inputs[2 : 2 + self.carried], facts[1 : 1 + self.carried], strict=True):
            kind = join_types(start.datum_type, forget_symbols(end.datum_type, outer))
            if kind is None or start.rank != end.rank:
                raise FactError(f"Loop: the carried value {len(found)} is {start} at first, the body gives {end} back")
            found.append(TypedFact.of(kind, end.shape))
        found += facts[1 + self.carried : 1 + self.carried + self.last]
        found += [_collected(fact, self.count) for fact in facts[1 + self.carried + self.last :]]
        if [fact.rank for fact in found] != [len(shape) for shape in self.shapes]:
            raise FactError(f"Loop: the body gives {'; '.join(map(str, found))}, shapes of other ranks are announced")
        return tuple(fact.with_shape(shape) for fact, shape in zip(found, self.shapes, strict=True))

    def sizes(self, inputs: Sequence[TypedFact]) -> dict[str, Dim]:
        """What the symbols of the body are outside, if they mean the same in all iterations. Raises FactError."""
        body = self.body
        if len(body.inputs) + 1 != len(inputs) or not (
            self.carried + 1 < len(inputs) and self.carried + self.last < len(body.outputs)
        ):
            raise FactError(
                f"Loop: a body of {len(body.inputs)} inputs and {len(body.outputs)} outputs, of which {self.carried} "
                f"are carried, does not fit {len(inputs)} inputs"
            )
        limit, begin = inputs[:2]
        if not limit.datum_type.is_integer() or not _is_single(limit):
            raise FactError(f"Loop wants one integer as the number of iterations, found {limit}")
        _check_condition(begin)
        outside: dict[str, Dim] = {}
        for slot in [*range(1 + self.carried, len(body.inputs)), *range(1, 1 + self.carried)]:
            with noting():  # iterations that do not run want nothing
                found = sizes_outside(body, slot, inputs[slot + 1], outside)
            if found is None:
                wanted, name = body.outlet_fact(body.inputs[slot]), body.outlet_name(body.inputs[slot])
                raise FactError(f"Loop: input {slot + 1} is {inputs[slot + 1]}, the body wants {wanted} as {name!r}")
            if slot > self.carried:  # the sizes of carried values at the start say nothing of those in later iterations
                outside = found
        return outside


def _is_single(fact: TypedFact) -> bool:
    return not any(not may_equal(size, 1) for size in fact.shape)


def _check_condition(fact: TypedFact) -> None:
    if not fact.datum_type.is_bool() or not _is_single(fact):
        raise FactError(f"Loop wants one boolean as condition, found {fact}")


def _symbols(facts: Sequence[TypedFact]) -> frozenset[str]:
    return frozenset[str]().union(*(fact.symbols() for fact in facts))


def _collected(fact: TypedFact, count: Dim) -> TypedFact:
    if isinstance(fact.datum_type, Container):
        raise FactError(
            f"Loop cannot collect values of {fact}: only tensors can be joined",
            hint="carry a sequence, and insert the values into it",
        )
    return fact.with_shape((count, *fact.shape))


BodyFn = Callable[[Sequence[TypedFact]], "tuple[TypedModel, Sequence[OutletId]]"]
"""``facts of the carried values -> body, and the outlets that its last inputs read`` (those after the carried ones)."""


def wire_loop(
    model: TypedModel,
    name: str,
    limit: OutletId,
    begin: OutletId,
    carried: Sequence[OutletId],
    *,
    make_body: BodyFn,
    untaken: AbstractSet[int] = frozenset(),
    unread: AbstractSet[int] = frozenset(),
) -> list[OutletId | None]:
    """A `Loop`. Returns the carried values at the end, then the collected ones.

    ``make_body`` is called with what the carried values are at first. Where the body it makes gives a value of another
    size back, that size becomes a symbol, and ``make_body`` is called again, until what it is given holds in all
    iterations. Sizes that begin alike and change alike share a symbol. A value of one element keeps the rank that it
    begins with.

    ``untaken``: carried values that the body does not look at, so that they may begin with any type and rank.
    ``unread``: carried values that nothing reads after the loop; ``None`` may stand in their place in what is returned.

    Raises FactError when a type or a rank changes, LimitExceeded when loops inside loops need too many attempts.
    """
    start = [model.outlet_fact(outlet).without_value() for outlet in carried]
    changing = _Changing(model, name, start, untaken)
    attempts = 0
    with _counting() as count_round:
        while True:
            attempts += 1
            count_round(name, attempts)
            body, captured = make_body(changing.facts)
            outer = _symbols([*start, *(model.outlet_fact(outlet) for outlet in captured)])
            _make_optional(body, changing.facts)
            _keep_ranks(body, changing.facts)
            if not changing.widen(body, outer):
                break
    last = [slot for slot in changing.late if slot not in unread]
    kept = [slot for slot in range(len(carried)) if slot not in changing.late]
    count = _count(model, name, model.outlet_fact(limit), model.outlet_fact(begin), body)
    at_end = changing.shapes_at_end(body, count, outer)
    collected = _reorder(body, len(carried), kept, last)
    shapes = [at_end[slot] for slot in kept]
    for slot, outlet in enumerate(body.outputs[1 + len(kept) :], start=-len(last)):
        sizes = body.outlet_fact(outlet).shape
        label = f"{name}_all{slot}" if slot >= 0 else f"{name}_last{last[slot]}"
        fixed = [dim if symbols_of(dim) <= outer else fresh_size(model, label) for dim in sizes]
        shapes.append((count, *fixed) if slot >= 0 else tuple(fixed))
    op = Loop(forgetful(body), len(kept), count, tuple(shapes), len(last))
    found = model.wire_node(name, op, [limit, begin, *(carried[slot] for slot in kept), *captured])
    place = dict(zip((*kept, *last), found, strict=False))
    return [*(place.get(slot) for slot in range(len(carried))), *found[len(found) - collected :]]


def _reorder(body: TypedModel, carried: int, kept: Sequence[int], last: Sequence[int]) -> int:
    """Let a body carry only those of its values that are ``kept``, and give those that are ``last`` after them.

    Returns the number of values that it gives to be collected.
    """
    condition, *given = body.outputs
    body.inputs = [body.inputs[0], *(body.inputs[1 + slot] for slot in kept), *body.inputs[1 + carried :]]
    body.set_outputs([condition, *(given[slot] for slot in (*kept, *last)), *given[carried:]])
    return len(given) - carried


def _count(model: TypedModel, name: str, limit: TypedFact, begin: TypedFact, body: TypedModel) -> Dim:
    """The number of iterations: a fresh symbol, unless the limit is known and no condition can end the loop earlier."""
    if begin.constant is not None and not begin.constant.any():
        return 0
    if begin.constant is not None and never_ends(body) and limit.dims is not None:
        return dim_max(limit.dims[0], 0)
    return fresh_size(model, f"{name}_count")


def never_ends(body: TypedModel) -> bool:
    """Whether the condition that a body gives surely holds, so that only the number of iterations ends the loop."""
    condition = body.outlet_fact(body.outputs[0]).constant
    return condition is not None and bool(condition.all())


def _make_optional(body: TypedModel, facts: Sequence[TypedFact]) -> None:
    """Where an optional is carried and the body gives a value that is none, wrap that value in an optional."""
    for slot, fact in enumerate(facts[: len(body.outputs) - 1], start=1):
        found = body.outlet_fact(body.outputs[slot]).datum_type
        if isinstance(fact.datum_type, OptionalType) and not isinstance(found, OptionalType):
            body.outputs[slot] = wire_one(body, f"carried{slot}.optional", OptionalConstruct(), body.outputs[slot])


def _keep_ranks(body: TypedModel, facts: Sequence[TypedFact]) -> None:
    """Bring values of one element to the rank that they began with."""
    for slot, fact in enumerate(facts[: len(body.outputs) - 1], start=1):
        found = body.outlet_fact(body.outputs[slot])
        if found.rank != fact.rank and has_one_element(found) and has_one_element(fact):
            body.outputs[slot] = wire_reshape(body, f"carried{slot}.rank", body.outputs[slot], fact.shape)


def _goes_with(a: TypedFact, b: TypedFact) -> bool:
    return a.rank == b.rank and join_types(a.datum_type, b.datum_type) is not None


class _Changing:
    """What holds for the carried values in every iteration: ``facts``, which `widen` makes less precise.

    ``late``: the values whose type or rank at first is not the one that an iteration gives. No iteration looks at them.
    """

    def __init__(self, model: TypedModel, name: str, start: Sequence[TypedFact], untaken: AbstractSet[int]) -> None:
        self._model = model
        self._name = name
        self._start = list(start)
        self._untaken = untaken
        self.late: list[int] = []
        self._symbols: set[Dim] = set()
        self.facts = list(start)

    def widen(self, body: TypedModel, outer: frozenset[str]) -> bool:
        """Let ``facts`` hold for what ``body`` gives back too. Returns whether they changed: it must be made again."""
        if len(body.outputs) <= len(self.facts):
            raise FactError(f"Loop: the body has {len(body.outputs)} outputs, {1 + len(self.facts)} are wanted")
        after = [body.outlet_fact(outlet) for outlet in body.outputs[1 : 1 + len(self.facts)]]
        before = list(self.facts)
        for slot, end in enumerate(after):
            if slot in self._untaken and not _goes_with(self.facts[slot], end):
                self.late.append(slot)
                self._start[slot] = self.facts[slot] = end.without_value()
        kinds = [
            self._common_type(slot, fact, forget_symbols(end.datum_type, outer), end)
            for slot, (fact, end) in enumerate(zip(self.facts, after, strict=True))
        ]
        shapes = self._common_shapes(after)
        self.facts = [TypedFact.of(kind, shape) for kind, shape in zip(kinds, shapes, strict=True)]
        return self.facts != before

    def _common_type(self, slot: int, fact: TypedFact, kind: DType, end: TypedFact) -> DType:
        joined = join_types(fact.datum_type, kind)
        if joined is None or fact.rank != end.rank:
            raise FactError(
                f"Loop: the carried value {slot} is {self._start[slot]} at first, the body gives {end} back",
                hint="element type and rank of a carried value must be the same in all iterations",
            )
        return fact.datum_type if compatible_types(joined, fact.datum_type) and joined == fact.datum_type else joined

    def _common_shapes(self, after: Sequence[TypedFact]) -> list[tuple[Dim, ...]]:
        """The shapes of the carried values, with a symbol for each size that changes.

        Sizes that begin alike and change alike share a symbol. A symbol of an earlier attempt is used again, for the
        first of them.
        """
        symbol_for: dict[tuple[Dim, Dim], Dim] = {}
        taken: set[Dim] = set()

        def common(place: str, size: Dim, end: Dim) -> Dim:
            if same_dim(size, end):
                taken.add(size)
                return size
            if (size, end) not in symbol_for:
                reuse = size in self._symbols and size not in taken
                symbol = size if reuse else fresh_size(self._model, f"{self._name}_{place}")
                taken.add(symbol)
                self._symbols.add(symbol)
                symbol_for[size, end] = symbol
            return symbol_for[size, end]

        pairs = [list(zip(fact.shape, end.shape, strict=True)) for fact, end in zip(self.facts, after, strict=True)]
        taken.update(size for row in pairs for size, end in row if same_dim(size, end))
        return [
            tuple(common(f"{slot}_{axis}", *pair) for axis, pair in enumerate(row)) for slot, row in enumerate(pairs)
        ]

    def shapes_at_end(self, body: TypedModel, count: Dim, outer: frozenset[str]) -> list[tuple[Dim, ...]]:
        """The sizes of the carried values when the loop has ended. ``count``: the number of iterations."""
        symbol_for: dict[Dim, Dim] = {}

        def at_end(place: str, first: Dim, size: Dim, end: Dim) -> Dim:
            if size not in self._symbols:
                return size
            growth = end - size
            if symbols_of(growth) | symbols_of(count) <= outer:
                return first + growth * count
            if size not in symbol_for:
                symbol_for[size] = fresh_size(self._model, f"{self._name}_{place}")
            return symbol_for[size]

        ends = [body.outlet_fact(outlet) for outlet in body.outputs[1 : 1 + len(self.facts)]]
        return [
            tuple(
                at_end(f"{slot}_{axis}", *sizes)
                for axis, sizes in enumerate(zip(start.shape, fact.shape, end.shape, strict=True))
            )
            for slot, (start, fact, end) in enumerate(zip(self._start, self.facts, ends, strict=True))
        ]


_ROUNDS: ContextVar[list[int] | None] = ContextVar("rounds", default=None)


@contextmanager
def _counting() -> Generator[Callable[[str, int], None]]:
    """Count how often bodies are made for the outermost loop, as the attempts of loops inside loops multiply."""
    rounds = _ROUNDS.get()
    token = _ROUNDS.set([0]) if rounds is None else None
    rounds = _ROUNDS.get() or [0]

    def count_round(name: str, attempts: int) -> None:
        rounds[0] += 1
        if attempts > MAX_ATTEMPTS:
            raise LimitExceeded(f"{MAX_ATTEMPTS} attempts did not settle the sizes that the loop carries", where=name)
        if rounds[0] > MAX_ROUNDS:
            raise LimitExceeded(f"loops inside loops: {MAX_ROUNDS} attempts did not settle their sizes", where=name)

    try:
        yield count_round
    finally:
        if token is not None:
            _ROUNDS.reset(token)


class LoopState:
    """A running loop. It keeps nothing between turns."""

    def __init__(self, op: Loop, session: Session) -> None:
        self.op = op
        self.plan = session.plan_of(op.body)

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """All iterations of one turn."""
        op = self.op
        limit, going = int(inputs[0].reshape(())), bool(inputs[1].reshape(()))
        carried, others = list(inputs[2 : 2 + op.carried]), inputs[2 + op.carried :]
        last: list[Array] = []
        collected: list[list[Array]] = [[] for _ in op.body.outputs[1 + op.carried + op.last :]]
        endless = never_ends(op.body)
        if going and endless:
            _check_limit(limit)
        body, iteration = self.plan.spawn(), op.body.outlet_fact(op.body.inputs[0])
        index = 0
        while going and index < limit:
            number = np.full([1] * iteration.rank, index, iteration.datum_type.numpy)
            condition, *found = body.run([number, *carried, *others], symbols=session.symbols)
            carried, last = found[: op.carried], found[op.carried : op.carried + op.last]
            index += 1
            for pieces, piece in zip(collected, found[op.carried + op.last :], strict=True):
                check_tensor((limit if endless else index, *piece.shape), piece.itemsize)
                pieces.append(piece)
            going = bool(condition.reshape(()))
        if op.last and not index:
            raise RunError(
                "the loop makes no iteration, and a value that it would hand on has another type or rank at first",
                hint="give inputs for which it makes at least one, or export the model with values of one rank",
            )
        return (*carried, *last, *self._joined(session, inputs[2:], collected))

    def _joined(self, session: Session, first: Sequence[Array], collected: list[list[Array]]) -> list[Array]:
        """Each collected value of all iterations, as one tensor. ``first``: what a first iteration is given."""
        results: list[Array] = []
        for slot, pieces in enumerate(collected):
            shapes = {piece.shape for piece in pieces}
            if len(shapes) > 1:
                raise RunError(
                    f"collected value {slot} has shape {pieces[0].shape} in the first iteration, and "
                    f"{next(piece.shape for piece in pieces if piece.shape != pieces[0].shape)} in a later one"
                )
            results.append(np.stack(pieces) if pieces else self._nothing(session, first, slot))
        return results

    def _nothing(self, session: Session, first: Sequence[Array], slot: int) -> Array:
        """What a loop without iterations collects: no elements. Sizes that only an iteration could tell are 0."""
        fact = self.op.body.outlet_fact(self.op.body.outputs[1 + self.op.carried + self.op.last + slot])
        symbols = from_outside(own_symbols(self.op.body), session.symbols)
        facts = [self.op.body.outlet_fact(outlet) for outlet in self.op.body.inputs[1:]]
        for wanted, array in zip(facts, first, strict=True):
            symbols = bind(wanted.shape, array.shape, symbols)
        shape = [evaluate(dim, symbols) if symbols_of(dim) <= symbols.keys() else 0 for dim in fact.shape]
        return np.zeros([0, *shape], fact.datum_type.numpy)

    def freeze(self) -> None:
        """Nothing is kept."""

    def thaw(self, frozen: None) -> None:
        """Nothing was kept."""


def _check_limit(limit: int) -> None:
    if limit > MAX_ITERATIONS:
        raise RunError(
            f"the loop would run {limit} times: its condition never becomes false",
            hint="check the number of iterations that the model is given",
        )


@ROWS.row(STATE, Loop)
def loop_state(op: Loop, session: Session) -> LoopState:
    """A loop that has not begun."""
    return LoopState(op, session)


@ROWS.row(COST, Loop)
def cost(op: Loop, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """What the body costs, times the number of iterations; its parameters count once."""
    found = body_cost(op.body, op.sizes(inputs))
    return {kind: cost if kind.startswith("PARAMS") else cost * op.count for kind, cost in found.items()}


@ROWS.row(AXES, Loop)
def axes(op: Loop, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing is said: an axis would have to pass every iteration in the same way."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
