"""Normalisation by means that forget: what the texts mean, what is kept between turns, and that all comes back."""

from __future__ import annotations

import numpy as np
import pytest
from documents import document, load, run_text
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

from tract_core import errors
from tract_core.model.same import same_model
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

X = np.random.default_rng(5).uniform(-2, 2, (6, 2)).astype(np.float32)
START = np.ones(2, np.float32)
SHAPES = ("F32[S, 2]", "F32[2]")


def text(call, shapes=SHAPES):
    return document(f"o = {call};", shapes, ["o"], registries=["tract_extra", "tract_core"], symbols=["S"])


def unit(x, mean, alpha, skip=0):
    found = []
    for step, one in enumerate(x.astype(np.float64)):
        if step >= skip:
            mean = np.abs(one) * (1 - alpha) + mean * alpha
        found.append(one / np.sqrt(mean))
    return np.array(found)


def test_a_unit_norm_divides_by_the_root_of_the_mean() -> None:
    (found,) = run_text(text("tract_extra_exp_unit_norm(x, y, axis = 0, alpha = 0.75, skip = 1)"), X, START)
    np.testing.assert_allclose(found, unit(X, START, 0.75, 1), rtol=1e-5)


def test_a_mean_norm_takes_the_mean_away() -> None:
    (found,) = run_text(text("tract_extra_exp_mean_norm(x, y, 0, 0.5, scaling_factor = 4.0)"), X[:2], START)
    first = (X[0] + START) / 2
    np.testing.assert_allclose(found, [(X[0] - first) / 4, (X[1] - (X[1] + first) / 2) / 4], rtol=1e-5)


@pytest.mark.parametrize("skip", [0, 3])
def test_pieces_of_a_stream_give_what_the_whole_gives(skip) -> None:
    state = load(text(f"tract_extra_exp_unit_norm(x, y, 0, 0.9, skip = {skip})")).into_runnable().spawn_state()
    pieces = [X[:2], X[2:2], X[2:5]]
    found = [state.run([piece, START])[0].to_numpy() for piece in pieces]
    frozen = state.freeze()
    rest = state.run([X[5:], START])[0].to_numpy()
    again = frozen.unfreeze().run([X[5:], START])[0].to_numpy()
    np.testing.assert_allclose(np.concatenate([*found, rest]), unit(X, START, 0.9, skip), rtol=1e-5)
    np.testing.assert_array_equal(again, rest)


def test_a_stateless_norm_starts_anew_in_each_turn() -> None:
    state = load(text("tract_extra_exp_unit_norm(x, y, 0, 0.9, stateless = true)")).into_runnable().spawn_state()
    first, second = (state.run([X, START])[0].to_numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_pairs_have_one_magnitude() -> None:
    pairs = X.reshape(3, 2, 2)
    call = text("tract_extra_exp_unit_norm(x, y, 0, 0.5, complex = true)", ("F32[3, 2, 2]", "F32[2]"))
    (found,) = run_text(call, pairs, START)
    mean, wanted = START, []
    for step in pairs.astype(np.float64):
        mean = np.hypot(*step.T) / 2 + mean / 2
        wanted.append(step / np.sqrt(mean)[:, None])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tract_extra_exp_unit_norm(x, y, axis = 2, alpha = 0.5)", "axis 2"),
        ("tract_extra_exp_unit_norm(x, x, axis = 0, alpha = 0.5)", r"a mean of shape \[2\]"),
        ("tract_extra_exp_unit_norm(x, y, axis = 1, alpha = 0.5, complex = true)", "a last axis of size 2"),
        ("tract_extra_exp_mean_norm(x, y, axis = 0)", "wants 'alpha'"),
    ],
)
def test_what_does_not_fit_is_refused(call, message) -> None:
    with pytest.raises(errors.TractError, match=f"(?s)line .*{message}"):
        load(text(call))


CASES_HERE = default_registry()[CASES].find("exp_norm") or ()


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("case", CASES_HERE, ids=str)
def test_a_case_comes_back(case, symbolic, tmp_path) -> None:
    model = case.model(symbolic=symbolic)
    NnefWriter(how=Writing(frozenset({"tract_core", "tract_extra"}))).write(model, tmp_path / "m.tar")
    assert same_model(NnefLoader().load(tmp_path / "m.tar"), model)
