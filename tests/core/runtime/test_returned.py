"""A run checks what the code behind an operator returns, and names who brought it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import Dim, symbol
from tract_core.errors import RunError
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Neg
from tract_core.ops.non_zero import NonZero
from tract_core.plugins import Rows
from tract_core.plugins.keys import REFERENCE, STATE
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.toys import toy_registry

ROWS = Rows()
RETURNED: list[Any] = []
"""What the operators of this module return next, the last of it from then on."""


@dataclass(frozen=True)
class Liar(TypedOp):
    """Promises ``outputs`` tensors like the input."""

    outputs: int = 1
    pure: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0].without_value(),) * self.outputs


@dataclass(frozen=True)
class Sums(TypedOp):
    """Keeps state, and promises a tensor like the input."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0].without_value(),)


@dataclass(frozen=True)
class Finds(TypedOp):
    """Promises a list whose length only the run tells."""

    count: Dim
    announces: ClassVar[tuple[str, ...]] = ("count",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (TypedFact.of(DatumType.F32, (self.count,)),)


@dataclass(frozen=True)
class Vector(TypedOp):
    """Promises a vector of ``N`` elements, whatever it reads."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (TypedFact.of(DatumType.F32, (symbol("N"),)),)


@ROWS.row(REFERENCE, Liar, Finds, Vector)
def lie(op: TypedOp, x: np.ndarray[Any, Any]) -> Any:
    return RETURNED.pop(0) if len(RETURNED) > 1 else RETURNED[0]


class _State:
    def run(self, session: Session, inputs: Sequence[Any]) -> Any:
        return RETURNED[0]

    def freeze(self) -> Any:
        return None

    def thaw(self, frozen: Any) -> None:
        pass


@ROWS.row(STATE, Sums)
def state(op: Sums, session: Session) -> _State:
    return _State()


REGISTRY = toy_registry("acme", rows={"reference": [__name__], "state": [__name__]})


def model_of(op: TypedOp, shape: Sequence[Dim] = (symbol("B"), 3)) -> TypedModel:
    model = TypedModel(registry=REGISTRY)
    x = model.add_source("x", TypedFact.of(DatumType.F32, shape))
    model.set_outputs(model.wire_node("y", op, [x]))
    return model


X = np.zeros((2, 3), np.float32)

WRONG: list[tuple[TypedOp, Any, str]] = [
    (Liar(), X.astype(np.float64), r"float64\[2, 3\] where its fact B,3,f32 promises f32\[2,3\]"),
    (Liar(), X.astype(ml_dtypes.bfloat16), r"bfloat16\[2, 3\] where"),
    (Liar(), X[:1], r"float32\[1, 3\] where"),
    (Liar(), X[0], r"float32\[3\] where"),
    (Liar(), X[:, :0], r"float32\[2, 0\] where"),
    (Liar(), X.tolist(), "a list instead of an array"),
    (Liar(), 1.0, "a float instead of an array"),
    (Liar(), None, "a NoneType instead of an array"),
    (Liar(), (X, X), "2 outputs instead of 1"),
    (Liar(), (), "0 outputs instead of 1"),
    (Liar(2), X, "1 output instead of 2"),
    (Liar(2), (X, X[:1]), r"float32\[1, 3\] as output 1 where"),
    (Sums(), (X[:1],), r"float32\[1, 3\] where"),
    (Sums(), [X], "a list instead of a tuple of arrays"),
    (Sums(), X, "a ndarray instead of a tuple of arrays"),
    (Finds(symbol("n")), X.reshape(-1).astype(np.int64), r"int64\[6\] where its fact n,f32 promises f32\[6\]"),
    (Finds(symbol("n")), 3.0, "a float instead of an array"),
]


@pytest.mark.parametrize(("op", "returned", "message"), WRONG)
@pytest.mark.parametrize("prepare", [lambda model: model, declutter])
def test_what_is_not_promised_is_refused(
    op: TypedOp, returned: Any, message: str, prepare: Callable[[TypedModel], TypedModel]
) -> None:
    RETURNED[:] = [returned]
    plan = TypedSimplePlan(prepare(model_of(op)))
    place = rf"^node 'y' \({op.name}.*\): the operator returned {message}.*\n"
    with pytest.raises(RunError, match=place + r"  hint: this is a defect of acme, which brought"):
        plan.run([X])


def test_what_is_promised_for_other_sizes_is_refused() -> None:
    state = TypedSimplePlan(model_of(Liar())).spawn()
    RETURNED[:] = [X]
    assert state.run([X])[0] is X
    with pytest.raises(RunError, match=r"float32\[2, 3\] where its fact B,3,f32 promises f32\[4,3\]"):
        state.run([np.zeros((4, 3), np.float32)])
    assert state.run([X])[0] is X


def test_scalars_of_numpy_are_arrays() -> None:
    RETURNED[:] = [np.float32(3)]
    assert TypedSimplePlan(model_of(Liar(), ())).run([np.zeros((), np.float32)])[0] == 3


@pytest.mark.parametrize("returned", [np.float64(3), np.zeros(1, np.float32), np.zeros(3, np.int8)])
def test_nothing_that_is_not_promised_is_computed_early(returned: Any) -> None:
    """A constant behind which the operator lies stays what the run computes, and refuses."""
    RETURNED[:] = [returned]
    model = TypedModel(registry=REGISTRY)
    c = model.add_const("c", np.zeros(3, np.int64))
    model.set_outputs(model.wire_node("y", Liar(), [c]))
    for one in (model.clone(), declutter(model)):
        with pytest.raises(RunError, match=r"node 'y' .* the operator returned"):
            TypedSimplePlan(one).run([])


def test_sizes_that_change_between_runs_of_one_binding() -> None:
    """How many elements are not zero is found anew in every run."""
    model = TypedModel()
    x = model.add_source("x", TypedFact.of(DatumType.F32, (4,)))
    (found,) = model.wire_node("n", NonZero(model.symbols.new_symbol("count")), [x])
    model.set_outputs(model.wire_node("y", Neg(), [found]))
    state = TypedSimplePlan(model).spawn()
    for count in (0, 4, 1, 3):
        array = np.array([1] * count + [0] * (4 - count), np.float32)
        assert state.run([array])[0].tolist() == [[-index for index in range(count)]]


PRODUCTS = [[symbol("N") * symbol("M")], [symbol("N") * symbol("M"), symbol("M")]]


def two_promises(first: TypedOp, shape: Sequence[Dim]) -> TypedModel:
    """Two operators promise tensors of size ``N``, of which no input surely tells the value."""
    model = model_of(first, shape)
    model.set_outputs([*model.outputs, *model.wire_node("z", Liar(), model.outputs)])
    return model


@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
@pytest.mark.parametrize("first", [Finds(symbol("N")), Vector()])
@pytest.mark.parametrize("other", [0, 1, 5])
def test_what_one_node_told_of_a_size_holds_for_the_others(first: TypedOp, shape: Sequence[Dim], other: int) -> None:
    RETURNED[:] = [np.zeros(size, np.float32) for size in (4, other)]
    message = rf"node 'z' \(Liar.*\): .* float32\[{other}\] where its fact N,f32 promises f32\[4\]"
    with pytest.raises(RunError, match=message):
        TypedSimplePlan(two_promises(first, shape)).run([np.zeros([0] * len(shape), np.float32)])


@pytest.mark.parametrize("shape", PRODUCTS, ids=str)
def test_what_a_node_told_of_a_size_in_one_turn_does_not_hold_in_the_next(shape: Sequence[Dim]) -> None:
    state = TypedSimplePlan(two_promises(Finds(symbol("N")), shape)).spawn()
    for size in (4, 1, 0):
        RETURNED[:] = [np.zeros(size, np.float32)]
        assert [len(found) for found in state.run([np.zeros([0] * len(shape), np.float32)])] == [size, size]
