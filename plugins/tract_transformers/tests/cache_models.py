"""Small models with caches, and the turns that are run on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tract_transformers.ops.kv_cache import DynKvCache

import tract_core as tract
from tract_core.api.model import Model
from tract_core.dims import symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.range import Range

Array = np.ndarray[Any, Any]

RUNTIMES = ("reference", "cpu")
P, S = symbol("P"), symbol("S")


def around(op: TypedOp, *facts: str) -> TypedModel:
    """One operator, with an input for each fact."""
    model = TypedModel()
    inputs = [model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("op", op, inputs))
    return model


def two_caches(keys: str = "1,2,S,4,f32", values: str = "1,2,S,4,f32") -> TypedModel:
    """The keys, twice the values, and the positions of the turn, numbered from the beginning."""
    model = TypedModel()
    facts = (parse_typed_fact(fact, model.symbols) for fact in (keys, values))
    k, v = map(model.add_source, "kv", facts)
    (all_keys,) = model.wire_node("keys", DynKvCache("past_keys", 2, P), [k])
    (all_values,) = model.wire_node("values", DynKvCache("past_values", 2, P), [v])
    two = model.add_const("two", np.full((1, 1, 1, 1), 2, np.float32))
    ends = [model.add_const("begin", P), model.add_const("end", P + S), model.add_const("one", np.array(1))]
    outputs = model.wire_node("key_sums", Add(), [all_keys, two]) + model.wire_node("twice", Mul(), [all_values, two])
    model.set_outputs([*outputs, *model.wire_node("positions", Range(S), ends)])
    return model


def state_of(model: TypedModel, runtime: str) -> tract.State:
    """A fresh state of a model."""
    return tract.runtime_for_name(runtime).prepare(Model(model.clone())).spawn_state()


def turn(state: tract.State, *inputs: Array) -> list[Array]:
    """The outputs of one turn."""
    return [np.asarray(one.to_numpy()) for one in state.run(list(inputs))]


def pieces(rng: np.random.Generator, shape: Sequence[int], axis: int, sizes: Sequence[int], kind: str) -> list[Array]:
    """Numbers for several turns, of which each has its size along an axis."""
    return [rng.normal(size=[*shape[:axis], size, *shape[axis + 1 :]]).astype(kind) for size in sizes]
