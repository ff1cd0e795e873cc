"""Cases of loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.elementwise import Tanh
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullInput, FullOutput, InputMapping, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "S": 7}


def _sums(chunk: int, kind: str = "f32") -> TypedModel:
    """From x [chunk, B] and s [1, B]: x + s, and s plus the sum of x over the chunk."""
    body = TypedModel()
    x, s = (
        body.add_source(name, parse_typed_fact(f"{n},B,{kind}", body.symbols)) for name, n in (("x", chunk), ("s", 1))
    )
    total = wire_one(body, "total", Reduce((0,), Reducer.SUM), x)
    body.set_outputs([wire_one(body, "shifted", Add(), x, s), wire_one(body, "next", Add(), s, total)])
    return body


def _sums_by_hand(chunk: int, *, backward: bool = False, skip: int = 0) -> Callable[..., Any]:
    """Rows of x [S, B] taken in chunks, those missing at the end (going backward: at the beginning) being zero."""

    def expected(x: Any, s: Any) -> Any:
        count = -(-len(x) // chunk)
        padded = np.zeros((count * chunk, x.shape[1]), x.dtype)
        padded[len(padded) - len(x) if backward else 0 :][: len(x)] = x
        state, shifted = s[0].copy(), np.zeros_like(padded)
        for iteration in range(count):
            if iteration < skip:
                continue
            place = (count - 1 - iteration if backward else iteration) * chunk
            rows = padded[place : place + chunk]
            shifted[place : place + chunk] = rows + state
            state = state + rows.sum(axis=0)
        return shifted, state[None]

    return expected


def _sum_case(name: str, chunk: int, arg: str | Arg = "S,B,f32", *, skip: int = 0, **flags: Any) -> Case:
    kind = "i64" if "i64" in str(arg) else "f32"
    op = Scan(
        _sums(abs(chunk), kind),
        (ScannedInput(0, chunk), StateInput()),
        (OutputMapping(full=FullOutput(0, 0, chunk)), OutputMapping(state=True, last=1)),
        skip=skip,
        **flags,
    )
    return Case(
        f"Scan-{name}", op, [arg, f"1,B,{kind}"], _sums_by_hand(abs(chunk), backward=chunk < 0, skip=skip), _SIZES
    )


def _network() -> Scan:
    """The loop ``h = tanh(x W + h R)`` over the second axis of x [B, S, 3]."""
    body = TypedModel()
    facts = {"x": "B,1,3,f32", "w": "3,4,f32", "h": "B,1,4,f32", "r": "4,4,f32"}
    x, w, h, r = (body.add_source(name, parse_typed_fact(fact, body.symbols)) for name, fact in facts.items())
    product = EinSum(AxesMapping.parse("bti,ij->btj"), accumulator(body.outlet_fact(x).datum_type))
    both = wire_one(body, "both", Add(), wire_one(body, "xw", product, x, w), wire_one(body, "hr", product, h, r))
    body.set_outputs([wire_one(body, "h_next", Tanh(), both)])
    mappings: tuple[InputMapping, ...] = (ScannedInput(1), FullInput(), StateInput(), FullInput())
    return Scan(body, mappings, (OutputMapping(state=True, full=FullOutput(1, 1), last=0),))


def _network_by_hand(x: Any, w: Any, h: Any, r: Any) -> Any:
    states: list[Any] = []
    for step in range(x.shape[1]):
        h = np.tanh(x[:, step : step + 1] @ w + h @ r)
        states.append(h)
    return h, np.concatenate(states, axis=1)


def _two_ways() -> Scan:
    """The larger one of a, taken forward, and b, taken backward; no state."""
    body = TypedModel()
    a, b = (body.add_source(name, parse_typed_fact("B,1,i64", body.symbols)) for name in "ab")
    body.set_outputs([wire_one(body, "larger", Max(), a, b), a])
    mappings = (ScannedInput(1), ScannedInput(1, -1))
    return Scan(body, mappings, (OutputMapping(full=FullOutput(0, 1, -1)), OutputMapping(last=1)))


_CASES = [
    _sum_case("forward", 1),
    _sum_case("integers", 1, "S,B,i64"),
    _sum_case("backward", -1),
    _sum_case("chunks", 3, "9,B,f32"),
    _sum_case("last chunk is short", 3),
    _sum_case("backward, last chunk is short", -3),
    _sum_case("one short chunk", 10),
    _sum_case("no iteration", 2, "0,B,f32"),
    _sum_case("skip some", 2, skip=2),
    _sum_case("skip some backward", -2, skip=1),
    _sum_case("skip all", 1, skip=9),
    _sum_case("external state", 1, external_state=True),
    _sum_case("reset every turn", 1, reset_every_turn=True),
    Case("Scan-network", _network(), ["B,S,3,f32", "3,4,f32", "B,1,4,f32", "4,4,f32"], _network_by_hand, _SIZES),
    Case(
        "Scan-two directions",
        _two_ways(),
        ["B,S,i64", "B,S,i64"],
        lambda a, b: (np.maximum(a, b[:, ::-1])[:, ::-1], a[:, -1:]),
        _SIZES,
    ),
]

ROWS.add(CASES, "scan", _CASES)
