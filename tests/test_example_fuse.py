"""The runtime ``fuse`` of the examples, compared with the interpreter, whose arrays lie each for itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Max
from tract_core.ops.elementwise import Neg, Tanh
from tract_core.ops.softmax import Softmax
from tract_core.runtime.plan import TypedSimplePlan

pytestmark = pytest.mark.usefixtures("fuse_installed")


def plan_of(model: TypedModel, block: int = 5) -> Any:
    from tract_fuse.runtime import FuseRuntime  # pyright: ignore[reportMissingImports]: made by the fixture

    return FuseRuntime(block).prepare(model)


def drawn(seed: int) -> TypedModel:
    """Operators of all kinds, views among them, on tensors that are long or have one element."""
    rolls, model = random.Random(seed), TypedModel()
    tensors = [model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in INPUTS.items()]
    for number in range(rolls.randint(2, 14)):
        op = rolls.choice([Add(), Max(), Neg(), Tanh(), Softmax((1,)), MoveAxis(0, 0)])
        tensors += model.wire_node(f"n{number}", op, rolls.choices(tensors, k=2 if op.name in {"Add", "Max"} else 1))
    model.set_outputs(rolls.sample(tensors[3:], 2))
    return model


INPUTS = {"x": "N,4,f32", "y": "N,4,f32", "z": "1,1,f32"}


@pytest.mark.parametrize("seed", range(60))
def test_random_models_give_what_the_interpreter_gives(seed: int) -> None:
    model = drawn(seed)
    state, right, random = plan_of(model).spawn(), TypedSimplePlan(model).spawn(), np.random.default_rng(seed)
    earlier: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for size in (3, 0, 1, 7):
        x, y = random.normal(size=(2, size, 4)).astype(np.float32)
        inputs = [x, y, random.normal(size=(1, 1)).astype(np.float32)]
        earlier += zip(state.run(inputs), right.run(inputs), strict=True)
        for found, wanted in earlier:  # what was given stays as it is
            np.testing.assert_array_equal(found, wanted)


def test_tensors_share_memory_whose_lives_do_not_meet() -> None:
    model = TypedModel()
    (outlet,) = [model.add_source("x", parse_typed_fact("N,4,f32", model.symbols))]
    for number in range(6):
        (outlet,) = model.wire_node(f"soft{number}", Softmax((1,)), [outlet])
        (outlet,) = model.wire_node(f"neg{number}", Neg(), [outlet])
    model.set_outputs([outlet])
    memory, places = plan_of(model).memory.arena({"N": 64})
    assert len(places) == 6
    assert memory.nbytes == 64 * 4 * 4


def test_what_it_says_of_itself_names_its_groups() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("N,4,f32", model.symbols))
    (minus,) = model.wire_node("minus", Neg(), [x])
    (both,) = model.wire_node("both", Add(), [minus, x])
    model.set_outputs(model.wire_node("soft", Softmax((1,)), [both]))
    found = [(one.names, one.how, one.why) for one in plan_of(model).explain().placements]
    assert found == [
        (("minus", "both"), "blocks", "each element comes out of those at its place"),
        (("soft",), "numpy", "it is left to the node executor"),
    ]
