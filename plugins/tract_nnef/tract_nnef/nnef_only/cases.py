"""Cases of the operators that only NNEF files have."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case
from tract_nnef.nnef_only.exp_norm import ExpMeanNorm, ExpNorm, ExpUnitNorm
from tract_nnef.nnef_only.sdpa import Sdpa

ROWS = Rows()

Array = np.ndarray[Any, Any]


def _by_steps(op: ExpNorm, x: Array, mean: Array) -> Array:
    """Step by step, each with the weights that all steps before it have by then."""
    x = np.moveaxis(x, op.axis, 0)
    pairs = isinstance(op, ExpUnitNorm) and op.complex
    found = np.empty_like(x)
    for step in range(len(x)):
        past = x[op.skip : step + 1]
        if isinstance(op, ExpUnitNorm):
            past = np.maximum(np.sqrt((past**2).sum(-1)) if pairs else abs(past), op.epsilon)
        weights = (1 - op.alpha) * op.alpha ** np.arange(len(past))[::-1]
        now = mean * op.alpha ** len(past) + np.tensordot(weights, past, 1)
        if isinstance(op, ExpMeanNorm):
            found[step] = (x[step] - now) / op.scaling_factor
        else:
            found[step] = x[step] / np.sqrt(now[..., None] if pairs else now)
    return np.moveaxis(found, 0, op.axis)


def _case(name: str, op: ExpNorm, x: str, mean: str) -> Case:
    sizes = {"B": 2, "S": 7}
    start = Arg(mean, low=1, high=2)  # roots are taken of it
    return Case(f"{op.name}-{name}", op, [x, start], partial(_by_steps, op), sizes)


_CASES = [
    _case("stream", ExpUnitNorm(1, 0.9), "B,S,3,f32", "B,3,f32"),
    _case("skip", ExpUnitNorm(0, 0.5, skip=3), "S,B,f32", "B,f32"),
    _case("skip all", ExpUnitNorm(0, 0.5, skip=30), "S,f64", "f64"),
    _case("pairs", ExpUnitNorm(0, 0.9, complex=True), "S,B,2,f32", "B,f32"),
    _case("floor", ExpUnitNorm(0, 0.25, epsilon=1.5, stateless=True), "S,B,f32", "B,f32"),
    _case("stream", ExpMeanNorm(1, 0.9, scaling_factor=2.5), "B,S,3,f32", "B,3,f32"),
    _case("skip", ExpMeanNorm(1, 0.1, skip=2, stateless=True), "B,S,f32", "B,f32"),
    _case("f16", ExpMeanNorm(0, 0.75), "S,B,f16", "B,f16"),
]

ROWS.add(CASES, "exp_norm", _CASES)


def _attended(op: Sdpa, q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
    """Query by query."""
    found = np.empty((*q.shape[:-1], v.shape[-1]))
    for place in np.ndindex(q.shape[:-1]):
        behind = (place[0], *(place[1] * k.shape[1] // q.shape[1],) * (q.ndim - 3))
        scores = k[behind] @ q[place] * op.scale
        if mask is not None:
            scores = scores + np.broadcast_to(mask, (*q.shape[:-1], len(scores)))[place]
        if op.causal:
            scores = scores[: len(scores) - q.shape[-2] + place[-1] + 1]
        weights = np.exp(scores) / np.exp(scores).sum()
        found[place] = weights @ v[behind][: len(weights)]
    return found


def _attention(name: str, op: Sdpa, *facts: str) -> Case:
    return Case(f"sdpa-{name}", op, list(facts), partial(_attended, op), {"B": 2, "S": 3, "P": 2})


_ATTENTION = [
    _attention("heads", Sdpa(0.5), "B,4,S,8,f32", "B,4,P,8,f32", "B,4,P,3,f32"),
    _attention("shared heads", Sdpa(0.5), "B,4,S,8,f32", "B,2,P,8,f32", "B,2,P,3,f32"),
    _attention("no heads", Sdpa(0.25, acc=DatumType.F64), "B,S,8,f64", "B,P,8,f64", "B,P,8,f64"),
    _attention("causal", Sdpa(0.5, causal=True), "B,2,S,8,f32", "B,2,P+S,8,f32", "B,2,P+S,3,f32"),
    _attention("mask", Sdpa(0.5), "B,2,S,8,f32", "B,2,P,8,f32", "B,2,P,3,f32", "B,1,S,P,f32"),
]

ROWS.add(CASES, "sdpa", _ATTENTION)
