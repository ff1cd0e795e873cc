"""Whatever is given to whatever method: an answer, or an error of ours; never another exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core import (
    Dim,
    FloatPrecision,
    InferenceModel,
    Model,
    Pulse,
    SetSymbols,
    Tensor,
    TractError,
    runtime_for_name,
)
from tract_core.analysis import inference as core
from tract_core.model.fact import InferenceFact

WEIRD = [
    None,
    -1,
    3,
    10**30,
    1.5,
    float("nan"),
    True,
    "",
    "x",
    "B,3",
    "1,,2(",
    "\0",
    '{"name"',
    "{}",
    b"",
    [],
    [None],
    [[]],
    [1, "a"],
    [[1], [1, 2]],
    {},
    {"x": None},
    {None: 1},
    {"B": "("},
    set[int](),
    object(),
    int,
    lambda: None,
    np.array(None),
    np.zeros((2, 3)),
    np.zeros(1, "M8[s]"),
    np.zeros((1,) * 20, np.float32),
    [np.zeros((2, 3))],
    [np.full((2, 3), np.nan, np.float32)] * 2,
]


def _inference() -> InferenceModel:
    graph = core.InferenceModel()
    graph.set_outputs([graph.add_source("x", InferenceFact())])
    return InferenceModel(graph)


MODEL_CALLS: dict[str, Callable[[Model, Any], object]] = {
    "input_name": lambda model, value: model.input_name(value),
    "output_fact": lambda model, value: model.output_fact(value),
    "property": lambda model, value: model.property(value),
    "parse_fact": lambda model, value: model.parse_fact(value),
    "transform": lambda model, value: model.transform(value),
    "run": lambda model, value: model.into_runnable().run(value),
    "run one": lambda model, value: model.into_runnable().run([value]),
    "state run": lambda model, value: model.into_runnable().spawn_state().run({"x": value}),
    "profile": lambda model, value: model.into_runnable().profile_json(value),
    "trace": lambda model, value: model.into_runnable().chrome_trace(value),
    "Fact.dim": lambda model, value: model.input_fact(0).dim(value),
    "SetSymbols value": lambda model, value: model.transform(SetSymbols({"B": value})),
    "SetSymbols name": lambda model, value: model.transform(SetSymbols().value(value, 1)),
}

CALLS: dict[str, Callable[[Any], object]] = {
    "prepare": lambda value: runtime_for_name("reference").prepare(value),
    "runtime_for_name": runtime_for_name,
    "Dim": Dim,
    "Dim.eval": lambda value: Dim("S").eval(value),
    "Dim.eval value": lambda value: Dim("S").eval({"S": value}),
    "from_numpy": Tensor.from_numpy,
    "convert_to": lambda value: Tensor.from_numpy(np.zeros(2)).convert_to(value),
    "set_input_fact": lambda value: _inference().set_input_fact(0, value),
    "set_input_fact position": lambda value: _inference().set_input_fact(value, "f32"),
    "fact": lambda value: _inference().fact(value),
    "Pulse": Pulse,
    "FloatPrecision": lambda value: FloatPrecision("f32", value),
    "from_typed": Model.from_typed,
}


def _ids(value: object) -> str:
    return type(value).__name__


def _is_answered(call: Callable[[], object]) -> bool:
    """Whether there was an answer, or an error of ours that says something."""
    try:
        call()
    except TractError as error:
        return len(str(error)) > 10
    return True


@pytest.mark.parametrize("call", MODEL_CALLS)
@pytest.mark.parametrize("value", WEIRD, ids=_ids)
def test_models(affine: Callable[[], Model], call: str, value: Any) -> None:
    assert _is_answered(lambda: MODEL_CALLS[call](affine(), value))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("value", WEIRD, ids=_ids)
def test_the_rest(call: str, value: Any) -> None:
    assert _is_answered(lambda: CALLS[call](value))
