"""The whole backend test suite of the ``onnx`` package: every test passes, or is refused as `REFUSED` says.

Each is run as wired, decluttered, and decluttered with a symbol for the leading axis of every input, on every runtime
of ours.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from onnx_backend_suite import MODES, REFUSED, RUNTIMES, TOLERANCES, WITHOUT_BATCH, Suite, all_cases, refusal

CASES = all_cases()


EVERY = {("cpu", "wired"): 6, ("cpu", "symbolic"): 3, ("reference", "decluttered"): 2, ("reference", "symbolic"): 2}
"""Of so many cases, one is run in that way; of ways that are not here, all. `make test-long` has all of all."""


def ways():
    """Runtimes, modes and names."""
    for runtime in RUNTIMES:
        for mode in MODES:
            every = 1 if "TRACT_LONG" in os.environ else EVERY.get((runtime, mode), 1)
            yield from ((runtime, mode, name) for name in list(CASES)[every // 2 :: every])


@pytest.mark.parametrize(("runtime", "mode", "name"), ways())
@pytest.mark.filterwarnings("ignore")
def test_backend(runtime, mode, name):
    wanted, options = refusal(name, mode), {"runtime": runtime, **MODES[mode], **TOLERANCES.get(name, {})}
    if wanted is None:
        CASES[name](None, **options)
        return
    error, part = wanted
    with pytest.raises(error, match=part):
        CASES[name](None, **options)


def test_the_whole_suite_is_there():
    assert len(CASES) >= 2000
    assert {*REFUSED, *WITHOUT_BATCH, *TOLERANCES} <= CASES.keys()


X = np.linspace(-1, 1, 6, dtype=np.float32)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([X], [X + np.float32(0.01)]),
        ([X], [X.astype(np.float64)]),
        ([X], [X.reshape(2, 3)]),
        ([X], []),
        ([[X, X]], [[X]]),
        ([[X, X]], [[X, X * 2]]),
        ([[X]], [X]),
        ([[np.float32(1)]], [[np.float32(2)]]),
        ([np.array(["a"], object)], [np.array(["b"], object)]),
    ],
)
def test_a_wrong_answer_is_noticed(wanted, found):
    Suite.assert_similar_outputs(wanted, wanted, rtol=1e-3, atol=1e-7)
    with pytest.raises(AssertionError):
        Suite.assert_similar_outputs(wanted, found, rtol=1e-3, atol=1e-7)
