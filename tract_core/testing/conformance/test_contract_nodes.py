"""Nodes and bodies: who runs what, in which sizes, and what errors say of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tract_core.errors import TractError, Unsupported
from tract_core.model.typed import TypedModel
from tract_core.plugins.registry import Registry
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.models import (
    Unheard,
    Unseen,
    empty,
    ones,
    picked_inside,
    picked_rows,
    source,
    stretched_inside,
)
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_bodies_know_the_sizes_around_them",
    "test_errors_name_the_node",
    "test_unknown_operators_are_refused_together",
]


def test_bodies_know_the_sizes_around_them(bench: Bench) -> None:
    """A size of the model around it that a body mentions is that of the turn."""
    state = bench.runtime.prepare(stretched_inside(bench.registry)).spawn()
    for size in (2, 5, 1, 0):
        (found,) = state.run([ones(size, 3), np.arange(3, dtype=np.float32)])
        np.testing.assert_array_equal(found, np.tile(np.arange(1.0, 4.0), (size, 1)))


@pytest.mark.parametrize(
    ("make", "names"),
    [(picked_rows, ("pick",)), (picked_inside, ("inner", "pick"))],
    ids=["in the model", "in a body"],
)
def test_errors_name_the_node(bench: Bench, make: Callable[[Registry], TypedModel], names: tuple[str, ...]) -> None:
    """One of our errors, with the name of the node that failed, and of those in whose bodies it is; then it goes on."""
    state = bench.runtime.prepare(make(bench.registry)).spawn()
    with pytest.raises(TractError) as caught:
        state.run([ones(2, 3), np.array([0, 7])])
    missing = [name for name in names if repr(name) not in str(caught.value)]
    assert not missing, f"{caught.value} does not name {', '.join(missing)}"
    (found,) = state.run([ones(2, 3), np.array([1, 0, 1])])
    np.testing.assert_array_equal(found, ones(3, 3))


def test_unknown_operators_are_refused_together(bench: Bench) -> None:
    """A model with operators that nothing is known of is refused when it is prepared, with all their names."""
    model = empty(bench.registry)
    (y,) = model.wire_node("first", Unheard(), [source(model, "x", "3,f32")])
    model.set_outputs(model.wire_node("second", Unseen(), [y]))
    with pytest.raises(Unsupported) as caught:
        bench.runtime.prepare(model)
    assert "Unheard" in str(caught.value)
    assert "Unseen" in str(caught.value)
