"""Wire two branches that may not go together.

Sizes that differ become new symbols. Where types or ranks differ, what the nodes behind can use decides
(`tract_core.model.choices`): they get what one of the branches gives. The other branch, if it gives a single element
too, is brought to its rank; else it is refused, alone: a run that takes it ends there, and is told what would be right.
The same becomes of a branch that cannot be typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_core.data import Value
from tract_core.data.containers import join_types
from tract_core.dims import Dim, is_symbolic, same_dim
from tract_core.errors import FactError, TractError
from tract_core.model.choices import choose, inside, is_about_facts, may_reconsider, questions
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.inline import inline_body
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.binary import Eq, Ge, Gt, Le, Lt, Ne
from tract_core.ops.cast import Cast
from tract_core.ops.check import Refuse
from tract_core.ops.if_then_else import Branch, IfThenElse, branch_facts, check_condition
from tract_core.ops.wiring import fresh_size, has_one_element, wire_reshape

Body = tuple[TypedModel, Sequence[OutletId]]
"""A branch: a model, and for each of its inputs the outlet around it that it reads."""

_LABELS: Final = ("then", "else")

BranchFn = Callable[[str, bool], Body]
"""``(name, in a scope of its own) -> branch``: what is found to be so in such a scope need not be so outside of it."""


def wire_branches(
    model: TypedModel, name: str, condition: OutletId, names: tuple[str, str], read: BranchFn
) -> Sequence[OutletId]:
    """Two branches of a frontend. The one that is taken stands in the node's place where the condition is known.

    ``names``: what the file calls the branch for a condition that holds, and the other one; ``read``: gives a branch by
    its name. Raises TractError.
    """
    taken = _taken(model, condition)
    if taken is not None:
        body, captured = read(names[0] if taken else names[1], False)
        return inline_body(model, body, captured)
    since = questions()
    then, other = (_branch(label, read) for label in names)
    return wire_if(model, name, condition, then, other, since=since)


def _taken(model: TypedModel, condition: OutletId) -> bool | None:
    """Whether the condition holds, where that is known. Raises FactError unless it has one element."""
    value = model.outlet_fact(condition).value
    if value is None:
        return None
    if value.array.size != 1:
        raise FactError(f"the condition of a branch has {value.array.size} elements, 1 is wanted")
    element = value.array.reshape(()).item()
    if is_symbolic(element):
        element = model.known.simplify(element)
    return None if is_symbolic(element) else bool(element)


def _branch(name: str, read: BranchFn) -> Body | TractError:
    """A branch, or why it cannot be typed. Raises TractError for what is wrong with it whatever the sizes."""
    try:
        with inside(name):
            return read(name, True)
    except TractError as error:
        if not is_about_facts(error):
            raise
        return error


def wire_if(
    model: TypedModel,
    name: str,
    condition: OutletId,
    then_branch: Body | TractError,
    else_branch: Body | TractError,
    *,
    since: int | None = None,
) -> tuple[OutletId, ...]:
    """Two branches as one `IfThenElse`; the error that says why, for one that cannot be typed.

    The bodies belong to the operator from now on. ``since``: what `questions` gave before they were made. Raises
    FactError when neither branch can be typed, or when the branches differ in number of outputs.
    """
    check_condition([model.outlet_fact(condition)])
    bodies = _without_untypable(model, condition, [then_branch, else_branch])
    facts = [_facts_of(model, condition, label, body) for label, body in zip(_LABELS, bodies, strict=True)]
    if len(facts[0]) != len(facts[1]):
        raise FactError(
            f"IfThenElse: the then branch has {len(facts[0])} outputs, the else branch {len(facts[1])}",
            hint="export the model again",
        )
    if not all(_alike(a, b) for a, b in zip(*facts, strict=True)):
        if since is not None and may_reconsider(since):
            raise FactError("the branches give tensors of different types or ranks")
        first = choose(_about(model, condition), len(_LABELS))
        bodies[1 - first] = _brought_to(model, condition, first, facts, bodies[1 - first])
    return _joined(model, name, condition, bodies)


def _joined(model: TypedModel, name: str, condition: OutletId, bodies: Sequence[Body]) -> tuple[OutletId, ...]:
    read = list(dict.fromkeys(outlet for _, outlets in bodies for outlet in outlets))
    then, other = (Branch(body, tuple(read.index(outlet) + 1 for outlet in outlets)) for body, outlets in bodies)
    inputs = [condition, *read]
    given = [model.outlet_fact(outlet) for outlet in inputs]
    shapes: list[tuple[Dim, ...]] = []
    pairs = zip(branch_facts("then", then, given), branch_facts("else", other, given), strict=True)
    for slot, (a, b) in enumerate(pairs):
        sizes = enumerate(zip(a.shape, b.shape, strict=True))
        shapes.append(tuple(_join(model, f"{name}.{slot}.{axis}", *pair) for axis, pair in sizes))
    return model.wire_node(name, IfThenElse(then, other, tuple(shapes)), inputs)


def _join(model: TypedModel, name: str, a: Dim, b: Dim) -> Dim:
    return a if same_dim(a, b) else fresh_size(model, name)


def _facts_of(model: TypedModel, condition: OutletId, label: str, branch: Body) -> list[TypedFact]:
    body, outlets = branch
    inputs = [model.outlet_fact(outlet) for outlet in (condition, *outlets)]
    return branch_facts(label, Branch(body, tuple(range(1, len(inputs)))), inputs)


def _without_untypable(model: TypedModel, condition: OutletId, branches: Sequence[Body | TractError]) -> list[Body]:
    """The branches, the one that cannot be typed as one that is refused. Raises FactError when neither can."""
    bodies = [branch for branch in branches if not isinstance(branch, TractError)]
    errors = [branch for branch in branches if isinstance(branch, TractError)]
    if not bodies:
        raise FactError("; ".join(f"the {label} branch: {_said(e)}" for label, e in zip(_LABELS, errors, strict=True)))
    if errors:
        failed = branches.index(errors[0])
        if choose(_about(model, condition), len(_LABELS), 1 - failed) == failed:
            raise errors[0]
        facts = _facts_of(model, condition, _LABELS[1 - failed], bodies[0])
        reason = f"the {_LABELS[failed]} branch cannot be computed: {_said(errors[0])}"
        bodies.insert(failed, _refused(model, condition, failed, reason, facts))
    return bodies


def _said(error: TractError) -> str:
    return f"{error.where}: {error.problem}" if error.where else error.problem


def _alike(a: TypedFact, b: TypedFact) -> bool:
    return join_types(a.datum_type, b.datum_type) is not None and a.rank == b.rank


def _brought_to(
    model: TypedModel, condition: OutletId, first: int, facts: Sequence[list[TypedFact]], other: Body
) -> Body:
    """What takes the place of the branch that is not ``first``, so that it gives what ``first`` gives."""
    body, outlets = other
    outputs = list(body.outputs)
    for slot, (wanted, found) in enumerate(zip(facts[first], facts[1 - first], strict=True)):
        if _alike(wanted, found):
            continue
        if join_types(wanted.datum_type, found.datum_type) is None or not (
            has_one_element(wanted) and has_one_element(found)
        ):
            what = f"{found} as output {slot}" if len(outputs) > 1 else str(found)
            reason = f"the {_LABELS[1 - first]} branch gives {what}, and what reads it takes {wanted}"
            return _refused(model, condition, 1 - first, reason, facts[first], sizes=found.shape)
        outputs[slot] = wire_reshape(body, f"{body.outlet_name(outputs[slot])}.rank", outputs[slot], wanted.shape)
    body.set_outputs(outputs)
    return body, outlets


def _refused(
    model: TypedModel,
    condition: OutletId,
    branch: int,
    reason: str,
    facts: Sequence[TypedFact],
    *,
    sizes: Sequence[Dim] = (),
) -> Body:
    """A branch that ends every run that takes it, with outputs of these facts."""
    body = model.empty_like()
    hint = f"give {_inputs_for(model, condition, holds=branch == 1)}"
    op = Refuse(reason, hint, tuple(fact.without_value() for fact in facts), tuple(sizes))
    body.set_outputs(body.wire_node(f"{_LABELS[branch]} branch", op, []))
    return body, ()


_SIGNS: Final[dict[type, str]] = {Eq: "==", Ne: "!=", Lt: "<", Gt: ">", Le: "<=", Ge: ">="}
_AS_IS: Final = (AddAxis, Cast, Identity, Reshape, RmAxis)


def _origin(model: TypedModel, condition: OutletId) -> OutletId:
    """Where a condition comes from, under other names and in other types."""
    while isinstance(model.producer(condition).op, _AS_IS):
        condition = model.producer(condition).inputs[0]
    return condition


def _about(model: TypedModel, condition: OutletId) -> str:
    """A name for a condition; conditions of one name hold together."""
    return _text(model.outlet_fact(condition).value) or model.outlet_name(_origin(model, condition))


def _inputs_for(model: TypedModel, condition: OutletId, *, holds: bool) -> str:
    """For which inputs the condition holds, or does not, for people."""
    answer = "is true" if holds else "is false"
    value = _text(model.outlet_fact(condition).value)
    if value is not None:
        return f"sizes for which {value} {answer}"
    condition = _origin(model, condition)
    producer = model.producer(condition)
    sign = _SIGNS.get(type(producer.op))
    if sign is None:
        return f"inputs for which {model.outlet_name(condition)!r} {answer}"
    sides = (_text(model.outlet_fact(side).value) or repr(model.outlet_name(side)) for side in producer.inputs)
    return f"inputs for which {f' {sign} '.join(sides)} {answer}"


def _text(value: Value | None) -> str | None:
    """A single known element, for people."""
    return None if value is None or value.array.size != 1 else str(value.array.reshape(()).item())
