"""The backend test suite of the ``onnx`` package, with every model written and read back before it runs.

What passes without the cycle passes with it. Models are written in normal form, with fixed sizes and with a symbol for
the leading axis of every input.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cycles import cycled
from tract_onnx import backend

sys.path.append(str(Path(__file__).parents[2] / "tract_onnx/tests"))

from onnx_backend_suite import MODES, TOLERANCES, all_cases, refusal

import tract_core as tract

CASES = all_cases()


class Cycled(backend.Backend):
    """What prepares a model, through an archive."""

    @classmethod
    def prepare(cls, model, device="CPU", *, declutter=True, **kwargs):
        """The same as without, but that the model is the one that is read."""
        typed = backend._loaded(model).into_typed()
        found = cycled(typed.declutter() if declutter else typed)
        return backend.BackendRep(backend._runtime(device).prepare(tract.Model(found)))


LONG = "TRACT_LONG" in os.environ
DECLUTTERED = list(CASES)[:: 1 if LONG else 2]
SYMBOLIC = list(CASES)[:: 1 if LONG else 3]
"""Every second, and every third case, as other tests write archives too; `make test-long` has all of them."""


@pytest.mark.parametrize(
    ("mode", "name"), [*(("decluttered", name) for name in DECLUTTERED), *(("symbolic", name) for name in SYMBOLIC)]
)
@pytest.mark.filterwarnings("ignore")
def test_backend(mode, name):
    if refusal(name, mode) is None:
        CASES[name](None, backend=Cycled, **MODES[mode], **TOLERANCES.get(name, {}))
