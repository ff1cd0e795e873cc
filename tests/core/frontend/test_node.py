"""What a row asks for: attributes with their defaults, inputs, and the errors that say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Any

import pytest

from tract_core.errors import CorruptModel, FactError, ModelError, Unsupported
from tract_core.frontend.node import INTEGERS, AttributeKind, Attributes, Inputs, T
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring


class Node(Attributes):
    """One of a format that holds values of Python."""

    operator = "Blur"

    def __init__(self, **attributes: Any) -> None:
        self._attributes = attributes

    @property
    def names(self) -> Collection[str]:
        return self._attributes

    def has(self, name: str) -> bool:
        return name in self._attributes

    def find(self, name: str, kind: AttributeKind[T]) -> T | None:
        found = self._attributes.get(name)
        if isinstance(found, str) and kind is INTEGERS:
            raise self.misfit(name, f"is {found!r}", kind.text)
        return found


class Wiring(NodeWiring, Inputs[int]):
    """The first input is there, the second is left out."""

    @property
    def wiring(self) -> NodeWiring:
        return self

    def input(self, slot: int) -> OutletId:
        return OutletId(slot)

    def optional_input(self, slot: int) -> OutletId | None:
        return None if slot else self.input(slot)


class Border(Enum):
    """What is beyond the edge."""

    ZERO = "zero"
    MIRROR = "mirror"


NODE = Node(size=3, sizes=(3, 4), axis=-1, axes=(-1, 0), border="mirror", off=False)


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (lambda node: node.integer("size"), 3),
        (lambda node: node.integer("size", 7), 3),
        (lambda node: node.integer("none", 7), 7),
        (lambda node: node.integer("none", 0), 0),
        (lambda node: node.integers("sizes"), (3, 4)),
        (lambda node: node.integers("none", [1, 2]), (1, 2)),
        (lambda node: node.integers("none", range(3)), (0, 1, 2)),
        (lambda node: node.number("none", 0.5), 0.5),
        (lambda node: node.numbers("none", ()), ()),
        (lambda node: node.text("border"), "mirror"),
        (lambda node: node.texts("none", ["a"]), ("a",)),
        (lambda node: node.flag("none"), False),
        (lambda node: node.flag("none", True), True),
        (lambda node: node.flag("off", True), False),
        (lambda node: node.dim("size"), 3),
        (lambda node: node.dims("none", [1]), (1,)),
        (lambda node: node.each("sizes", 2), (3, 4)),
        (lambda node: node.each("none", 3, 1), (1, 1, 1)),
        (lambda node: node.choice("border", ("zero", "mirror")), "mirror"),
        (lambda node: node.choice("none", ("zero", "mirror"), "zero"), "zero"),
        (lambda node: node.member("border", Border), Border.MIRROR),
        (lambda node: node.member("none", Border, Border.ZERO), Border.ZERO),
        (lambda node: node.axis("axis", 4), 3),
        (lambda node: node.axis("none", 4, -2), 2),
        (lambda node: node.axes("axes", 4), (3, 0)),
        (lambda node: node.axes("none", 2, range(2)), (0, 1)),
    ],
)
def test_an_attribute_or_its_default(ask: Callable[[Node], Any], wanted: object) -> None:
    assert ask(NODE) == wanted


@pytest.mark.parametrize(
    ("ask", "kind", "problem"),
    [
        (
            lambda node: node.integer("none"),
            CorruptModel,
            "Blur wants an attribute 'none', the node has 'size', 'sizes',",
        ),
        (lambda _: Node().number("none"), CorruptModel, "Blur wants an attribute 'none', the node has no attributes"),
        (lambda node: node.integers("border"), CorruptModel, "attribute 'border' of Blur is 'mirror', wanted integers"),
        (lambda node: node.each("sizes", 3), CorruptModel, "attribute 'sizes' of Blur has 2 entries, wanted 3"),
        (
            lambda node: node.choice("border", ("zero", "edge")),
            Unsupported,
            "attribute 'border' of Blur is 'mirror', wanted one of 'zero', 'edge'",
        ),
        (
            lambda _: Node(border="wrap").member("border", Border),
            Unsupported,
            "attribute 'border' of Blur is 'wrap', wanted one of 'zero', 'mirror'",
        ),
        (lambda node: node.axis("size", 3), FactError, "axis 3 is outside a tensor of 3 axes"),
        (lambda node: node.axes("none", 2, (0, -2)), FactError, "name one axis of 2 twice"),
    ],
)
def test_what_is_wrong_is_said(ask: Callable[[Node], Any], kind: type[ModelError], problem: str) -> None:
    with pytest.raises(kind) as caught:
        ask(NODE)
    assert problem in caught.value.problem


def test_inputs_come_as_outlets_and_for_arithmetic() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32"))
    wire = Wiring(model, "node")
    assert (wire.tensor(0).wire, wire.tensor(0).outlet) == (wire, x)
    given = wire.optional_tensor(0)
    assert given is not None
    assert given.outlet == x
    assert wire.optional_tensor(1) is None
