"""Functions of one tensor that ONNX has an operator for, and that are written as several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx

from tract_core.frozen import frozen
from tract_onnx.writing.joining import JoinFn, Site
from tract_onnx.writing.patterns import Made, made, matched

_SELU: Final = (1.6732632423543772, 1.0507009873554805)
"""The two numbers of Selu."""

_GROWTH: Final = made("Sub", made("Exp", made("Clip", "x", "", 0.0)), 1.0)
"""exp(x) - 1, of what is below 0."""

_SOFTPLUS: Final = made(
    "Add", made("Relu", "x"), made("Log", made("Add", made("Exp", made("Mul", made("Abs", "x"), -1.0)), 1.0))
)

Numbers = Mapping[str, float]
"""The constants that letters stand for."""


@frozen
class JoinedFunction:
    """A function of one tensor. ``op_type``: the operator that it is, which there is from version ``since`` on.

    ``pattern``: what is written, of ``x``.

    ``numbers``: for its attributes the letters that stand for them, each of which must be a number.
    ``holds``: what must be true of them.
    """

    op_type: str
    pattern: Made
    numbers: Mapping[str, str]
    since: int = 1
    holds: Callable[[Numbers], bool] | None = None

    def join(self, site: Site) -> Sequence[onnx.NodeProto] | None:
        """The operator, in the place of the last node of the pattern."""
        if site.opset < self.since:
            return None
        found = matched(self.pattern, site.node, site)
        if found is None or not _is_f32_as_before(site, found["x"]):
            return None
        numbers = {letter: site.number(name) for letter, name in found.items() if letter != "x"}
        known = {letter: number for letter, number in numbers.items() if number is not None}
        if len(known) < len(numbers) or (self.holds is not None and not self.holds(known)):
            return None
        return site.instead(self.op_type, found["x"], **{name: known[one] for name, one in self.numbers.items()})


def _is_f32_as_before(site: Site, x: str) -> bool:
    """Whether a tensor is of f32, and keeps its shape: its operators' numbers are f32 themselves."""
    before, after = site.fact(x), site.fact(site.result)
    if before is None or before.datum_type.short != "f32":
        return False
    return after is None or after.shape == before.shape


_ACTIVATIONS: Final = (
    JoinedFunction("Elu", made("Where", made("Greater", "x", 0.0), "x", made("Mul", _GROWTH, "a")), {"alpha": "a"}),
    JoinedFunction(
        "Celu",
        made(
            "Add",
            made("Relu", "x"),
            made("Mul", made("Sub", made("Exp", made("Mul", made("Clip", "x", "", 0.0), "i")), 1.0), "a"),
        ),
        {"alpha": "a"},
        holds=lambda numbers: np.float32(1) / np.float32(numbers["a"]) == np.float32(numbers["i"]),
    ),
    JoinedFunction("Softplus", _SOFTPLUS, {}),
    JoinedFunction("Mish", made("Mul", "x", made("Tanh", made("Softplus", "x"))), {}, since=18),
    JoinedFunction("Softsign", made("Div", "x", made("Add", made("Abs", "x"), 1.0)), {}),
    JoinedFunction("ThresholdedRelu", made("Where", made("Greater", "x", "a"), "x", 0.0), {"alpha": "a"}),
    JoinedFunction(
        "HardSigmoid",
        made("Clip", made("Add", made("Mul", "x", "a"), "b"), 0.0, 1.0),
        {"alpha": "a", "beta": "b"},
    ),
)


def selu(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Selu: an Elu of that factor, times another"""
    found = matched(made("Mul", "e", _SELU[1]), site.node, site)
    elu = None if found is None else site.made_by("Elu", found["e"])
    if elu is None or np.float32(elu.attribute[0].f) != np.float32(_SELU[0]):
        return None
    return site.instead("Selu", elu.input[0], alpha=_SELU[0], gamma=_SELU[1])


def prelu(site: Site) -> Sequence[onnx.NodeProto] | None:
    """PRelu: what is below 0, times a slope"""
    found = matched(made("Where", made("Less", "x", 0.0), made("Mul", "x", "s"), "x"), site.node, site)
    if found is None:
        return None
    x, slope = site.fact(found["x"]), site.fact(found["s"])
    if x is None or slope is None or not x.datum_type.is_float() or slope.rank > x.rank:
        return None
    ends = zip(slope.shape[::-1], x.shape[::-1], strict=False)
    return site.instead("PRelu", found["x"], found["s"]) if all(size in (1, whole) for size, whole in ends) else None


def hard_swish(site: Site) -> Sequence[onnx.NodeProto] | None:
    """HardSwish: x times its HardSigmoid, with a sixth and a half"""
    found = matched(made("Mul", "x", made("HardSigmoid", "x")), site.node, site)
    if found is None:
        return None
    other = next(name for name in site.inputs if name != found["x"])
    maker = site.made_by("HardSigmoid", other)
    numbers: dict[str, Any] = {} if maker is None else {one.name: np.float32(one.f) for one in maker.attribute}
    is_usual = numbers == {"alpha": np.float32(1 / 6), "beta": np.float32(0.5)}
    return site.instead("HardSwish", found["x"]) if is_usual else None


def clip(site: Site) -> Sequence[onnx.NodeProto] | None:
    """Clip: bounded above, what was bounded below by a smaller number"""
    if len(site.inputs) != 3 or site.inputs[1]:
        return None
    bounded, _, above = site.inputs
    upper = site.number(above)
    relu, below = site.made_by("Relu", bounded), site.made_by("Clip", bounded)
    if upper is None:
        return None
    if relu is not None and upper > 0:
        kind = site.value(above)
        assert kind is not None
        return site.instead("Clip", relu.input[0], site.constant(np.zeros((), kind.dtype)), above)
    if below is not None and len(below.input) == 2:
        lower = site.number(below.input[1])
        return site.instead("Clip", *below.input, above) if lower is not None and lower < upper else None
    return None


JOINS: Final[Sequence[tuple[str, JoinFn]]] = (
    ("Clip", clip),
    *((one.pattern.op_type, one.join) for one in _ACTIVATIONS),
    ("Mul", selu),
    ("Mul", hard_swish),
    ("Where", prelu),
)
