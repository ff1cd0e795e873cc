"""What every operator answers.

An operator is a frozen dataclass: its fields are all that changes its meaning. Every other question about it (NumPy
meaning, cost, axes, simplifications, how a file format spells it) is a row in a table keyed by its type; see
`tract_core.plugins.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, cast

from tract_core.errors import FactError
from tract_core.model.fact import TypedFact


class Op:
    """A base operation: anything that can sit in a node."""

    @property
    def name(self) -> str:
        """What listings call the operator: the name of its class unless it says otherwise."""
        return type(self).__name__


class TypedOp(Op):
    """An operator of a `TypedModel`.

    ``pure``: whether equal inputs always give equal outputs with no other effect, so that the node may be computed
    early (folded) or once for two (merged). Operators with a row in the ``state`` table are never folded either.

    ``unpacks``: whether the inputs hold the same as the outputs in less memory, as weights in blocks of four bits. The
    node is not computed early where that would take the memory that was saved.

    ``announces``: names of fields that hold sizes of the outputs which only running the node tells. The meaning does
    not read them; their symbols, where nothing else gives them a value, get it from the shapes of the outputs.

    ``tells``: names of fields that hold sizes which the state tells before the first node of a turn runs, as how many
    positions a cache holds. Each is one symbol, or a multiple of it with a constant. An operator that does has a row of
    the ``state`` table, whose states are `tract_core.model.session.TellingState`.

    ``checks``: whether running the node refuses runs that the rest of the model takes for impossible. It runs even
    where nothing reads it, until a rule has found that it cannot refuse anything (`ModelPatch.retire`).

    ``judges``: the inputs, by slot, for whose elements a run may be refused, as for a position outside of an axis. A
    rewrite does not leave the node unread, nor let it see other elements there.

    ``makes_outputs``: whether the meaning makes new arrays for the outputs, so that their memory is known beforehand.
    It does not where it gives views on its inputs, or what the nodes of a body have made.

    ``by_element``: whether each element of its one output depends on the elements at that place of the inputs alone,
    which have its rank, and whose axes of size 1 stretch. Then the meaning may be asked for one part after the other.
    """

    pure: ClassVar[bool] = True
    makes_outputs: ClassVar[bool] = True
    by_element: ClassVar[bool] = False
    unpacks: ClassVar[bool] = False
    checks: ClassVar[bool] = False
    judges: ClassVar[tuple[int, ...]] = ()
    announces: ClassVar[tuple[str, ...]] = ()
    tells: ClassVar[tuple[str, ...]] = ()

    @property
    def draws(self) -> bool:
        """Whether it draws numbers at random, others in every run, and each by itself.

        So those at one position of an axis that input and output have in common say nothing of those at another one.
        An operator that does is not ``pure``.
        """
        return False

    @property
    def keeps(self) -> bool:
        """Whether its state, where it has a row in the ``state`` table, is another one after a turn than before it."""
        return True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The facts of the outputs, from those of the inputs. Raises FactError when the inputs do not fit."""
        raise NotImplementedError


_RIGHT: Final[set[type]] = set()
"""The classes that were looked at, and are right."""


def check_operator(op: object, home: Callable[[type], str]) -> None:
    """Raises FactError unless ``op`` is a frozen dataclass derived from `TypedOp` whose fields can be hashed.

    ``home``: for a class, how messages call it, with the distribution that it is from.

    Equal operators on equal inputs are merged, and an operator is shared between models: so it can be compared, and
    nobody changes it.
    """
    kind = type(op)
    if kind not in _RIGHT:
        wrong = op if isinstance(op, type) else kind
        problem = "it is a class, wanted an instance of it" if wrong is op else what_is_wrong_with(wrong)
        if problem is not None:
            raise FactError(f"{home(wrong)} is no operator: {problem}", hint=how_to_write(wrong))
        _RIGHT.add(kind)
    try:
        hash(op)
    except TypeError as error:
        hint = "let its fields hold tuples instead of lists, and arrays as tract_core.data.Constant"
        raise FactError(f"{home(kind)} cannot be compared: {error}", hint=hint) from None


def how_to_write(kind: type) -> str:
    """What to do about a class that is no operator."""
    name = kind.__name__
    return f"write it as @dataclass(frozen=True) above class {name}(TypedOp), and make one with {name}(...)"


def what_is_wrong_with(kind: type) -> str | None:
    """Why the instances of a class are no operators, or ``None``."""
    if TypedOp not in kind.__mro__:
        return "it is not derived from tract_core.model.op.TypedOp"
    if getattr(kind, "output_facts", None) is TypedOp.output_facts:
        return "it has no method output_facts"
    params = getattr(kind, "__dataclass_params__", None)
    if params is None:
        return "it is no dataclass"
    if not params.frozen:
        return "it is a dataclass that can be changed"
    return None if "__dataclass_params__" in vars(kind) or not _has_fields(kind) else "it is no dataclass"


def _has_fields(kind: type) -> bool:
    """Whether a class says of itself that it has fields, which only the decorator of dataclasses makes true."""
    return any("ClassVar" not in str(text) for text in kind.__annotations__.values())


def check_facts(op: Op, outputs: object, home: Callable[[type], str]) -> tuple[TypedFact, ...]:
    """What ``output_facts`` of an operator returned: at least one fact. Raises FactError, saying what it is instead."""
    found = _a(outputs)
    if isinstance(outputs, TypedFact):
        found = "a fact that is in no tuple"
    elif outputs.__class__ in (tuple, list):
        items = cast("Sequence[object]", outputs)
        other = [one for one in items if not isinstance(one, TypedFact)]
        if items and not other:
            return tuple(cast("Sequence[TypedFact]", items))
        found = f"{found} with {_a(other[0])}" if other else "no fact at all"
    hint = f"have output_facts of {type(op).__name__} return a tuple with one TypedFact per output"
    raise FactError(f"output_facts of {home(type(op))} returned {found}, wanted a tuple of facts", hint=hint)


def arity(op: Op, inputs: Sequence[TypedFact], count: int) -> Sequence[TypedFact]:
    """``inputs``, when there are ``count`` of them. Raises FactError otherwise."""
    if len(inputs) != count:
        raise FactError(f"{op.name} takes {count} inputs, {len(inputs)} were given")
    return inputs


def _a(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
