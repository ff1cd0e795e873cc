"""The small models that the tests of the contract run, and what they must compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tract_core.dims import Dim, symbol
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Exp, Sqrt, Tanh
from tract_core.ops.gather import Gather
from tract_core.ops.non_zero import NonZero
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.tile import Tile
from tract_core.plugins.keys import Array
from tract_core.plugins.registry import Registry


@dataclass(frozen=True, slots=True)
class Unheard(TypedOp):
    """An operator that no table knows."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's."""
        return (inputs[0],)


@dataclass(frozen=True, slots=True)
class Unseen(Unheard):
    """Another one."""


def empty(registry: Registry) -> TypedModel:
    """A model without nodes."""
    return TypedModel(registry=registry)


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    """A new input."""
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def ones(*shape: int) -> Array:
    """An array of f32."""
    return np.ones(shape, np.float32)


def sum_of_exponentials(registry: Registry) -> TypedModel:
    """exp(a) + exp(b) for two inputs ``N,3,f32``."""
    model = empty(registry)
    inputs = [source(model, name, "N,3,f32") for name in ("a", "b")]
    terms = [model.wire_node(f"exp_{slot}", Exp(), [outlet])[0] for slot, outlet in enumerate(inputs)]
    model.set_outputs(model.wire_node("sum", Add(), terms))
    return model


def as_many_rows(registry: Registry) -> TypedModel:
    """exp(a) for ``a: N,3,f32``, where ``b: M,3,f32`` must have as many rows: of what joins both, nothing is read."""
    model = empty(registry)
    a, b = source(model, "a", "N,3,f32"), source(model, "b", "M,3,f32")
    model.wire_node("joined", TypedConcat(1), [a, b])
    model.set_outputs(model.wire_node("exp", Exp(), [a]))
    return model


def as_many_places(registry: Registry) -> TypedModel:
    """Where ``x: 4,f32`` is not 0: at as many places as ``at: 1,N,i64`` has, joined with which nothing is read."""
    model = empty(registry)
    x, at = source(model, "x", "4,f32"), source(model, "at", "1,N,i64")
    found = model.wire_node("places", NonZero(model.symbols.new_symbol("count")), [x])
    model.wire_node("joined", TypedConcat(0), [*found, at])
    model.set_outputs(found)
    return model


def repeated_places(registry: Registry) -> TypedModel:
    """Where ``x: 4,f32`` is not 0, ten times: the node ``repeated`` gives ``count`` times ten places, of 8 bytes."""
    model = empty(registry)
    x = source(model, "x", "4,f32")
    found = model.wire_node("places", NonZero(model.symbols.new_symbol("count")), [x])
    model.set_outputs(model.wire_node("repeated", Tile((1, 10)), found))
    return model


def three_tensors(registry: Registry) -> TypedModel:
    """exp(x) for ``x: N,f32``, its square root, and the tanh of that: all of them are outputs."""
    model = empty(registry)
    found = model.wire_node("exp", Exp(), [source(model, "x", "N,f32")])
    roots = model.wire_node("roots", Sqrt(), found)
    model.set_outputs([*found, *roots, *model.wire_node("tanh", Tanh(), roots)])
    return model


def running_sums(registry: Registry) -> TypedModel:
    """The sums of all rows so far of ``x: S,2,f32``, from ``start: 1,2,f32`` on; a loop keeps them between turns."""
    body = TypedModel(registry=registry)
    row, total = (source(body, name, "1,2,f32") for name in ("row", "total"))
    body.set_outputs(body.wire_node("add", Add(), [row, total]))
    model = empty(registry)
    x, start = source(model, "x", "S,2,f32"), source(model, "start", "1,2,f32")
    mapped = OutputMapping(state=True, full=FullOutput(0, 0))
    model.set_outputs(model.wire_node("sums", Scan(body, (ScannedInput(0), StateInput()), (mapped,)), [x, start]))
    return model


def as_wide_as_told(registry: Registry) -> TypedModel:
    """``x: 1,f32``, repeated as often as a symbol says that no input tells."""
    model = empty(registry)
    model.symbols.add("TOLD")
    x = source(model, "x", "1,f32")
    model.set_outputs(model.wire_node("repeated", MultiBroadcastTo((symbol("TOLD"),)), [x]))
    return model


def picked_rows(registry: Registry) -> TypedModel:
    """The rows of ``x: N,3,f32`` at the places ``at: K,i64``. The node ``pick`` fails for places that are not there."""
    model = empty(registry)
    x, at = source(model, "x", "N,3,f32"), source(model, "at", "K,i64")
    model.set_outputs(model.wire_node("pick", Gather(0), [x, at]))
    return model


def picked_inside(registry: Registry) -> TypedModel:
    """The same in the body of a node ``inner``."""
    model = empty(registry)
    inputs = [source(model, "x", "N,3,f32"), source(model, "at", "K,i64")]
    model.set_outputs(model.wire_node("inner", SubmodelOp(picked_rows(registry)), inputs))
    return model


def stretched_inside(registry: Registry) -> TypedModel:
    """``x: N,3,f32`` plus ``row: 3,f32``, which a body makes N rows of: there, N is known from outside alone."""
    body = TypedModel(registry=registry)
    rows: Sequence[Dim] = (symbol("N"), 3)
    body.set_outputs(body.wire_node("rows", MultiBroadcastTo(tuple(rows)), [source(body, "row", "3,f32")]))
    model = empty(registry)
    x, row = source(model, "x", "N,3,f32"), source(model, "row", "3,f32")
    model.set_outputs(model.wire_node("sum", Add(), [x, *model.wire_node("inner", SubmodelOp(body), [row])]))
    return model


def views(registry: Registry) -> TypedModel:
    """Three outputs of ``x: N,3,f32``: itself, with its axes exchanged, and what a body makes of it: the same."""
    body = TypedModel(registry=registry)
    body.set_outputs([source(body, "inside", "N,3,f32")])
    model = empty(registry)
    x = source(model, "x", "N,3,f32")
    turned = model.wire_node("turned", MoveAxis(0, 1), [x])
    model.set_outputs([x, *turned, *model.wire_node("inner", SubmodelOp(body), [x])])
    return model


def plus_constant(registry: Registry, array: Array) -> TypedModel:
    """``x: 3,4,f32`` plus a constant, whose array lies in memory as it was given."""
    model = empty(registry)
    held = model.add_const("held", array)
    model.set_outputs(model.wire_node("sum", Add(), [source(model, "x", "3,4,f32"), held]))
    return model


def layouts() -> dict[str, Any]:
    """Arrays of shape 3,4 that lie in memory in unusual ways, by name."""
    plain = np.arange(12, dtype=np.float32).reshape(3, 4)
    memory = bytearray(plain.nbytes + 1)
    unaligned = np.frombuffer(memory, np.uint8, offset=1).view(np.float32).reshape(3, 4)
    unaligned[...] = plain
    return {
        "unaligned": unaligned,
        "transposed": np.arange(12, dtype=np.float32).reshape(4, 3).T,
        "stride 0": np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4)),
        "backwards": plain[::-1],
    }
