"""Archives and frozen states of all versions are read by this one."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tract_core as tract
from tract_core.model.same import same_model

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE))

from lasting_network import PULSE, SIGNAL, Array, expected, network, pulsed  # noqa: E402 # likewise
from make_lasting import ARCHIVES, RUNTIMES, TURNS  # noqa: E402 # found by the line above

VERSIONS: Final = sorted(path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())
CLOSE: Final = {"rtol": 1e-5, "atol": 1e-6}
"""Of f32, of which a result of the network sums twelve, beside f64."""


def test_this_version_has_something_to_read() -> None:
    assert VERSIONS, "python tests/lasting/make_lasting.py"


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_an_archive_gives_what_it_gave(folder: Path, name: str, runtime: str) -> None:
    model = tract.load(folder / name)
    assert model.property("purpose").item() == "to be read by every later version"
    runnable = tract.runtime_for_name(runtime).prepare(model)
    signal = SIGNAL.astype(np.float32)
    if name.startswith("pulsed"):
        (found,) = [np.concatenate([np.asarray(one) for one in runnable.stream([signal])], axis=2)]
    else:
        (found,) = map(np.asarray, runnable.run([signal]))
    np.testing.assert_allclose(found, expected(SIGNAL), **CLOSE)


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_an_archive_is_still_the_same_model(folder: Path, name: str) -> None:
    wanted = pulsed().typed if name.startswith("pulsed") else network()
    assert same_model(tract.load(folder / name).typed.declutter(), wanted.declutter())


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_a_frozen_state_goes_on(folder: Path, runtime: str) -> None:
    state = pickle.loads((folder / f"{runtime}.state").read_bytes()).unfreeze()
    (found,) = map(np.asarray, state.run([SIGNAL[:, :, TURNS * PULSE :].astype(np.float32)]))
    begin = TURNS * PULSE - 1  # as the output is one position late
    wanted: Array = expected(SIGNAL)[:, :, begin : begin + PULSE]
    np.testing.assert_allclose(found, wanted, **CLOSE)
