"""What one agent gets must not depend on the others: proved by the table of axes, or tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import runtime_for_name
from tract_core.dims import substitute
from tract_core.errors import TractError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_inferers.models.follow import followed
from tract_inferers.models.policy import Policy
from tract_inferers.slots import Slot

Array = np.ndarray[Any, Any]

ROWS: Final = 5
"""Agents that are tried together: an odd number, which is the size of little else."""

_SCALES: Final = (1.0, 30.0, 0.1, -1.0, 3.0)
"""How large the observations of each are."""

_TRIES: Final = (*[(9, False)] * 8, *[(2, False)] * 8, *[(1, False)] * 8, *[(2, True)] * 8)
"""What observations are like, see `_random`: some models refuse some of these, as positions in a short list."""

_ENOUGH: Final = 8
"""How often agents are tried that may have met: outputs that choose among few tell of that now and then only."""

_MANY: Final = 1 << 24
"""Elements of all tensors from which on one try must do: NumPy takes a second or so for one."""

_MOST: Final = 1 << 28
"""Elements of a tensor in what is tried."""

ONE_BY_ONE: Final = "BasicInferer runs agents one by one, whatever the model is; or export it with an axis of agents"


def check_rows(policy: Policy, single: TypedModel | None) -> None:
    """Raises Unsupported where agents that run together do not get what each gets alone, and names the node.

    ``single``: the model for one agent where it was written for one, and its 1 became a symbol.

    Where they meet for certain, the model is refused. Where all nodes hand the axis of agents on, as the table of axes
    says, nothing more is to be asked, unless the model was written for one agent: what wiring decided by a size of 1 it
    may decide otherwise by a symbol. Where a node does not, the table leaves open whether the agents meet, or only
    stand elsewhere for a while, as in a reshape. So some of them are tried, together and alone, with random
    observations, as NumPy computes it, and without noise of the model's own. Where that cannot be done, the model is
    refused. Only noise that depends on more than sizes is left as it is, and a symbol of the file believed.
    """
    trail = followed(policy.typed, [0] * len(policy.inputs), policy.symbol)
    if trail.mixed is not None:
        raise _refused("so what one of them gets depends on the others", trail.mixed)
    if trail.lost is None and single is None:
        return
    policy = replace(policy, typed=_stilled(policy.typed))
    single = None if single is None else _stilled(single)
    if any(node.op.draws for node in policy.typed.live_nodes()):
        if trail.lost is not None and single is not None:
            raise _refused("and the model has noise of its own, so whether they meet cannot be tried", trail.lost)
        return
    enough = _ENOUGH if _elements(policy, trail.lost) < _MANY and trail.lost is not None else 1
    tries, problem = 0, ""
    for seed, (below, plain) in enumerate(_TRIES):
        given = [_random(seed, slot, below, plain=plain) for slot in policy.inputs]
        try:
            alone = _alone(policy, single, given)
        except TractError as error:
            problem = error.problem
            continue
        _compare(policy, given, alone, trail.lost)
        tries += 1
        if tries == enough:
            return
    if not tries:
        raise _refused(f"random observations, to try whether agents meet, are refused: {problem}", trail.lost)


def _elements(policy: Policy, lost: TypedNode | None) -> int:
    """Those of all tensors for the agents that are tried. Raises Unsupported where one has too many."""
    total, sizes = 0, {policy.symbol: ROWS}
    for node in policy.typed.live_nodes():
        for outlet in node.outputs:
            volume = substitute(outlet.fact.shape.volume, sizes)
            total += volume if isinstance(volume, int) else 0
            if isinstance(volume, int) and volume > _MOST:
                raise _refused(f"and {node.name!r} is too large to try whether they meet", lost)
    return total


def _stilled(model: TypedModel) -> TypedModel:
    """The model with one number in the place of noise that depends on nothing but sizes, and so can hide no agents."""
    if not any(_is_noise(node) for node in model.live_nodes()):
        return model
    quiet = model.clone()
    for node in [*filter(_is_noise, quiet.live_nodes())]:
        fact, patch = node.outputs[0].fact, ModelPatch(quiet)
        number = patch.model.add_const(
            f"{node.name}.number", np.full([1] * fact.rank, 0.5, fact.datum_type.storage.numpy)
        )
        (still,) = patch.wire(f"{node.name}.still", MultiBroadcastTo(tuple(fact.shape)), [number])
        patch.shunt(OutletId(node.id), still)
        patch.apply()
    return quiet


def _is_noise(node: TypedNode) -> bool:
    return node.op.draws and len(node.inputs) < 2 and node.outputs[0].fact.datum_type.is_float()


def check_sizes(model: TypedModel, name: str) -> None:
    """Raises Unsupported where a model, in which the symbol ``name`` is the number of agents, takes one only."""
    for condition, origin in model.conditions:
        for rows in (2, ROWS) if condition.symbols == frozenset([name]) else ():
            problem = condition.broken({name: rows})
            if problem is not None:
                raise Unsupported(f"does not take {rows} agents: {problem}", where=origin, hint=ONE_BY_ONE)


def _compare(policy: Policy, given: Sequence[Array], alone: Sequence[Array], lost: TypedNode | None) -> None:
    try:
        together = [tensor.to_numpy() for tensor in _runnable(policy.typed).run(list(given))]
    except TractError as error:
        raise Unsupported(f"does not take {ROWS} agents: {error.problem}", where=error.where, hint=ONE_BY_ONE) from None
    for slot, one, other in zip(policy.outputs, together, alone, strict=True):
        if not _near(one, other):
            raise _refused(f"output {slot.name!r} of one agent is another one when others are there", lost)


def _refused(problem: str, lost: TypedNode | None) -> Unsupported:
    if lost is None:
        return Unsupported(problem.removeprefix("and "), where="model", hint=ONE_BY_ONE)
    does = "computes along the axis of agents" if lost.inputs else "depends on how many agents there are"
    return Unsupported(f"{does}, {problem}", where=f"node {lost.name!r} ({lost.op.name})", hint=ONE_BY_ONE)


def _random(seed: int, slot: Slot, below: int, *, plain: bool) -> Array:
    """Observations of some agents: normal, but integers below ``below`` for what is no float, or for all: ``plain``."""
    random = np.random.default_rng(seed)
    shape = (ROWS, *slot.shape)
    if slot.dtype.kind in "biu" or plain:
        return random.integers(0, below if slot.dtype.kind != "b" else min(below, 2), shape).astype(slot.dtype)
    normal = random.standard_normal(shape, np.float32)
    return (normal * np.array(_SCALES, np.float32).reshape(-1, *[1] * len(slot.shape))).astype(slot.dtype)


def _alone(policy: Policy, single: TypedModel | None, given: Sequence[Array]) -> list[Array]:
    """The outputs of agents that run one after the other, with them along axis 0."""
    model = policy.typed.substitute({policy.symbol: 1}) if single is None else single
    shapes = [model.outlet_fact(outlet).shape.concrete for outlet in model.inputs]
    runnable = _runnable(model)
    rows: list[list[Array]] = []
    for row in range(ROWS):
        inputs = [array[row].reshape(shape) for array, shape in zip(given, shapes, strict=True)]
        rows.append([tensor.to_numpy() for tensor in runnable.run(inputs)])
    return [
        np.stack([array.reshape(slot.shape) for array in column])
        for slot, column in zip(policy.outputs, zip(*rows, strict=True), strict=True)
    ]


def _runnable(model: TypedModel) -> Runnable:
    return runtime_for_name("reference", model.registry).prepare(Model(model.clone()))


def _near(one: Array, other: Array) -> bool:
    """Whether what each agent gets is the same but for rounding."""
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    tolerance = float(np.sqrt(np.finfo(one.dtype).eps)) if one.dtype.kind == "f" else 1e-2
    finite = np.where(np.isfinite(other), np.abs(other), 0)
    scale = finite.max(axis=tuple(range(1, other.ndim)), keepdims=True, initial=0)
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
