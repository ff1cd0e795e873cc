"""A branch that does not go with what reads it is an error of that branch alone.

Chains of nodes, some of which remove an axis if its size is 1, against NumPy, which finds the rank in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

import numpy as np
import onnx
import onnx.parser
from hypothesis import given
from hypothesis import strategies as st
from tract_onnx.frontend import OnnxLoader

from tract_core.errors import TractError
from tract_core.model.fact_text import parse_inference_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.if_then_else import IfThenElse
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]
Step = tuple[str, tuple[int, ...]]
"""What a node does, and the axes that it names."""

SIZES: Final = list(product((1, 2), repeat=3))
X: Final = {sizes: np.random.default_rng(sum(sizes)).standard_normal(sizes).astype(np.float32) for sizes in SIZES}

STEPS: Final = st.one_of(
    st.tuples(st.just("squeeze if 1"), st.tuples(st.integers(0, 2))),
    st.tuples(st.just("squeeze if 1"), st.tuples(st.integers(0, 2))),
    st.tuples(st.just("unsqueeze"), st.tuples(st.integers(0, 1))),
    st.tuples(st.just("transpose"), st.sampled_from([(1, 0), (2, 0, 1), (1, 0, 2), (3, 1, 2, 0), (0,)])),
    st.tuples(st.just("concat"), st.tuples(st.integers(0, 2))),
    st.tuples(st.just("neg"), st.just(())),
)


def numpy_gives(steps: Sequence[Step], x: Array) -> Array | None:
    """``None`` where a step does not fit what is before it."""
    for kind, axes in steps:
        highest = max(axes, default=-1)
        if highest >= x.ndim + (kind == "unsqueeze") or (kind == "transpose" and len(axes) != x.ndim):
            return None
        x = MEANING[kind](x, axes)
    return x


MEANING: Final[dict[str, Callable[[Array, tuple[int, ...]], Array]]] = {
    "squeeze if 1": lambda x, axes: x.squeeze(axes) if x.shape[axes[0]] == 1 else x,
    "unsqueeze": np.expand_dims,
    "transpose": lambda x, axes: x.transpose(axes),
    "concat": lambda x, axes: np.concatenate([x, x], axes[0]),
    "neg": lambda x, _: -x,
}


def as_text(place: int, kind: str, axes: tuple[int, ...]) -> str:
    x, y, n = f"x{place}", f"x{place + 1}", f"n{place}"
    listed = ", ".join(map(str, axes))
    constant = f"{n}_axes = Constant<value_ints: ints = [{listed}]>()"
    if kind == "squeeze if 1":
        return f"""{constant} {n}_shape = Shape ({x}) {n}_size = Gather ({n}_shape, {n}_axes)
            {n}_one = Constant<value_int: int = 1>() {n}_is_one = Equal ({n}_size, {n}_one)
            {y} = If ({n}_is_one) <
                then_branch = t{place} () => (float[] {n}_t) {{ {n}_t = Squeeze ({x}, {n}_axes) }},
                else_branch = e{place} () => (float[] {n}_e) {{ {n}_e = Identity ({x}) }}
            >"""
    return {
        "unsqueeze": f"{constant} {y} = Unsqueeze ({x}, {n}_axes)",
        "transpose": f"{y} = Transpose<perm = [{listed}]>({x})",
        "concat": f"{y} = Concat<axis = {listed}>({x}, {x})",
        "neg": f"{y} = Neg ({x})",
    }[kind]


def typed(steps: Sequence[Step], fact: str) -> TypedModel | None:
    """The chain on an input of this fact, in core operators; ``None`` where it is refused."""
    nodes = " ".join(as_text(place, *step) for place, step in enumerate(steps))
    text = f'<ir_version: 8, opset_import: ["": 17]> f (float[A,B,C] x0) => (float[] x{len(steps)}) {{ {nodes} }}'
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    model = OnnxLoader().load_bytes(proto.SerializeToString())
    model.set_outlet_fact(model.inputs[0], parse_inference_fact(fact, model.symbols))
    try:
        return model.into_typed()
    except TractError:
        return None


def runs(model: TypedModel, x: Array) -> Array | None:
    """What a run gives, the same wired and decluttered; ``None`` where it is refused."""
    found: list[Array | None] = []
    for one in (model, model.clone().declutter()):
        try:
            found.append(TypedSimplePlan(one).run([x])[0])
        except TractError:
            found.append(None)
    wired, decluttered = found
    np.testing.assert_array_equal(decluttered, wired)
    return wired


@given(st.lists(STEPS, min_size=1, max_size=6))
def test_branches_that_differ_in_rank(steps: list[Step]) -> None:
    """What a run gives is right, and where some sizes are right, some of them run."""
    model = typed(steps, "A,B,C,f32")
    wanted = {sizes: numpy_gives(steps, x) for sizes, x in X.items()}
    answered = 0
    for sizes, x in X.items():
        found = None if model is None else runs(model, x)
        if found is not None:
            answered += 1
            np.testing.assert_array_equal(found, wanted[sizes])
    assert bool(answered) == any(array is not None for array in wanted.values())


@given(st.lists(STEPS, min_size=1, max_size=6), st.sampled_from(SIZES))
def test_sizes_that_are_known_leave_nothing_to_choose(steps: list[Step], sizes: tuple[int, ...]) -> None:
    """Then the model is taken if and only if it is right, and no branch is left in it."""
    model, wanted = typed(steps, ",".join(map(str, (*sizes, "f32")))), numpy_gives(steps, X[sizes])
    assert (model is None) == (wanted is None)
    if model is not None:
        assert not any(isinstance(node.op, IfThenElse) for node in model.live_nodes())
        np.testing.assert_array_equal(runs(model, X[sizes]), wanted)
